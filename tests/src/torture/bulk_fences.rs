//! The fences of bulks and of their questions, which are in no model, and how each is removed in a
//! copy of the source.

use super::fences::{Edit, Fence};

const CARRY: &str = "shared/store/src/bulk/execute.rs";
const MOVES: &str = "shared/store/src/operator/transitions.rs";
const HEAR: &str = "shared/store/src/bulk/question/collect_answers.rs";

/// All fences of bulks.
pub const BULK_FENCES: &[Fence] = &[
    // A batch and its statement both check that an execution is still failed.
    Fence {
        name: "bulk-still-failed",
        edits: &[
            Edit {
                file: CARRY,
                text: "acts && is_same && !(kind",
                instead: "(acts || true) && is_same && !(kind",
            },
            Edit {
                file: MOVES,
                text: "AND e.attempt = s.attempt AND e.state = 'failed' AND j.id = e.job_id",
                instead: "AND e.attempt = s.attempt AND j.id = e.job_id",
            },
        ],
        first: &["bulk beside an operator, a scheduler killed"],
        expected: &["ran after its end"],
    },
    Fence {
        name: "bulk-answer",
        edits: &[Edit {
            file: HEAR,
            text: "Some(state) => read_answer(state, ended.result.as_ref(), ended.error.as_deref()),",
            instead: "Some(state) => read_answer(state, ended.result.as_ref(), ended.error.as_deref())\n                \
                      .map(|_| VerifyAnswer::NotYet),",
        }],
        first: &["bulk, a worker killed in a question"],
        expected: &["happened twice"],
    },
];
