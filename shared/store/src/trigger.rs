//! Trigger: claims an execution by hand, or for another system.
//!
//! The row is the claim, as with a firing: an existing key returns its execution, so a caller may repeat the call
//! after a lost answer. The ticket is due at once; the relay publishes it.
//!
//! A trigger also runs while its job is paused, and beside an execution under way, because its caller wants it now.
//! Only if the job's executions run one at a time (`queue`, `replace`) it waits for its turn while any is under way:
//! it is never skipped, and replaces nothing. The schedule's cursor does not move.

mod many;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::key;
use sexton_model::params::{ParamsError, check};
use sexton_model::state::State;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::operator::{AuditContext, is_lock_timeout, set_lock_timeout};
use crate::{Now, Store, StoreError};

use many::Claims;
pub use many::{MAX_BATCH_TRIGGERS, TriggerItem, TriggeredBatch, trigger_many};

/// A trigger's job, key and params.
#[derive(Clone, Debug)]
pub struct Trigger<'a> {
    /// The job.
    pub job: &'a str,
    /// The caller's own key, which deduplicates; `None`: every call makes an execution.
    pub key: Option<&'a str>,
    /// Override the job's params of the same name, at the top level.
    pub params: Map<String, Value>,
    /// Drawn by the caller; the execution's id if it is new.
    pub id: ExecutionId,
    /// The caller: `<user>@<host>:<pid>`.
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
    /// Whether the job is paused; the execution runs all the same.
    pub paused: bool,
    /// Whether it waits until the job is free.
    pub waits: bool,
}

/// Why a trigger was refused.
#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    /// No job has this name.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// The key is invalid.
    #[error(transparent)]
    Key(#[from] key::KeyError),
    /// The job's params with these overrides are invalid.
    #[error("the params {0}")]
    Params(#[from] ParamsError),
    /// A placeholder of the job cannot be filled: a param is missing, for example.
    #[error("{0}")]
    Template(String),
    /// Another transaction kept the job locked for 5 s. Try again.
    #[error("job {0:?} is locked by somebody else; try again")]
    Locked(String),
    /// An error of the database.
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
    templated: bool,
    begins_flow: bool,
    overlap: String,
    paused: bool,
    now: DateTime<Utc>,
}

/// Claims an execution of a job. `by` is the operator for the audit; `None`: a program triggers, and the execution's
/// row names it.
///
/// # Errors
///
/// [`TriggerError`]; nothing was claimed.
pub async fn trigger(
    store: &Store,
    request: Trigger<'_>,
    by: Option<AuditContext<'_>>,
    now: Now,
) -> Result<Triggered, TriggerError> {
    let execution_key = match request.key {
        Some(own_key) => {
            key::check(own_key)?;
            own_key.to_owned()
        }
        None => format!("manual-{}", request.id),
    };
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    let job = lock_job(&mut tx, request.job, now).await?;
    let one = TriggerItem { id: request.id, key: execution_key.clone(), params: request.params };
    let claims = Claims { job: &job, name: request.job, own_keys: request.key.is_some(), by };
    let created = claims.insert(&mut tx, &[one], request.claimed_by).await?.len() == 1;
    let row = sqlx::query!(
        "-- triggered_row
        SELECT id, state, attempt, scheduled_for,
               state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL AS \"waits!\"
        FROM sexton.executions WHERE job_id = $1 AND execution_key = $2",
        job.id,
        execution_key
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(Triggered {
        id: ExecutionId::new(row.id),
        execution_key,
        created,
        state: parse_column("executions.state", &row.state, State::parse)?,
        attempt: parse_attempt_number(row.attempt)?,
        scheduled_for: row.scheduled_for,
        paused: job.paused,
        waits: row.waits,
    })
}

/// Locks the job, so that a claim uses its current definition.
async fn lock_job(
    connection: &mut PgConnection,
    name: &str,
    now: Now,
) -> Result<JobColumns, TriggerError> {
    let found = sqlx::query_as!(
        JobColumns,
        r#"-- lock_job_to_trigger
        SELECT id, task_type, pool, target, params, idempotency_template, templated,
               flow IS NOT NULL AS "begins_flow!", overlap,
               status = 'paused' AS "paused!", coalesce($2, now()) AS "now!"
        FROM sexton.jobs
        WHERE name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE"#,
        name,
        now
    )
    .fetch_optional(WithTimeout(connection))
    .await;
    match found {
        Ok(job) => job.ok_or_else(|| TriggerError::Missing(name.to_owned())),
        Err(error) if is_lock_timeout(&error) => Err(TriggerError::Locked(name.to_owned())),
        Err(error) => Err(StoreError::from(error).into()),
    }
}

fn merge_params(job: &Value, overrides: &Map<String, Value>) -> Result<Value, TriggerError> {
    let mut params = job.as_object().cloned().unwrap_or_default();
    params.extend(overrides.clone());
    check(&params)?;
    Ok(Value::Object(params))
}
