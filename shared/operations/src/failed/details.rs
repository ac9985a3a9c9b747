//! The details of one failed execution.

use serde::Serialize;
use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::output::{Chunk, Line, Output};
use sexton_model::ticket::{ParkedDetails, Ticket};
use sexton_store::attempts::{self, Attempt};
use sexton_store::executions::{self, Execution};
use sexton_store::operator::OperatorAction;
use sexton_store::output::AttemptWithChunks;
use sexton_store::{Store, operator, output};
use uuid::Uuid;

use crate::error::OperationError;
use crate::executions::output::{join_chunks, parse_legacy_output};
use crate::groups::{self, GroupWithTrend};
use crate::secrets::{mask_actions, mask_executions};

/// Maximum number of attempts shown.
pub const MAX_ATTEMPTS: i32 = 100;
/// Maximum number of output lines.
pub const TAIL_LINES: usize = 10;
/// Maximum length of an output line, in characters.
pub const TAIL_CHARS: usize = 400;
/// More chunks than a worker keeps of one attempt.
const MAX_CHUNKS: i64 = 1_000;

/// A failed execution's details.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailureDetails {
    /// The row, its params masked.
    #[serde(flatten)]
    pub execution: Execution,
    /// The newest [`MAX_ATTEMPTS`], oldest first.
    pub attempts: Vec<Attempt>,
    /// The end of the last attempt's output.
    #[serde(rename = "output_tail")]
    pub tail: Option<Tail>,
    /// Its group; `None`: it has no fingerprint yet.
    pub group: Option<GroupWithTrend>,
    /// Its parked message, if it is failed.
    #[serde(rename = "parked_message")]
    pub parked: Option<ParkedMessage>,
    /// Operators' actions, oldest first.
    #[serde(rename = "operator_actions")]
    pub actions: Vec<OperatorAction>,
}

/// The end of an attempt's output.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tail {
    /// The attempt.
    pub number: i32,
    /// Its last lines, each cut to [`TAIL_CHARS`].
    pub lines: Vec<Line>,
    /// Number of lines before those.
    #[serde(rename = "lines_before")]
    pub before: i64,
}

/// The ticket in the failed queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedMessage {
    /// When the broker confirmed it; `None`: it is unpublished.
    pub published_at: Option<chrono::DateTime<chrono::Utc>>,
    /// Its body as published, with the params masked.
    pub body: Value,
}

/// Reads the details; `None`: the execution does not exist.
///
/// # Errors
///
/// Those of the database, and [`OperationError::Failed`] for output that cannot be read.
pub async fn find(store: &Store, id: Uuid) -> Result<Option<FailureDetails>, OperationError> {
    let Some(mut execution) = executions::find(store, id).await? else { return Ok(None) };
    mask_executions(std::slice::from_mut(&mut execution));
    let attempts = attempts::list_by_execution(store, id, MAX_ATTEMPTS.into()).await?;
    let tail = match attempts.last() {
        Some(last) => read_tail(store, last).await?,
        None => None,
    };
    let group = match &execution.fingerprint {
        Some(fingerprint) => groups::find(store, fingerprint).await?,
        None => None,
    };
    let mut actions = operator::list_by_execution(store, id).await?;
    mask_actions(&mut actions);
    let parked = (execution.state == "failed").then(|| parked_message(&execution)).flatten();
    Ok(Some(FailureDetails { execution, attempts, tail, group, parked, actions }))
}

async fn read_tail(store: &Store, attempt: &Attempt) -> Result<Option<Tail>, OperationError> {
    let (id, number) = (attempt.execution_id, attempt.number);
    let found = output::find_with_chunks(store, id, Some(number), MAX_CHUNKS).await?;
    let Some(AttemptWithChunks { chunks, legacy_output, .. }) = found else { return Ok(None) };
    let output = if chunks.is_empty() {
        legacy_output.map(|value| parse_legacy_output(number, value)).transpose()
    } else {
        join_chunks(number, &chunks).map(Some)
    };
    let output = output.map_err(OperationError::Failed)?;
    let written_lines = chunks.last().map(|last: &Chunk| last.first_line + last.lines - 1);
    Ok(output
        .filter(|output| !output.lines.is_empty())
        .map(|output| last_lines(number, output, written_lines)))
}

fn last_lines(number: i32, output: Output, written_lines: Option<i64>) -> Tail {
    let line_count = output.lines.len();
    let written_lines = written_lines.unwrap_or(line_count as i64);
    let lines = output.lines.into_iter().skip(line_count.saturating_sub(TAIL_LINES));
    let lines: Vec<Line> = lines
        .map(|line| {
            let long = line.text.chars().count() > TAIL_CHARS;
            let text = line.text.chars().take(TAIL_CHARS).collect::<String>();
            Line { text: if long { text + "…" } else { text }, ..line }
        })
        .collect();
    let before = (written_lines - lines.len() as i64).max(0);
    Tail { number, lines, before }
}

/// Returns the message that a relay makes of the row.
fn parked_message(execution: &Execution) -> Option<ParkedMessage> {
    let ticket = Ticket {
        execution_id: ExecutionId::new(execution.id),
        attempt: AttemptNumber::new(execution.attempt)?,
        job_id: JobId::new(execution.job_id),
        job: execution.job_name.clone(),
        task_type: execution.task_type.clone(),
        target: execution.target.clone(),
        params: execution.params.clone(),
        execution_key: execution.execution_key.clone(),
        scheduled_for: execution.scheduled_for,
        idempotency_key: execution.idempotency_key.clone(),
    };
    let parked = ParkedDetails {
        failed_at: execution.finished_at?,
        failed_reason: execution.error_message.clone().unwrap_or_default(),
        retry_count: execution.retries_used.max(0) as u32,
    };
    let body = serde_json::from_slice(&ticket.body(Some(&parked))).ok()?;
    Some(ParkedMessage { published_at: execution.ticket_published_at, body })
}
