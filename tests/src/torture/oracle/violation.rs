//! The kinds of violations.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A violated invariant.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Violation {
    /// Two runs of an idempotency key were alive at once.
    Overlap {
        /// The idempotency key.
        key: String,
        /// The attempt that began second.
        attempt: i32,
    },
    /// An attempt's task was begun twice.
    OpenedTwice {
        /// The idempotency key.
        key: String,
        /// The attempt.
        attempt: i32,
    },
    /// An attempt was opened before it was due.
    Early {
        /// The execution.
        execution: Uuid,
        /// The attempt.
        attempt: i32,
        /// How early, in milliseconds.
        milliseconds: i64,
    },
    /// A failed execution ran again without a requeue.
    Unasked {
        /// The execution.
        execution: Uuid,
    },
    /// An execution ran after an operator had ended it.
    RanAfterItsEnd {
        /// The execution.
        execution: Uuid,
        /// The attempt.
        attempt: i32,
        /// The operator's action.
        action: String,
    },
    /// The effect of an execution had happened, and it was requeued and run again.
    HappenedTwice {
        /// The execution.
        execution: Uuid,
        /// The attempt that ran again.
        attempt: i32,
    },
    /// A bulk has not ended, or has counted or recorded something else than it did.
    Held {
        /// The bulk, and the difference.
        what: String,
    },
    /// Two executions of a job have one key.
    DoubleKey {
        /// The key.
        key: String,
    },
    /// An execution did not end.
    Lost {
        /// The execution.
        execution: Uuid,
        /// The last state of its row.
        row: String,
        /// The struck fault.
        fault: String,
    },
    /// A row says that an attempt has succeeded, and its task did not end.
    NotRun {
        /// The execution.
        execution: Uuid,
        /// The attempt; `None` if no attempt of it has succeeded at all.
        attempt: Option<i32>,
    },
    /// A task ran, and no row says that its attempt was opened.
    Unrecorded {
        /// The execution.
        execution: Uuid,
        /// The attempt.
        attempt: i32,
    },
    /// A firing has neither an execution nor a gap.
    LostFiring {
        /// The first such firing.
        firing: DateTime<Utc>,
        /// How many follow one another.
        count: i64,
    },
    /// A monitor counted an execution as late that was not.
    FalseAlarm {
        /// The execution.
        execution: Uuid,
    },
    /// A monitor did not count an execution that was late or failed, or opened no incident.
    Unnoticed {
        /// The execution.
        execution: Uuid,
    },
    /// A program ended, or one of its tasks panicked, without a strike.
    Crashed {
        /// The program, and its message.
        what: String,
    },
    /// A consequence of a fault, or of a person's action, did not follow.
    Undone {
        /// The missing consequence.
        what: String,
    },
    /// The failed rows and the parked messages differ.
    Unparked {
        /// The rows and messages.
        what: String,
    },
    /// A program did not become ready again.
    NotReady {
        /// The program, and its message.
        what: String,
    },
}

impl Violation {
    /// The kind in a word or two, with which the text begins.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Overlap { .. } => "overlapping runs",
            Self::OpenedTwice { .. } => "opened twice",
            Self::Early { .. } => "opened early",
            Self::Unasked { .. } => "ran unasked",
            Self::RanAfterItsEnd { .. } => "ran after its end",
            Self::HappenedTwice { .. } => "happened twice",
            Self::Held { .. } => "held by a bulk",
            Self::DoubleKey { .. } => "claimed twice",
            Self::Lost { .. } => "lost",
            Self::NotRun { .. } => "succeeded without a run",
            Self::Unrecorded { .. } => "ran without an attempt",
            Self::LostFiring { .. } => "lost firings",
            Self::FalseAlarm { .. } => "false alarm",
            Self::Unnoticed { .. } => "unnoticed",
            Self::Crashed { .. } => "crashed",
            Self::Undone { .. } => "did not follow",
            Self::Unparked { .. } => "parked otherwise",
            Self::NotReady { .. } => "did not come back",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind())?;
        match self {
            Self::Overlap { key, attempt } => {
                write!(f, "attempt {attempt} of {key} began while another ran")
            }
            Self::OpenedTwice { key, attempt } => {
                write!(f, "attempt {attempt} of {key} was begun twice")
            }
            Self::Early { execution, attempt, milliseconds } => {
                write!(f, "attempt {attempt} of {execution}, {milliseconds} ms before it was due")
            }
            Self::Unasked { execution } => {
                write!(f, "{execution} had failed and was opened, and nobody moved it")
            }
            Self::RanAfterItsEnd { execution, attempt, action } => {
                write!(f, "attempt {attempt} of {execution} was opened after a {action}")
            }
            Self::HappenedTwice { execution, attempt } => {
                write!(f, "attempt {attempt} of {execution}, whose effect was there when it failed")
            }
            Self::DoubleKey { key } => {
                write!(f, "two executions have the key {key}")
            }
            Self::Lost { execution, row, fault } => {
                write!(f, "{execution} came to no end after {fault}: {row}")
            }
            Self::Unparked { what } => write!(f, "failed rows and parked messages differ: {what}"),
            Self::NotRun { execution, attempt: Some(attempt) } => {
                write!(f, "the task of attempt {attempt} of {execution} did not come to its end")
            }
            Self::NotRun { execution, attempt: None } => {
                write!(f, "no attempt of {execution} has succeeded")
            }
            Self::Unrecorded { execution, attempt } => {
                write!(f, "attempt {attempt} of {execution} is in no row")
            }
            Self::LostFiring { firing, count } => {
                write!(f, "{count} from {firing} on have neither an execution nor a gap")
            }
            Self::FalseAlarm { execution } => {
                write!(f, "{execution} succeeded in time, and its monitor counted it as late")
            }
            Self::Unnoticed { execution } => {
                write!(
                    f,
                    "{execution} was late or failed, and its monitor opened no incident for it"
                )
            }
            Self::NotReady { what }
            | Self::Crashed { what }
            | Self::Undone { what }
            | Self::Held { what } => f.write_str(what),
        }
    }
}
