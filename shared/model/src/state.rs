//! The states of an execution and the one table of transitions between them.
//!
//! Every statement that changes a row's state carries out one [`Cause`] of this table; the schema's CHECK constraints
//! repeat the states and the columns that each requires, and a test compares the two. [`diagram`] draws the table for
//! the documentation.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// The state of an execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// The task succeeded.
    Succeeded,
    /// An operator cancelled it, or a newer firing of its job took its place.
    Cancelled,
    /// It was claimed as skipped, or came too late to run, for the recorded reason.
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
    /// All states, in the order of the documentation.
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

    /// Returns whether this state has no transition to another.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled | Self::Skipped)
    }

    /// Returns whether a row in this state has a ticket that may be opened, and so may have an unpublished one.
    pub const fn has_ticket(self) -> bool {
        matches!(self, Self::Pending | Self::Retrying | Self::Failed)
    }

    /// Returns whether an execution in this state is under way for its job's overlap policy.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Retrying)
    }
}

/// The cause of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A worker opened the ticket with the row's attempt number. From `failed` it is a requeue by hand: somebody
    /// moved the parked message.
    Open,
    /// The attempt succeeded.
    Succeed,
    /// The attempt failed or was lost, and the budget allows another.
    Retry,
    /// No budget is left, or the failure is permanent, or no worker could ever open the ticket.
    Fail,
    /// An operator's cancel, or a replacement by a newer firing: at once, or by the attempt's end.
    Cancel,
    /// A worker received the first ticket later than the job allows.
    Skip,
    /// An operator's requeue.
    Requeue,
    /// An operator's discard.
    Discard,
    /// An operator's restore of a discard.
    Restore,
    /// An operator or a verify task confirms that a failed task has had its effect: it succeeds without another
    /// attempt.
    Resolve,
}

impl Cause {
    /// All causes.
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

/// The transition table: returns the state after `cause` in the state `from`; `None` if that is not allowed.
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

/// Returns the table as a Mermaid state diagram, for `docs/internals/architecture.md`.
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
