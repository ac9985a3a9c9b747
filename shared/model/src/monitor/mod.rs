//! Monitors of jobs: decides from a job's recorded executions and gaps whether its expectations are met.
//!
//! No task reports to a monitor. Whatever happens to a firing is recorded by the platform anyway, and what does not happen
//! shows by the clock. Each execution counts once as a violation: when it misses its first time limit, or fails. So
//! the number of violations in a row does not depend on how often a monitor is checked, nor by which scheduler.
//!
//! Not expected, and no violation: firings that a person or a policy keeps from running (paused, excluded, held,
//! rescheduled, past its end, skipped or replaced because an earlier one runs, cancelled), and backfills.

mod judge;
pub(crate) mod next_check;
mod sentences;
pub(crate) mod settle;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::job::Expectations;
use crate::plan::GapReason;
use crate::state::State;
use crate::text_enum::text_enum;

pub use judge::judge;

/// Maximum number of executions that a monitor remembers as counted.
pub const MAX_COUNTED: usize = 500;

/// Why an incident of a job is open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No attempt has begun within `start_within`.
    Late,
    /// It has not succeeded within `expect_within`, or will never run.
    Missed,
    /// An attempt runs longer than `max_runtime`.
    TooLong,
    /// `alert_after` executions in a row have failed.
    Failed,
    /// An execution has failed for good, and waits in the failed queue.
    Parked,
    /// The job has never begun at all since it was defined.
    NeverRan,
    /// The lock of the job is held elsewhere, so it does not run.
    LockHeld,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Late,
        Self::Missed,
        Self::TooLong,
        Self::Failed,
        Self::Parked,
        Self::NeverRan,
        Self::LockHeld,
    ];
}

text_enum!(Cause {
    Late => "late", Missed => "missed", TooLong => "too_long", Failed => "failed", Parked => "parked",
    NeverRan => "never_ran", LockHeld => "lock_held",
});

/// What is known of a job when its monitor is checked.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four facts of a row, each true or not")]
pub struct MonitoredJob {
    /// Its expectations.
    pub expectations: Expectations,
    /// Whether it fires: neither paused nor deleted.
    pub is_active: bool,
    /// Whether it was deleted.
    pub is_deleted: bool,
    /// Whether its oldest known execution has begun.
    pub has_begun: bool,
    /// Whether it has a schedule.
    pub is_scheduled: bool,
    /// The next firing, which no planner has claimed yet; `None`: it never fires again.
    pub next_firing: Option<NextFiring>,
    /// When its definition last changed.
    pub changed_at: DateTime<Utc>,
    /// The last instant at which a planner looked for due firings; `None`: none ever did.
    pub planner_seen_at: Option<DateTime<Utc>>,
    /// The executions that matter, each once: the newest, those under way, those that failed lately, and those that the
    /// monitor has counted. At most a few hundred.
    pub executions: Vec<MonitoredExecution>,
    /// Gaps that the monitor has not seen yet, oldest first.
    pub gaps: Vec<MonitoredGap>,
}

/// A firing that is not claimed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextFiring {
    /// Its nominal time.
    pub nominal: DateTime<Utc>,
    /// When it is due: later than its nominal time with jitter.
    pub due: DateTime<Utc>,
}

/// An execution, as a monitor sees it. Backfills are left out.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four facts of a row, each true or not")]
pub struct MonitoredExecution {
    /// Its id.
    pub id: Uuid,
    /// Its nominal time.
    pub nominal: DateTime<Utc>,
    /// Its state.
    pub state: State,
    /// Number of the attempt that may be opened next, or is open.
    pub attempt: u32,
    /// When its last attempt was opened; `None`: none has been.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended; `None` while it is under way.
    pub finished_at: Option<DateTime<Utc>>,
    /// Class of the last error.
    pub error_class: Option<String>,
    /// Message of the last error, or why it was skipped.
    pub message: Option<String>,
    /// Whether it waits for an earlier execution of its job.
    pub waits_for_job: bool,
    /// Whether RabbitMQ has its ticket.
    pub is_published: bool,
    /// Whether its last attempt found its lock held elsewhere.
    pub is_locked: bool,
    /// Whether it was skipped because it would have begun too late.
    pub is_stale: bool,
}

/// Firings without an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MonitoredGap {
    /// `gaps.id`.
    pub id: i64,
    /// Nominal time of the first firing.
    pub first: DateTime<Utc>,
    /// Nominal time of the last firing.
    pub last: DateTime<Utc>,
    /// Number of firings.
    pub count: u32,
    /// The reason; `None`: one that this version does not know.
    pub reason: Option<GapReason>,
    /// When it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// What a monitor remembers from check to check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MonitorMemory {
    /// Violations in a row.
    pub violations: u32,
    /// When the last of these happened.
    pub violated_at: Option<DateTime<Utc>>,
    /// What has been counted, at most [`MAX_COUNTED`].
    pub counted: Counted,
    /// The last gap that was seen.
    pub gaps_seen: i64,
    /// Whether an incident of the monitor is open.
    pub is_open: bool,
}

/// Executions that are counted: the attempt with which each failed, or 0 for a missed time limit. An execution that
/// a person requeues fails with a higher attempt, and counts again.
pub type Counted = BTreeMap<Uuid, u32>;

/// What a check found.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// What the monitor remembers from now on.
    pub memory: MonitorMemory,
    /// The next instant at which something can be found without an event; `None`: only an event can change
    /// anything.
    pub next_check: Option<DateTime<Utc>>,
    /// What happened; `None`: nothing that an incident has to say.
    pub change: Option<Change>,
}

/// What becomes of the monitor's incident.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Violations open an incident, or add to the one that is open.
    Violated {
        /// The cause of the last of them.
        cause: Cause,
        /// What happened, in words.
        detail: String,
        /// The execution of the last of them.
        execution: Option<Uuid>,
        /// Number of firings that this is about.
        occurrences: u32,
    },
    /// The open incident is over.
    Recovered {
        /// What happened, in words.
        detail: String,
    },
}

#[cfg(test)]
mod tests;
