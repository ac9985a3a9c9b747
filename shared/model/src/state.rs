//! The states of an execution and the one table of moves between them.
//!
//! Every statement that changes a row's state carries out one [`Cause`] of this table; the schema's
//! CHECK constraints repeat which states exist and what a row in each of them must hold, and a test
//! holds the two against each other. [`diagram`] draws the table for the documentation.

use serde::{Deserialize, Serialize};

use crate::job::text_enum;

/// Where an execution is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Claimed or requeued; its ticket goes to the main queue.
    Pending,
    /// An attempt is open. Its worker alone may end it while the lease lasts.
    Running,
    /// An attempt failed; the next one's ticket waits in a delay queue.
    Retrying,
    /// Parked: out of retries or failed for good. Waits for an operator, whatever its age.
    Failed,
    /// An operator gave it up. Can be restored until retention removes it.
    Discarded,
    /// The task ended well.
    Succeeded,
    /// An operator cancelled it, or a newer firing of its job took its place.
    Cancelled,
    /// It was never to run, or came too late to be run, for the recorded reason.
    Skipped,
}

text_enum!(State {
    Pending => "pending",
    Running => "running",
    Retrying => "retrying",
    Failed => "failed",
    Discarded => "discarded",
    Succeeded => "succeeded",
    Cancelled => "cancelled",
    Skipped => "skipped",
});

impl State {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Retrying,
        Self::Failed,
        Self::Discarded,
        Self::Succeeded,
        Self::Cancelled,
        Self::Skipped,
    ];

    /// Whether nothing ever leaves this state.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled | Self::Skipped)
    }

    /// Whether a row in this state has a ticket that may be opened: such a row can owe one.
    pub const fn has_ticket(self) -> bool {
        matches!(self, Self::Pending | Self::Retrying | Self::Failed)
    }

    /// Whether an execution in this state is still under way for its job's overlap policy.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Retrying)
    }
}

/// Why a row changes its state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A worker took the ticket with the row's attempt number. From `failed` it is a requeue by
    /// hand: somebody moved the parked message.
    Open,
    /// The attempt ended well.
    Succeed,
    /// The attempt failed or was lost, and a budget is left.
    Retry,
    /// No budget is left, or the failure is permanent, or no worker could ever open the ticket.
    Fail,
    /// An operator's cancel, or a newer firing that takes its place: at once, or by the attempt's end.
    Cancel,
    /// A worker was handed the first ticket later than the job wants it to be begun.
    Skip,
    /// An operator's requeue.
    Requeue,
    /// An operator's discard.
    Discard,
    /// An operator takes a discard back.
    Restore,
    /// An operator knows that a failed task has had its effect: it has ended well, without another attempt.
    Resolve,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Open,
        Self::Succeed,
        Self::Retry,
        Self::Fail,
        Self::Cancel,
        Self::Skip,
        Self::Requeue,
        Self::Discard,
        Self::Restore,
        Self::Resolve,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Succeed => "succeed",
            Self::Retry => "retry",
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Skip => "skip",
            Self::Requeue => "requeue",
            Self::Discard => "discard",
            Self::Restore => "restore",
            Self::Resolve => "resolve",
        }
    }
}

/// The transition table: where `cause` takes a row in `from`; `None` where it may not happen.
pub const fn next(from: State, cause: Cause) -> Option<State> {
    use State::{Cancelled, Discarded, Failed, Pending, Retrying, Running, Skipped, Succeeded};
    match (from, cause) {
        (Pending | Retrying | Failed, Cause::Open) => Some(Running),
        (Running, Cause::Succeed) | (Failed, Cause::Resolve) => Some(Succeeded),
        (Running, Cause::Retry) => Some(Retrying),
        (Pending | Running | Retrying, Cause::Fail) | (Discarded, Cause::Restore) => Some(Failed),
        (Pending | Running | Retrying, Cause::Cancel) => Some(Cancelled),
        (Pending, Cause::Skip) => Some(Skipped),
        (Failed, Cause::Requeue) => Some(Pending),
        (Failed, Cause::Discard) => Some(Discarded),
        _ => None,
    }
}

/// The table as a Mermaid state diagram, for `docs/internals/architecture.md`.
pub fn diagram() -> String {
    let mut lines = vec![
        "stateDiagram-v2".to_owned(),
        "    [*] --> pending: claim".to_owned(),
        "    [*] --> skipped: claim, not to run".to_owned(),
    ];
    for from in State::ALL {
        for cause in Cause::ALL {
            if let Some(to) = next(from, cause) {
                lines.push(format!("    {} --> {}: {}", from.as_str(), to.as_str(), cause.label()));
            }
        }
        if from.is_final() {
            lines.push(format!("    {} --> [*]", from.as_str()));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_final_state() {
        for state in State::ALL {
            let leaves = Cause::ALL.iter().any(|cause| next(state, *cause).is_some());
            assert_eq!(leaves, !state.is_final(), "{state:?}");
        }
    }

    #[test]
    fn exactly_the_states_with_a_ticket_can_be_opened() {
        for state in State::ALL {
            assert_eq!(next(state, Cause::Open).is_some(), state.has_ticket(), "{state:?}");
        }
    }

    #[test]
    fn an_end_can_be_reached_from_every_state() {
        for start in State::ALL {
            let mut reached = vec![start];
            let mut at = 0;
            while at < reached.len() {
                for cause in Cause::ALL {
                    if let Some(to) = next(reached[at], cause)
                        && !reached.contains(&to)
                    {
                        reached.push(to);
                    }
                }
                at += 1;
            }
            assert!(reached.iter().any(|state| state.is_final()), "{start:?}");
        }
    }

    #[test]
    fn the_text_of_a_state_reads_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("Pending"), None);
    }
}
