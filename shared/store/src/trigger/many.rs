//! Triggers of many executions of one job, each with a caller's own key.
//!
//! A batch is one transaction: its rows, their audit if an operator triggers, and the notification of the relay. A
//! crash in between leaves some batches triggered and the others not; the same list, given again, triggers the
//! others, because a key never makes a second execution.

use serde_json::{Map, Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::job::Overlap;
use sexton_model::key;
use sexton_model::params::check;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use super::{JobColumns, TriggerError, lock_job, merge_params};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::jobs::templates::{Unfilled, fill_on};
use crate::notifications::Notification;
use crate::operator::{AuditContext, NewAction, notify, record_actions, set_lock_timeout};
use crate::tickets::waiters::NOT_BEFORE_ADMISSION;
use crate::{Now, Store, StoreError};

/// Maximum number of executions in one transaction.
pub const MAX_BATCH_TRIGGERS: usize = 500;

/// One execution to trigger.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggerItem {
    /// Drawn by the caller; the execution's id if it is new.
    pub id: ExecutionId,
    /// The caller's own key.
    pub key: String,
    /// Override the job's params of the same name, at the top level.
    pub params: Map<String, Value>,
}

/// The result of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TriggeredBatch {
    /// Number of new executions.
    pub created: u64,
    /// Number of those that wait until the job is free.
    pub waiting: u64,
    /// Number of keys that already had an execution.
    pub known: u64,
    /// Whether the job is paused; the executions run all the same.
    pub paused: bool,
}

/// Claims up to [`MAX_BATCH_TRIGGERS`] executions of a job, in the order given if they run one at a time.
///
/// # Errors
///
/// [`TriggerError`]; nothing of the batch was claimed.
pub async fn trigger_many(
    store: &Store,
    job_name: &str,
    items: &[TriggerItem],
    claimed_by: &str,
    by: Option<AuditContext<'_>>,
    now: Now,
) -> Result<TriggeredBatch, TriggerError> {
    for one in items {
        key::check(&one.key)?;
    }
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    let job = lock_job(&mut tx, job_name, now).await?;
    let claims = Claims { job: &job, name: job_name, own_keys: true, by };
    let created = claims.insert(&mut tx, items, claimed_by).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(TriggeredBatch {
        created: created.len() as u64,
        waiting: created.iter().filter(|row| row.waits).count() as u64,
        known: (items.len() - created.len()) as u64,
        paused: job.paused,
    })
}

/// Executions to claim together, of one locked job, for one caller.
pub(super) struct Claims<'a> {
    pub(super) job: &'a JobColumns,
    pub(super) name: &'a str,
    /// Whether the keys are the caller's own, rather than made of the ids.
    pub(super) own_keys: bool,
    /// The operator; `None`: a program.
    pub(super) by: Option<AuditContext<'a>>,
}

/// A new execution.
pub(super) struct Created {
    id: Uuid,
    execution_key: String,
    waits: bool,
}

