//! In which traces an execution's attempts are found.

use std::fmt::Write as _;

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::trace_ids::publication_trace;
use sexton_service::traces::TraceContext;
use sexton_store::Store;
use sexton_store::attempts::Attempt;
use sexton_store::executions;

use crate::error::OperationError;

/// A trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptTrace {
    /// The attempt that it is of.
    pub attempt: i32,
    /// Its id, as tracing systems write it.
    pub trace_id: String,
}

/// Returns the traces of the first and the last of these attempts; none if neither a scheduler nor the execution's producer
/// has recorded a trace: then nothing shows that the execution is traced at all.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    execution: ExecutionId,
    attempts: &[Attempt],
) -> Result<Vec<AttemptTrace>, OperationError> {
    let recorded = executions::find_traceparent(store, execution.get()).await?;
    let origin = recorded.as_deref().and_then(|text| TraceContext::parse(text, None));
    let Some(origin) = origin else { return Ok(Vec::new()) };
    let first = AttemptNumber::FIRST.get();
    let last = attempts.last().map(|attempt| attempt.number).filter(|last| *last != first);
    let trace = |attempt| {
        let trace_id = hex(publication_trace(execution, attempt, Some(origin.trace_id)));
        AttemptTrace { attempt, trace_id }
    };
    Ok([Some(first), last].into_iter().flatten().map(trace).collect())
}

fn hex(id: [u8; 16]) -> String {
    id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
