//! The limits of a schedule: its first and last instant, excluded days, the number of runs, and jitter.

use std::time::Duration;

use crate::job::Exclusions;
use crate::moment::Moment;

/// The limits of a schedule. Without any, it fires for ever at its nominal times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleConstraints {
    /// The first possible firing.
    pub start: Option<Moment>,
    /// The last possible firing.
    pub end: Option<Moment>,
    /// Days of the job's zone on which firings do not run.
    pub exclude: Exclusions,
    /// The maximum delay of a firing after its nominal time, which also ends before the next one. The actual delay
    /// depends only on the job's name and the nominal time.
    pub jitter: Option<Duration>,
    /// Maximum number of firings claimed to run; triggers do not count.
    pub max_runs: Option<u32>,
}

impl ScheduleConstraints {
    /// Returns whether the same firings exist as under `other`, regardless of the limit of runs.
    pub fn has_same_firings(&self, other: &Self) -> bool {
        (self.start, self.end, &self.exclude) == (other.start, other.end, &other.exclude)
    }

    /// Returns how many more firings may run after `used` of them; `None`: any number.
    pub fn runs_left(&self, used: u32) -> Option<u32> {
        self.max_runs.map(|limit| limit.saturating_sub(used))
    }
}
