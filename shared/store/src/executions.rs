//! Read access to executions, for the console.
//!
//! Reads take no locks, and the protocol decides nothing by them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Store, StoreError};

/// Maximum number of rows of one page.
pub const MAX_PAGE: i64 = 1_000;

/// A row of `executions`, with its job's name; the fields are named after the columns. The open token is left out,
/// because only its worker may know it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct Execution {
    pub id: Uuid,
    pub job_id: Uuid,
    pub job_name: String,
    pub execution_key: String,
    pub own_key: bool,
    pub scheduled_for: DateTime<Utc>,
    pub state: String,
    pub attempt: i32,
    pub rev: i32,
    pub task_type: String,
    pub pool: String,
    pub target: Option<String>,
    pub params: Value,
    pub idempotency_key: String,
    pub claimed_by: String,
    pub claimed_at: DateTime<Utc>,
    pub ticket_published_at: Option<DateTime<Utc>>,
    pub relay_after: DateTime<Utc>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub reconcile_count: i16,
    pub retries_used: i32,
    pub timeouts_used: i32,
    pub crashes_used: i32,
    pub snoozes_used: i32,
    pub max_crashes: Option<i32>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub worker_id: Option<Uuid>,
    pub lease_until: Option<DateTime<Utc>>,
    pub cancel_requested: bool,
    pub outcome: Option<String>,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    pub fingerprint: Option<String>,
    pub result: Option<Value>,
    pub skip_reason: Option<String>,
    pub tz_version: Option<String>,
    pub backfill: Option<i64>,
    pub overlap_override: Option<String>,
    pub waits: Option<String>,
    pub admitted_at: Option<DateTime<Utc>>,
    pub replaced_by: Option<Uuid>,
    /// `attempts.progress` of the open attempt.
    pub progress: Option<Value>,
    /// Number of attempts that were opened; `None`: retention has removed them.
    pub attempts_made: Option<i64>,
}

impl Execution {
    /// Returns whether its ticket waits until its job is free.
    pub fn is_waiter(&self) -> bool {
        self.state == "pending" && self.waits.is_some() && self.admitted_at.is_none()
    }
}

/// A filter for [`list`]; an execution must meet every condition that is set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ExecutionFilter {
    /// Of this job.
    pub job: Option<Uuid>,
    /// In one of these states; empty: any.
    pub states: Vec<String>,
    /// Nominal time at or after this.
    pub since: Option<DateTime<Utc>>,
    /// Nominal time before this.
    pub until: Option<DateTime<Utc>>,
    /// Params that hold these texts at these paths.
    pub params: Vec<ParamMatch>,
    /// With an attempt by this worker: the instance's name or the process's id.
    pub worker: Option<String>,
    /// Claimed before this one, where the previous page ended.
    pub before: Option<Uuid>,
}

/// A path in the params and its text; numbers compare as they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamMatch {
    /// Field names, and indexes of arrays, from the outside in.
    pub path: Vec<String>,
    /// The text.
    pub value: String,
}

/// Lists executions, newest claim first, at most `limit` or [`MAX_PAGE`].
pub async fn list(
    store: &Store,
    filter: &ExecutionFilter,
    limit: i64,
) -> Result<Vec<Execution>, StoreError> {
    let params: Vec<Value> =
        filter.params.iter().map(|m| json!({"path": m.path, "value": m.value})).collect();
    let params = (!params.is_empty()).then_some(Value::Array(params));
    // If retention has removed the row that ended the previous page, its id still gives about the instant.
    let about = filter.before.and_then(|id| id.get_timestamp()).and_then(|stamp| {
        let (seconds, nanos) = stamp.to_unix();
        DateTime::from_timestamp(seconds as i64, nanos)
    });
    Ok(sqlx::query_file_as!(
        Execution,
        "src/executions/list.sql",
        filter.job,
        &filter.states,
        filter.since,
        filter.until,
        params,
        filter.worker,
        filter.before,
        about,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns one execution.
pub async fn find(store: &Store, id: Uuid) -> Result<Option<Execution>, StoreError> {
    Ok(list_by_ids(store, &[id]).await?.pop())
}

/// Returns the executions with these ids, in no particular order.
pub async fn list_by_ids(store: &Store, ids: &[Uuid]) -> Result<Vec<Execution>, StoreError> {
    Ok(sqlx::query_file_as!(Execution, "src/executions/of_ids.sql", ids)
        .fetch_all(store.with_timeout())
        .await?)
}
