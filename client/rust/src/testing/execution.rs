//! One execution that was enqueued.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::FromRow;
use sqlx::types::Json;
use uuid::Uuid;

use super::ReadError;

/// How much of an execution's params a message shows, in characters.
const MAX_SHOWN_PARAMS: usize = 300;

/// An execution that was enqueued, with its params as `P`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EnqueuedExecution<P> {
    /// Its id.
    pub execution_id: Uuid,
    /// Its job's name.
    pub job: String,
    /// The task type that the job had at the call.
    pub task_type: String,
    /// The job's target, if it has one.
    pub target: Option<String>,
    /// Its key, as [`Enqueued::key`](crate::Enqueued::key) is.
    pub key: String,
    /// The key that is unique within the job. It differs from `key` where that stands for an execution while it is open.
    pub execution_key: String,
    /// The idempotency key that its attempts receive.
    pub idempotency_key: String,
    /// The params that a worker would get, those of the job included.
    pub params: P,
    /// The same as they stand in the row, also what `P` does not read.
    pub raw_params: Value,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its state, such as `pending`.
    pub state: String,
    /// The number of the attempt that is next, or runs, or was the last; from 1.
    pub attempt: u32,
    /// When it is to run, by the database's clock.
    pub scheduled_for: DateTime<Utc>,
    /// When its next attempt is due: at first `scheduled_for`, later after a wait. `None`: it runs, or has ended.
    pub next_attempt_at: Option<DateTime<Utc>>,
}

impl<P> EnqueuedExecution<P> {
    /// Returns whether it waits for an attempt that is due at this instant.
    pub fn is_due_at(&self, instant: DateTime<Utc>) -> bool {
        self.next_attempt_at.is_some_and(|due| due <= instant)
    }
}

impl<P> fmt::Display for EnqueuedExecution<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.scheduled_for.to_rfc3339_opts(SecondsFormat::Millis, true);
        let params = shortened(&self.raw_params);
        write!(f, "{:?}, {}, scheduled for {at}, {params}", self.key, self.state)
    }
}

/// The params as text, without what is more than a message may hold.
fn shortened(params: &Value) -> String {
    let text = params.to_string();
    match text.char_indices().nth(MAX_SHOWN_PARAMS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The row as it is read.
#[derive(FromRow)]
pub(super) struct Row {
    id: Uuid,
    task_type: String,
    target: Option<String>,
    key: String,
    execution_key: String,
    idempotency_key: String,
    params: Value,
    labels: Option<Json<BTreeMap<String, String>>>,
    state: String,
    attempt: i32,
    scheduled_for: DateTime<Utc>,
    next_attempt_at: Option<DateTime<Utc>>,
}

impl Row {
    /// Reads the params as the type.
    pub(super) fn typed<P: DeserializeOwned>(
        self,
        job: &str,
    ) -> Result<EnqueuedExecution<P>, ReadError> {
        let params = P::deserialize(&self.params).map_err(|source| ReadError::Params {
            job: job.to_owned(),
            key: self.key.clone(),
            params: shortened(&self.params),
            source,
        })?;
        Ok(EnqueuedExecution {
            execution_id: self.id,
            job: job.to_owned(),
            task_type: self.task_type,
            target: self.target,
            key: self.key,
            execution_key: self.execution_key,
            idempotency_key: self.idempotency_key,
            params,
            raw_params: self.params,
            labels: self.labels.map(|labels| labels.0).unwrap_or_default(),
            state: self.state,
            attempt: self.attempt.unsigned_abs(),
            scheduled_for: self.scheduled_for,
            next_attempt_at: self.next_attempt_at,
        })
    }
}
