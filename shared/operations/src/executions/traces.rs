//! In which traces an execution's attempts are found.

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::trace_ids::publication_trace;
use sexton_service::traces::TraceContext;
use sexton_store::attempts::Attempt;
use sexton_store::executions::Execution;

use crate::digest::hex;

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
pub fn list(execution: &Execution, attempts: &[Attempt]) -> Vec<AttemptTrace> {
    let recorded = execution.traceparent.as_deref();
    let Some(origin) = recorded.and_then(|text| TraceContext::parse(text, None)) else {
        return Vec::new();
    };
    let id = ExecutionId::new(execution.id);
    let first = AttemptNumber::FIRST.get();
    let last = attempts.last().map(|attempt| attempt.number).filter(|last| *last != first);
    let trace = |attempt| {
        let trace_id = hex(&publication_trace(id, attempt, Some(origin.trace_id)));
        AttemptTrace { attempt, trace_id }
    };
    [Some(first), last].into_iter().flatten().map(trace).collect()
}
