//! The terms of a schedule: between which instants it holds, on which days it does not, how often in
//! all, and by how much its firings are spread.

use std::time::Duration;

use crate::job::Exclusions;
use crate::moment::Moment;

/// What a schedule is subject to. Without any, it fires for ever at its nominal times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleConstraints {
    /// There is no firing before it.
    pub start: Option<Moment>,
    /// There is no firing after it.
    pub end: Option<Moment>,
    /// Days of the job's zone whose firings are not executed.
    pub exclude: Exclusions,
    /// A firing becomes due later than its nominal time by less than this and before the next one:
    /// always by as much, which depends on the job's name and the nominal time.
    pub jitter: Option<Duration>,
    /// The most firings that are claimed to run; triggers do not count.
    pub max_runs: Option<u32>,
}

impl ScheduleConstraints {
    /// Whether the same firings exist as under `other`, how many of them may run aside.
    pub fn has_same_firings(&self, other: &Self) -> bool {
        (self.start, self.end, &self.exclude) == (other.start, other.end, &other.exclude)
    }

    /// How many more firings may run after `used` of them; `None`: any number.
    pub fn runs_left(&self, used: u32) -> Option<u32> {
        self.max_runs.map(|most| most.saturating_sub(used))
    }
}
