//! The ids of an execution's traces. Every process computes the same ones.

use uuid::Uuid;

use crate::id::{AttemptNumber, ExecutionId};

/// Returns the id of the trace in which the ticket of an attempt is published. That of the first attempt is the execution's
/// id, or that of its `origin`, the trace from which the execution came; each later attempt begins a trace.
pub fn publication_trace(
    execution: ExecutionId,
    attempt: i32,
    origin: Option<[u8; 16]>,
) -> [u8; 16] {
    if attempt != AttemptNumber::FIRST.get() {
        return derived(execution, &format!("attempt {attempt}"));
    }
    origin.unwrap_or(*execution.get().as_bytes())
}

/// Returns the id that belongs to a step of an execution.
pub fn derived(execution: ExecutionId, step: &str) -> [u8; 16] {
    *Uuid::new_v5(&execution.get(), step.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempt_is_in_the_trace_of_its_origin_and_each_later_one_in_its_own() {
        let id = ExecutionId::new(Uuid::from_u128(7));
        assert_eq!(publication_trace(id, 1, None), *id.get().as_bytes());
        assert_eq!(publication_trace(id, 1, Some([3; 16])), [3; 16]);
        let [second, third] = [2, 3].map(|number| publication_trace(id, number, Some([3; 16])));
        assert!(second != third && second != [3; 16]);
        assert_eq!(second, publication_trace(id, 2, None));
    }
}