impl Claims<'_> {
    /// Inserts those with a new key, records them in the audit if an operator triggers, and wakes the relay. If the
    /// job's executions run one at a time, the first is due at once when nothing is under way; all others wait for
    /// their turn.
    pub(super) async fn insert(
        &self,
        connection: &mut PgConnection,
        all: &[TriggerItem],
        claimed_by: &str,
    ) -> Result<Vec<Created>, TriggerError> {
        let Self { job, name, own_keys, by } = *self;
        let template = job.idempotency_template.as_deref();
        let ids: Vec<Uuid> = all.iter().map(|one| one.id.get()).collect();
        let keys: Vec<String> = all.iter().map(|one| one.key.clone()).collect();
        let (params, idempotency): (Vec<Value>, Vec<String>) = if job.templated {
            fill_templates(connection, job, name, all).await?
        } else {
            all.iter()
                .map(|one| {
                    let params = merge_params(&job.params, &one.params)?;
                    Ok((params, key::idempotency(template, name, &one.key)))
                })
                .collect::<Result<Vec<_>, TriggerError>>()?
                .into_iter()
                .unzip()
        };
        let created = sqlx::query_as!(
            Created,
            r#"-- insert_triggered
            INSERT INTO sexton.executions (id, job_id, execution_key, own_key, idempotency_key, scheduled_for,
                                    state, next_attempt_at, task_type, pool, target, params, claimed_by,
                                    claimed_at, relay_after, waits, flow_id)
            SELECT r.id, $1, r.key, $13, r.idempotency, $2, 'pending', $2, $4, $5, $6, r.params, $7, $2,
                   CASE WHEN r.waits THEN $3::timestamptz ELSE $2 END, CASE WHEN r.waits THEN 'turn' END,
                   CASE WHEN $14 THEN r.id END
            FROM (SELECT t.*, $8::boolean AND (t.place > 1 OR EXISTS (
                      SELECT FROM sexton.executions WHERE job_id = $1
                        AND state IN ('pending', 'running', 'retrying')
                        AND (CASE WHEN state = 'pending' AND waits = 'turn' AND admitted_at IS NULL
                                  THEN 1 ELSE 0 END) = 0
                        AND overlap_override IS NULL) OR EXISTS (
                      SELECT FROM sexton.executions WHERE job_id = $1
                        AND ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL
                        AND admitted_at IS NULL AND relay_after >= '9999-01-01 00:00:00+00'
                        AND next_attempt_at <= $2)) AS waits
                  FROM unnest($9::uuid[], $10::text[], $11::text[], $12::jsonb[])
                       WITH ORDINALITY AS t (id, key, idempotency, params, place)
                  ORDER BY t.place) AS r
            ON CONFLICT (job_id, execution_key) DO NOTHING
            RETURNING id, execution_key, waits IS NOT NULL AS "waits!""#,
            job.id,
            job.now,
            NOT_BEFORE_ADMISSION,
            job.task_type,
            job.pool,
            job.target,
            claimed_by,
            parse_column("jobs.overlap", &job.overlap, Overlap::parse)?.one_at_a_time(),
            &ids,
            &keys,
            &idempotency,
            &params,
            own_keys,
            job.begins_flow
        )
        .fetch_all(WithTimeout(&mut *connection))
        .await
        .map_err(StoreError::from)?;
        if !created.is_empty() {
            if let Some(by) = by {
                let actions: Vec<NewAction> =
                    created.iter().map(|one| one.action(job.id, by)).collect();
                record_actions(connection, by.actor, &actions, job.now).await?;
            }
            notify(connection, Notification::TicketsUnpublished).await?;
        }
        Ok(created)
    }
}

/// Returns the filled params and idempotency keys.
async fn fill_templates(
    connection: &mut PgConnection,
    job: &JobColumns,
    name: &str,
    all: &[TriggerItem],
) -> Result<(Vec<Value>, Vec<String>), TriggerError> {
    let unfilled: Vec<Unfilled> = all
        .iter()
        .map(|one| Unfilled {
            execution_key: one.key.clone(),
            scheduled_for: job.now,
            given: one.params.clone(),
        })
        .collect();
    let filled = fill_on(connection, name, &unfilled).await?;
    filled
        .into_iter()
        .map(|one| {
            if let Some(problem) = one.problem {
                return Err(TriggerError::Template(problem));
            }
            check(one.params.as_object().unwrap_or(&Map::new()))?;
            Ok((one.params, one.idempotency_key))
        })
        .collect()
}

impl Created {
    fn action(&self, job_id: Uuid, by: AuditContext<'_>) -> NewAction {
        NewAction {
            action: "trigger",
            job_id,
            execution_id: Some(self.id),
            reason: by.reason.map(str::to_owned),
            before: None,
            after: Some(json!({"state": "pending", "execution_key": self.execution_key})),
        }
    }
}
