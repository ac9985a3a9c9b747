//! Attempts, for people, and the steps of the protocol that open, renew and end them.
//!
//! [`open`] uses up a ticket; [`lease`] renews; [`settle`] records an end, or a [`task`]'s own transaction does;
//! [`output`](mod@output) keeps what a task writes. [`running`] and [`lost`] find and end the attempts of workers that are gone.

pub mod lease;
pub mod lost;
pub mod open;
pub mod output;
pub mod running;
pub mod settle;
pub mod task;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A row of `all_attempts` without its output, with its worker's name while that is known; the other fields are named
/// after the columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    pub execution_id: Uuid,
    pub number: i32,
    pub worker_id: Uuid,
    pub worker_name: Option<String>,
    pub opened_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    pub error_class: Option<String>,
    pub error_message: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub result: Option<Value>,
    pub progress: Option<Value>,
    pub late_outcome: Option<String>,
    pub late_at: Option<DateTime<Utc>>,
}

/// An attempt, with its output if a worker from before [`output`](mod@crate::attempts::output) ran it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct AttemptOutput {
    pub execution_id: Uuid,
    pub number: i32,
    pub outcome: Option<String>,
    pub output: Option<Value>,
}

/// Returns the newest `limit` attempts of an execution, oldest first.
pub async fn list_by_execution(
    store: &Store,
    id: Uuid,
    limit: i64,
) -> Result<Vec<Attempt>, StoreError> {
    let mut attempts = sqlx::query_as!(
        Attempt,
        r#"-- attempts_of_execution
        SELECT a.execution_id AS "execution_id!", a.number AS "number!", a.worker_id AS "worker_id!",
               i.name AS "worker_name?", a.opened_at AS "opened_at!",
               a.finished_at, a.outcome, a.error_class, a.error_message, a.exit_code, a.signal,
               a.result, a.progress, a.late_outcome, a.late_at
        FROM sexton.all_attempts a LEFT JOIN sexton.instances i ON i.id = a.worker_id
        WHERE a.execution_id = $1 ORDER BY a.number DESC LIMIT $2"#,
        id,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    attempts.reverse();
    Ok(attempts)
}

/// Returns the output of one attempt, of the last one if the number is `None`. `None` if the attempt does not exist.
pub async fn output(
    store: &Store,
    id: Uuid,
    number: Option<i32>,
) -> Result<Option<AttemptOutput>, StoreError> {
    Ok(sqlx::query_as!(
        AttemptOutput,
        r#"-- attempt_output
        SELECT execution_id AS "execution_id!", number AS "number!", outcome, output FROM sexton.all_attempts
        WHERE execution_id = $1 AND ($2::int IS NULL OR number = $2)
        ORDER BY number DESC LIMIT 1"#,
        id,
        number
    )
    .fetch_optional(store.with_timeout())
    .await?)
}
