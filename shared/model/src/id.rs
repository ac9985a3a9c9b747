//! Identifiers. Each is its own type, so that a job's id never passes for an execution's.
//!
//! Jobs and executions have UUIDs of version 7 (RFC 9562): time-ordered, so new rows land together in their index. No
//! order is derived from them: they are monotonic within one process only. Generating one needs a clock and
//! randomness and therefore happens at the edge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID of this kind.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// Returns the plain UUID, for the wire and the database.
            pub const fn get(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id! {
    /// A job: the definition that says what runs and when.
    JobId
}
id! {
    /// An execution: one firing (or trigger) of a job, from its claim to its final state.
    ExecutionId
}
id! {
    /// A process: one run of a scheduler or worker, drawn at its start.
    ProcessId
}
id! {
    /// The worker's own token of the attempt that it opened. It distinguishes "my open whose answer was lost" from
    /// another worker's, and fences every later write of the attempt.
    OpenToken
}

/// The number of an attempt: 1, 2, 3 … over the execution's whole life, never reset.
///
/// A row's number is that of the one ticket that may be opened next, or that is open now. It is the fence in every
/// write of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptNumber(i32);

impl AttemptNumber {
    /// The number of an execution's first attempt.
    pub const FIRST: Self = Self(1);

    /// Makes a number; `None` below 1.
    pub const fn new(number: i32) -> Option<Self> {
        if number >= 1 { Some(Self(number)) } else { None }
    }

    /// Returns the number as the database and the wire have it.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// Returns the number of the next attempt. Saturates: an execution that was tried two thousand million times has
    /// other problems.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
