//! The transaction of an operator's enqueue: the executions, which the platform's SQL functions write, and their record in the audit.

use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::AuditContext;
use crate::{Store, StoreError};

/// A transaction in which an operator enqueues. A drop changes nothing.
#[derive(Debug)]
pub struct EnqueueTransaction(Transaction<'static, Postgres>);

/// The answer of the platform's functions for an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnqueuedId {
    /// The execution.
    pub id: Uuid,
    /// Whether it is new; otherwise it had the key.
    pub created: bool,
}

impl EnqueueTransaction {
    /// Begins it.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn begin(store: &Store) -> Result<Self, StoreError> {
        Ok(Self(store.begin().await?))
    }

    /// The connection on which to call the functions.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    /// Commits. The audit records each of these executions that this transaction has made or changed; a key that was kept changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After an error of the commit it may still have happened.
    pub async fn commit(
        mut self,
        enqueued: &[EnqueuedId],
        by: AuditContext<'_>,
    ) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = enqueued.iter().map(|one| one.id).collect();
        let created: Vec<bool> = enqueued.iter().map(|one| one.created).collect();
        sqlx::query!(
            "-- record_enqueued
            INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, after)
            SELECT now(), $1, 'enqueue', e.job_id, e.id, $2,
                   jsonb_build_object('state', e.state, 'execution_key', e.execution_key, 'created', n.created)
            FROM (SELECT u.id, bool_or(u.created) AS created
                  FROM unnest($3::uuid[], $4::boolean[]) AS u (id, created) GROUP BY u.id) n
            JOIN sexton.executions e ON e.id = n.id
            WHERE n.created OR e.xmin::text = pg_current_xact_id()::xid::text
            ORDER BY e.id",
            by.actor,
            by.reason,
            &ids,
            &created
        )
        .execute(WithTimeout(&mut *self.0))
        .await?;
        commit(self.0).await?;
        Ok(())
    }
}
