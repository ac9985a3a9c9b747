//! Flows: executions that depend on the ends of others.
//!
//! The database decides by [`verdict`]'s table what becomes of a member when those upstream of it have ended, in the
//! transaction that ends them (`sexton.flow_verdict`; a test compares the two).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text_enum::text_enum;

mod check;

pub use check::{
    MAX_EDGES, MAX_JOB_EDGES, MAX_JOB_FLOW_BYTES, MAX_JOB_MEMBERS, MAX_MEMBERS, MAX_NAME_BYTES,
    START, check_members,
};

/// By which ends of its upstream members a member runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsWhen {
    /// All of them succeeded. As soon as one ends otherwise, the member is skipped.
    #[default]
    AllSucceeded,
    /// All of them ended, in whatever way.
    AllDone,
    /// One of them ended otherwise than by success. If all succeed, the member is skipped.
    AnyFailed,
}

text_enum!(RunsWhen {
    AllSucceeded => "all_succeeded",
    AllDone => "all_done",
    AnyFailed => "any_failed",
});

/// What the discard of a member means for those downstream of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDiscard {
    /// It ended without success.
    #[default]
    Skip,
    /// It counts as a success.
    Run,
    /// The whole flow is cancelled.
    Cancel,
}

text_enum!(OnDiscard { Skip => "skip", Run => "run", Cancel => "cancel" });

/// A member of a flow, as it is defined. The fields are those of `sexton.flow` and of `[[flow.member]]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Unique in the flow.
    pub name: String,
    /// The job that it is an execution of.
    pub job: String,
    /// Override the job's params. They are no templates.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Params that are filled from results when it becomes due: `{{ upstream.NAME.result.… }}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub results: Map<String, Value>,
    /// The members that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// When it runs.
    #[serde(default, rename = "when", skip_serializing_if = "is_default")]
    pub runs_when: RunsWhen,
    /// What its discard means.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_discard: OnDiscard,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What becomes of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It becomes due.
    Run,
    /// It ends as skipped.
    Skip,
}

text_enum!(Verdict { Run => "run", Skip => "skip" });

/// Returns what becomes of a member of which `waits_for` upstream members have not ended, and `unsuccessful` ended
/// otherwise than by success; `None`: it waits. A failed execution has not ended: it is parked, and may still succeed.
pub const fn verdict(runs_when: RunsWhen, waits_for: u32, unsuccessful: u32) -> Option<Verdict> {
    match (runs_when, waits_for, unsuccessful) {
        (RunsWhen::AllSucceeded, _, 1..) | (RunsWhen::AnyFailed, 0, 0) => Some(Verdict::Skip),
        (RunsWhen::AnyFailed, _, 1..)
        | (RunsWhen::AllSucceeded, 0, 0)
        | (RunsWhen::AllDone, 0, _) => Some(Verdict::Run),
        (_, 1.., _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_waits_until_its_ends_decide() {
        use RunsWhen::{AllDone, AllSucceeded, AnyFailed};
        for (runs_when, waits_for, unsuccessful, expected) in [
            (AllSucceeded, 2, 0, None),
            (AllSucceeded, 2, 1, Some(Verdict::Skip)),
            (AllSucceeded, 0, 0, Some(Verdict::Run)),
            (AllDone, 1, 5, None),
            (AllDone, 0, 5, Some(Verdict::Run)),
            (AnyFailed, 1, 0, None),
            (AnyFailed, 1, 1, Some(Verdict::Run)),
            (AnyFailed, 0, 0, Some(Verdict::Skip)),
        ] {
            assert_eq!(verdict(runs_when, waits_for, unsuccessful), expected, "{runs_when:?}");
        }
    }

    /// Whatever its upstream members do, and in whatever order: once all have ended, it is decided.
    #[test]
    fn no_member_waits_for_ever() {
        for runs_when in [RunsWhen::AllSucceeded, RunsWhen::AllDone, RunsWhen::AnyFailed] {
            for unsuccessful in 0..5 {
                assert!(verdict(runs_when, 0, unsuccessful).is_some());
            }
        }
    }
}
