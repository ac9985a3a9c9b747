//! Read access to executions, for the console.
//!
//! Reads take no locks, and the protocol decides nothing by them.

mod search;
mod statements;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::flows::NOT_BEFORE_OTHERS;
use crate::{Store, StoreError};

pub(crate) use search::list_cancellable;
pub use search::{
    ExecutionPage, ExecutionPosition, MAX_BRIEFLY_WALKED_EXECUTIONS, MAX_PAGE,
    MAX_WALKED_EXECUTIONS, explain, list,
};

/// A row of `executions`, with its job's name; the fields are named after the columns. The open token is left out,
/// because only its worker may know it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    pub flow_id: Option<Uuid>,
    /// `attempts.progress` of the open attempt.
    pub progress: Option<Value>,
    /// Number of attempts that were opened; `None`: retention has removed them.
    pub attempts_made: Option<i64>,
    /// Where it came from, for its traces; no document has it.
    #[serde(skip)]
    pub traceparent: Option<String>,
    /// Its job's time zone, for times by the job's clock; no document has it.
    #[serde(skip)]
    pub timezone: String,
}

impl Execution {
    /// Returns whether it waits for other members of its flow.
    pub fn is_blocked(&self) -> bool {
        self.flow_id.is_some()
            && self.is_waiter()
            && self.next_attempt_at.is_some_and(|due| due >= NOT_BEFORE_OTHERS)
    }

    /// Returns whether its ticket waits until its job is free.
    pub fn is_waiter(&self) -> bool {
        self.state == "pending" && self.waits.is_some() && self.admitted_at.is_none()
    }
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
