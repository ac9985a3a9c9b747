//! What is expected of a job's executions, and how people learn that it did not happen.

use std::time::Duration;

use crate::incident::Severity;

/// Largest `alert_after` and `recover_after`.
pub const MAX_IN_A_ROW: u32 = 100;

/// What a job's monitor expects. Without a time limit it watches for failures alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Expectations {
    /// How long after its nominal time an execution's first attempt is expected to begin; `None`: no limit.
    pub start_within: Option<Duration>,
    /// How long after its nominal time an execution is expected to have succeeded; `None`: no limit.
    pub expect_within: Option<Duration>,
    /// The longest run of an attempt that is expected; a longer one goes on. `None`: no limit.
    pub max_runtime: Option<Duration>,
    /// The number of executions in a row that fail or miss an expectation and open an incident, 1 to [`MAX_IN_A_ROW`];
    /// `None`: 1.
    pub alert_after: Option<u32>,
    /// The number of successes that resolve the incident, 1 to [`MAX_IN_A_ROW`]; `None`: 1.
    pub recover_after: Option<u32>,
    /// Time between reminders while nobody has acknowledged an open incident; `None`: no reminders.
    pub remind_every: Option<Duration>,
    /// Severity of the job's incidents; `None`: [`Severity::Medium`].
    pub severity: Option<Severity>,
}

impl Expectations {
    /// Returns whether it limits any time.
    pub const fn has_time_limit(&self) -> bool {
        self.start_within.is_some() || self.expect_within.is_some() || self.max_runtime.is_some()
    }
}
