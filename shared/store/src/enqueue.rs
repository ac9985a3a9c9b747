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

    /// Commits. The audit records the execution if this transaction has made or changed it; a key that was kept changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After an error of the commit it may still have happened.
    pub async fn commit(
        mut self,
        enqueued: EnqueuedId,
        by: AuditContext<'_>,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "-- record_enqueued
            INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, after)
            SELECT now(), $1, 'enqueue', e.job_id, e.id, $2,
                   jsonb_build_object('state', e.state, 'execution_key', e.execution_key, 'created', $4::boolean)
            FROM sexton.executions e
            WHERE e.id = $3 AND ($4::boolean OR e.xmin::text = pg_current_xact_id()::xid::text)",
            by.actor,
            by.reason,
            enqueued.id,
            enqueued.created
        )
        .execute(WithTimeout(&mut *self.0))
        .await?;
        commit(self.0).await?;
        Ok(())
    }

    /// Commits. The audit records these executions of one job in one row, however many they are: how many this transaction has made, changed
    /// and kept, and the first and the last id of those that it made, or, if it made none, of those that it changed. It records nothing if
    /// all were kept.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After an error of the commit it may still have happened.
    pub async fn commit_each(
        mut self,
        enqueued: &[EnqueuedId],
        by: AuditContext<'_>,
    ) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = enqueued.iter().map(|one| one.id).collect();
        let created: Vec<bool> = enqueued.iter().map(|one| one.created).collect();
        sqlx::query!(
            r#"-- record_enqueued_each
            INSERT INTO sexton.operator_actions (at, actor, action, job_id, reason, after)
            SELECT now(), $1, 'enqueue', c.job_id, $2, jsonb_build_object(
                       'created', c.created, 'changed', c.changed, 'kept', c.kept, 'first_id', c.first_id, 'last_id', c.last_id)
            FROM (
                SELECT e.job_id,
                       count(*) FILTER (WHERE e.is_new) AS created,
                       count(*) FILTER (WHERE e.is_written AND NOT e.is_new) AS changed,
                       count(*) FILTER (WHERE NOT e.is_written) AS kept,
                       coalesce(min(e.id) FILTER (WHERE e.is_new), min(e.id) FILTER (WHERE e.is_written)) AS first_id,
                       coalesce(max(e.id) FILTER (WHERE e.is_new), max(e.id) FILTER (WHERE e.is_written)) AS last_id
                FROM (
                    SELECT x.job_id, x.id::text COLLATE "C" AS id, n.is_new,
                           n.is_new OR x.xmin::text = pg_current_xact_id()::xid::text AS is_written
                    FROM (SELECT u.id, bool_or(u.created) AS is_new
                          FROM unnest($3::uuid[], $4::boolean[]) AS u (id, created) GROUP BY u.id) n
                    JOIN sexton.executions x ON x.id = n.id) e
                GROUP BY e.job_id) c
            WHERE c.created + c.changed > 0"#,
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
