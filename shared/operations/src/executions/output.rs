//! An attempt's output.

use serde_json::Value;
use sexton_model::output::{Chunk, Output};
use sexton_store::output::{self, AttemptWithChunks};
use sexton_store::{Store, executions};
use uuid::Uuid;

use crate::error::{NotFound, OperationError};
use crate::execution_ids;
use crate::text::line;

/// More chunks than a worker keeps of one attempt.
const MAX_CHUNKS: i64 = 1_000;
/// Maximum length of an error about output that cannot be read, in characters.
const MAX_ERROR_CHARS: usize = 200;

/// An attempt and its output.
#[derive(Debug)]
pub struct WrittenOutput {
    /// The attempt's number.
    pub number: i32,
    /// Its outcome; `None`: it runs.
    pub outcome: Option<String>,
    /// All kept output; `None`: it wrote nothing.
    pub output: Option<Output>,
}

/// Reads the output of an attempt; without a number, of the last one.
///
/// # Errors
///
/// [`NotFound`] for an execution or an attempt that does not exist; [`OperationError::Failed`] for output that cannot
/// be read.
pub async fn read(
    store: &Store,
    id: Uuid,
    number: Option<i32>,
) -> Result<WrittenOutput, OperationError> {
    match find(store, id, number).await? {
        Some(written) => Ok(written),
        None => Err(no_attempt(store, id, number).await),
    }
}

/// As [`read`]; `None`: the attempt does not exist.
///
/// # Errors
///
/// [`OperationError::Failed`] for output that cannot be read, and those of the database.
pub async fn find(
    store: &Store,
    id: Uuid,
    number: Option<i32>,
) -> Result<Option<WrittenOutput>, OperationError> {
    let Some(found) = output::find_with_chunks(store, id, number, MAX_CHUNKS).await? else {
        return Ok(None);
    };
    let AttemptWithChunks { number, outcome, chunks, legacy_output } = found;
    let output = if chunks.is_empty() {
        legacy_output.map(|value| parse_legacy_output(number, value)).transpose()
    } else {
        join_chunks(number, &chunks).map(Some)
    };
    let output = output.map_err(OperationError::Failed)?;
    Ok(Some(WrittenOutput { number, outcome, output }))
}

/// Returns the error for an attempt that does not exist.
pub(crate) async fn no_attempt(store: &Store, id: Uuid, number: Option<i32>) -> OperationError {
    let execution = match executions::find(store, id).await {
        Ok(Some(execution)) => execution,
        Ok(None) => return execution_ids::missing(id),
        Err(error) => return error.into(),
    };
    match number {
        Some(number) => NotFound::Attempt { execution: id, number }.into(),
        None => NotFound::AnyAttempt { execution: id, state: execution.state }.into(),
    }
}

/// Returns the output in an attempt's chunks.
///
/// # Errors
///
/// The remedy for a row that no worker of this version wrote.
pub fn join_chunks(number: i32, chunks: &[Chunk]) -> Result<Output, String> {
    Output::of(chunks).map_err(|error| unreadable(number, "attempt_output", &error.to_string()))
}

/// Parses the output as workers stored it before chunks existed, in the column `attempts.output`.
///
/// # Errors
///
/// The remedy for a value that no worker wrote.
pub fn parse_legacy_output(number: i32, value: Value) -> Result<Output, String> {
    serde_json::from_value(value)
        .map_err(|error| unreadable(number, "attempts.output", &error.to_string()))
}

fn unreadable(number: i32, place: &str, error: &str) -> String {
    let error = line(error, MAX_ERROR_CHARS);
    format!(
        "the output of attempt {number} cannot be read ({error}); look at {place} in the database"
    )
}
