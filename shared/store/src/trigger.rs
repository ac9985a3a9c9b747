//! Trigger: claim an execution by hand, or for another system.
//!
//! The row is the claim, as with a firing: a key that is there already gives back its execution, so a
//! caller may ask again after a lost answer. The ticket is owed at once; the relay publishes it.
//!
//! A trigger runs also while its job is paused, and beside an execution under way: who triggers wants
//! it now. Only of a job whose executions run one at a time (`queue`, `replace`) it waits for its turn
//! while any is under way: it is never skipped, and replaces nothing. The cursor of the schedule is not
//! moved.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::job::Overlap;
use sexton_model::key;
use sexton_model::params::{ParamsError, check};
use sexton_model::state::State;
use uuid::Uuid;

use crate::bounded::{Bounded, commit};
use crate::error::known;
use crate::listen::Wake;
use crate::open::number;
use crate::operator::{AuditDeed, By, bound_waiting, lock_timed_out, record_deeds, wake};
use crate::waiters::NOT_BEFORE_ADMISSION;
use crate::{Now, Store, StoreError};

/// What to run.
#[derive(Clone, Debug)]
pub struct Trigger<'a> {
    /// The job.
    pub job: &'a str,
    /// The caller's own key, which deduplicates; `None`: every call is an execution.
    pub key: Option<&'a str>,
    /// Replace the job's params of the same name, at the top level.
    pub params: Map<String, Value>,
    /// Drawn by the caller; the execution's id if it is new.
    pub id: ExecutionId,
    /// `<instance>:<pid>` of the caller.
    pub claimed_by: &'a str,
}

/// The execution of a trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Triggered {
    /// Its id.
    pub id: ExecutionId,
    /// Its key.
    pub execution_key: String,
    /// Whether this call made it.
    pub created: bool,
    /// Its state.
    pub state: State,
    /// Its attempt number.
    pub attempt: AttemptNumber,
    /// When it was triggered.
    pub scheduled_for: DateTime<Utc>,
    /// Whether the job is paused: it runs all the same.
    pub paused: bool,
    /// Whether it waits until the job is free.
    pub waits: bool,
}

/// Why nothing was triggered.
#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    /// There is no job of this name.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// The key cannot be one.
    #[error(transparent)]
    Key(#[from] key::KeyError),
    /// The job's params with these in them cannot be handed to a task.
    #[error("the params {0}")]
    Params(#[from] ParamsError),
    /// Somebody kept the job locked for 5 s. Try again.
    #[error("job {0:?} is locked by somebody else; try again")]
    Locked(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct JobColumns {
    id: Uuid,
    task_type: String,
    pool: String,
    target: Option<String>,
    params: Value,
    idempotency_template: Option<String>,
    overlap: String,
    paused: bool,
    now: DateTime<Utc>,
}

/// Claims an execution of a job.
///
/// # Errors
///
/// [`TriggerError`]; nothing has been claimed then.
pub async fn trigger(
    store: &Store,
    request: Trigger<'_>,
    by: By<'_>,
    now: Now,
) -> Result<Triggered, TriggerError> {
    let execution_key = match request.key {
        Some(own) => {
            key::check(own)?;
            own.to_owned()
        }
        None => format!("manual-{}", request.id),
    };
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    bound_waiting(&mut tx).await.map_err(StoreError::from)?;
    let found = sqlx::query_as!(
        JobColumns,
        r#"-- lock_job_to_trigger
        SELECT id, task_type, pool, target, params, idempotency_template, overlap,
               status = 'paused' AS "paused!", coalesce($2, now()) AS "now!"
        FROM jobs
        WHERE name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE"#,
        request.job,
        now
    )
    .fetch_optional(Bounded(&mut *tx))
    .await;
    let job = match found {
        Ok(job) => job.ok_or_else(|| TriggerError::Missing(request.job.to_owned()))?,
        Err(error) if lock_timed_out(&error) => {
            return Err(TriggerError::Locked(request.job.to_owned()));
        }
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let params = merged(&job.params, &request.params)?;
    let template = job.idempotency_template.as_deref();
    let inserted = sqlx::query!(
        "-- insert_triggered
        INSERT INTO executions (id, job_id, execution_key, own_key, idempotency_key, scheduled_for,
                                state, next_attempt_at, task_type, pool, target, params, claimed_by,
                                claimed_at, relay_after, waits)
        SELECT $1, $2, $3, $4, $5, $6, 'pending', $6, $7, $8, $9, $10, $11, $6,
               CASE WHEN busy THEN $13::timestamptz ELSE $6 END, CASE WHEN busy THEN 'turn' END
        FROM (SELECT $12::boolean AND EXISTS (
                  SELECT FROM executions WHERE job_id = $2
                    AND state IN ('pending', 'running', 'retrying')
                    AND overlap_override IS NULL) AS busy) AS job
        ON CONFLICT (job_id, execution_key) DO NOTHING",
        request.id.get(),
        job.id,
        execution_key,
        request.key.is_some(),
        key::idempotency(template, request.job, &execution_key),
        job.now,
        job.task_type,
        job.pool,
        job.target,
        params,
        request.claimed_by,
        known("jobs.overlap", &job.overlap, Overlap::parse)?.one_at_a_time(),
        NOT_BEFORE_ADMISSION
    )
    .execute(Bounded(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    let created = inserted.rows_affected() == 1;
    let row = sqlx::query!(
        "-- triggered_row
        SELECT id, state, attempt, scheduled_for,
               state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL AS \"waits!\"
        FROM executions WHERE job_id = $1 AND execution_key = $2",
        job.id,
        execution_key
    )
    .fetch_one(Bounded(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    if created {
        let after = json!({"state": "pending", "execution_key": execution_key});
        let deed = AuditDeed {
            action: "trigger",
            job_id: job.id,
            execution_id: Some(row.id),
            reason: by.reason.map(str::to_owned),
            before: None,
            after: Some(after),
        };
        record_deeds(&mut tx, by.actor, &[deed], job.now).await?;
        wake(&mut tx, Wake::Owed).await?;
    }
    commit(tx).await.map_err(StoreError::from)?;
    Ok(Triggered {
        id: ExecutionId::new(row.id),
        execution_key,
        created,
        state: known("executions.state", &row.state, State::parse)?,
        attempt: number(row.attempt)?,
        scheduled_for: row.scheduled_for,
        paused: job.paused,
        waits: row.waits,
    })
}

fn merged(job: &Value, own: &Map<String, Value>) -> Result<Value, TriggerError> {
    let mut params = job.as_object().cloned().unwrap_or_default();
    params.extend(own.clone());
    check(&params)?;
    Ok(Value::Object(params))
}
