//! The job: what runs, when, and by which policies.
//!
//! A [`JobSpec`] is written by a deployer and stored in the database; it is valid by construction if it comes from
//! [`crate::jobs_file`] (or from code that keeps the same limits).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cron::{DayRule, Dst};
use crate::flow::Member;
use crate::heartbeat::JobHeartbeat;
use crate::moment::Moment;
use crate::pool::PoolName;
use crate::rate::Rate;
use crate::text_enum::text_enum;
use crate::verify_task::VERIFY_PREFIX;
use crate::zone::Zone;

mod columns;
mod constraints;
mod diff;
mod exclusions;
mod expectations;
mod lock;
mod name;

pub use columns::{COLUMNS, ColumnError, ConstraintColumns};
pub use constraints::ScheduleConstraints;
pub use diff::{FieldChange, diff};
pub use exclusions::{DateRange, DateRangeError, Exclusions, MAX_EXCLUSIONS};
pub use expectations::{Expectations, MAX_IN_A_ROW};
pub use lock::{JobLock, MAX_LOCK_ROW_BYTES, OnLocked, RowLock};
pub use name::{NameError, check_class, check_name, check_task_type};

/// Longest job name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;
/// Largest params of a job or a trigger, in bytes of JSON.
pub const MAX_PARAMS_BYTES: usize = 256 * 1024;
/// Deepest nesting of params, including themselves: documents that contain params, such as a message's body, stay
/// readable for parsers that stop at 127 levels.
pub const MAX_PARAMS_DEPTH: usize = 64;
/// Longest task type, in bytes.
pub const MAX_TASK_TYPE_BYTES: usize = 100;
/// Longest class of error that a job can call permanent, in bytes.
pub const MAX_CLASS_BYTES: usize = 100;
/// Longest execution key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;
/// Maximum number of failures in a row after which a job can be paused.
pub const MAX_PAUSE_AFTER_FAILURES: u32 = 100;
/// Prefix of the jobs for tasks published by other programs; reserved.
pub const FOREIGN_PREFIX: &str = "foreign.";
/// Prefixes that a file's job names may not have: Sexton creates such jobs itself.
pub const RESERVED_PREFIXES: [&str; 2] = [FOREIGN_PREFIX, VERIFY_PREFIX];
/// Default for the longest run of one attempt.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);
/// The shortest period of [`Schedule::Every`]. Execution keys name the second of a firing, so two
/// firings of a job must never share one.
pub const MIN_PERIOD: Duration = Duration::from_secs(1);
/// The longest period of [`Schedule::Every`].
pub const MAX_PERIOD: Duration = Duration::from_hours(366 * 24);

/// Returns whether Sexton creates a job of this name itself, so that no file may define it.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A job's definition, as applied.
#[derive(Clone, PartialEq, Debug)]
pub struct JobSpec {
    /// Unique; `<service>.<jobName>` by convention.
    pub name: String,
    /// For people. Empty when not given.
    pub description: String,
    /// The id of the report, worker or reminder that the job is about; passed to the task.
    pub target: Option<String>,
    /// When it fires.
    pub schedule: Schedule,
    /// Limits of its schedule.
    pub constraints: ScheduleConstraints,
    /// The policy for an instant that is past when the job is applied. Used then and not stored.
    pub past: PastPolicy,
    /// The zone of its schedule and its limits.
    pub timezone: Zone,
    /// The policy for changes of the zone's clocks, for a cron expression.
    pub dst: Dst,
    /// How the day fields of its cron expression are combined; `None`: as Vixie's cron does.
    pub days: Option<DayRule>,
    /// The task type, looked up in a worker's catalogue.
    pub task_type: String,
    /// Passed to every attempt as at the claim. An object.
    pub params: serde_json::Value,
    /// The worker pool that runs it.
    pub pool: PoolName,
    /// The policy for a firing while an earlier execution has not ended.
    pub overlap: Overlap,
    /// The policy for late firings.
    pub misfire: Misfire,
    /// Unset fields come from the defaults of the process that settles.
    pub retry: RetryOverrides,
    /// Longest run of one attempt.
    pub timeout: Duration,
    /// How long a running attempt belongs to its worker without a renewal; `None`: the worker's `LEASE_MS`. A trade:
    /// a shorter lease finds a dead worker sooner, a longer one survives a longer outage of the database, since a
    /// worker that cannot renew ends the task before the lease is over.
    pub lease: Option<Duration>,
    /// The advisory lock that a worker holds while a task of the job runs. Not together with `lock_row`.
    pub lock_key: Option<i64>,
    /// The lock row that a worker holds while a task of the job runs.
    pub lock_row: Option<RowLock>,
    /// What becomes of an execution whose lock is held elsewhere.
    pub on_locked: OnLocked,
    /// Template with `{job}` and `{execution_key}`; `None`: `<job>:<execution_key>`.
    pub idempotency_template: Option<String>,
    /// What its monitor expects.
    pub expectations: Expectations,
    /// Where its executions are reported to; `None`: nowhere.
    pub heartbeat: Option<JobHeartbeat>,
    /// How long after its nominal time a firing may still begin: one whose first attempt is opened later is skipped.
    /// `None`: for ever. It does not apply to triggers and tasks of other programs, which somebody wants.
    pub stale_after: Option<Duration>,
    /// Number of executions in a row that failed for good, 1 to [`MAX_PAUSE_AFTER_FAILURES`], after which the job is
    /// paused when its next firing is due; `None`: never.
    pub pause_after_failures: Option<u32>,
    /// The task type that checks whether the effect of a failed execution has happened, before a requeue; `None`: no
    /// check.
    pub verify_task: Option<String>,
    /// Whether a new job begins paused. Used when the job is created and not stored: from then on operators pause and
    /// resume it.
    pub paused: bool,
    /// The owner's own words: user, group, language …
    pub labels: std::collections::BTreeMap<String, String>,
    /// The executions that each of its executions begins, as the first of a flow; empty: none.
    pub flow: Vec<Member>,
}

/// When a job fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// A cron expression of five or six fields, in the job's zone.
    Cron {
        /// The expression's text, which parses.
        expression: String,
    },
    /// A fixed period, counted from the Unix epoch, so that replicas and restarts agree on it.
    Every {
        /// Whole milliseconds, [`MIN_PERIOD`] to [`MAX_PERIOD`].
        period: Duration,
        /// How long after each multiple of the period. Whole milliseconds, less than the period.
        phase: Duration,
    },
    /// Once.
    At {
        /// The instant.
        at: Moment,
    },
    /// Never by itself: only by triggers.
    None,
}

/// The policy for a job that fires once, and whose instant is past when it is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PastPolicy {
    /// The job is refused, because such an instant is mostly a mistake.
    #[default]
    Refuse,
    /// It runs at once.
    Run,
}

impl JobSpec {
    /// Makes a job with defaults for everything else.
    pub fn new(name: impl Into<String>, task_type: impl Into<String>, schedule: Schedule) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            target: None,
            schedule,
            constraints: ScheduleConstraints::default(),
            past: PastPolicy::default(),
            timezone: Zone::UTC,
            dst: Dst::default(),
            days: None,
            task_type: task_type.into(),
            params: serde_json::Value::Object(serde_json::Map::new()),
            pool: PoolName::default_pool(),
            overlap: Overlap::default(),
            misfire: Misfire::default(),
            retry: RetryOverrides::default(),
            timeout: DEFAULT_TIMEOUT,
            lease: None,
            lock_key: None,
            lock_row: None,
            on_locked: OnLocked::default(),
            idempotency_template: None,
            expectations: Expectations::default(),
            heartbeat: None,
            stale_after: None,
            pause_after_failures: None,
            verify_task: None,
            paused: false,
            labels: std::collections::BTreeMap::new(),
            flow: Vec::new(),
        }
    }
}

impl JobSpec {
    /// Returns whether it has the same firings as `other` of the same name. When they become due, and how many of
    /// them may run, may differ.
    pub fn has_same_firings(&self, other: &Self) -> bool {
        (&self.schedule, self.timezone, self.dst, self.days)
            == (&other.schedule, other.timezone, other.dst, other.days)
            && self.constraints.has_same_firings(&other.constraints)
    }
}

impl Schedule {
    /// Makes a period without a phase.
    pub const fn every(period: Duration) -> Self {
        Self::Every { period, phase: Duration::ZERO }
    }

    /// Returns the kind's name in the database and in `--json`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Every { .. } => "every",
            Self::At { .. } => "once",
            Self::None => "none",
        }
    }
}

/// The policy for a firing while an earlier execution of the job has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It runs beside the earlier one.
    #[default]
    Allow,
    /// It is recorded as skipped.
    Skip,
    /// It waits until the job is free; a further one that comes while it waits is recorded as skipped.
    Queue,
    /// It replaces the earlier one, which is cancelled and cannot succeed any more.
    Replace,
}

/// The policy for late firings (while no scheduler ran).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfire {
    /// Which of them run.
    pub policy: MisfirePolicy,
    /// A late firing older than this never runs.
    pub window: Duration,
    /// Maximum number of late firings that `FireAll` claims for one absence, up to [`Misfire::MAX_LIMIT`]; the newest
    /// are kept.
    pub limit: u32,
    /// How fast `FireAll` lets them begin; `None`: all at once.
    pub rate: Option<Rate>,
}

impl Misfire {
    /// A firing noticed within this time is on time, not late.
    pub const ON_TIME_GRACE: Duration = Duration::from_mins(1);
    /// The largest `limit`: how many executions one catch-up may put into the queues at once.
    pub const MAX_LIMIT: u32 = 1_000;
}

impl Default for Misfire {
    fn default() -> Self {
        Self {
            policy: MisfirePolicy::FireOnce,
            window: Duration::from_hours(24),
            limit: 100,
            rate: None,
        }
    }
}

/// Which of the late firings run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// None; each is part of a gap.
    Skip,
    /// The newest; the others are coalesced into it.
    FireOnce,
    /// All within the window, up to the limit.
    FireAll,
}

/// Retry settings of a job, or of a task type's entry in the catalogue.
///
/// Fields that a job leaves out come from the entry, then from the environment of the process that settles, and then
/// from [`crate::retry::RetryPolicy::default`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RetryOverrides {
    /// Retries after the first attempt.
    pub max_retries: Option<u32>,
    /// Number of timeouts at which the execution is parked.
    pub max_timeouts: Option<u32>,
    /// Number of crashes at which the execution is parked.
    pub max_crashes: Option<u32>,
    /// The delay before the first retry.
    pub delay: Option<Duration>,
    /// Factor from one delay to the next, at least 1.
    pub multiplier: Option<f64>,
    /// The longest delay.
    pub max_delay: Option<Duration>,
    /// Fraction by which a delay may vary, 0 to 1.
    pub jitter: Option<f64>,
    /// Classes of error that are never retried; they replace the others, an empty list all of them.
    pub permanent: Option<Vec<String>>,
}

text_enum!(PastPolicy { Refuse => "refuse", Run => "run" });
text_enum!(Overlap { Allow => "allow", Skip => "skip", Queue => "queue", Replace => "replace" });
text_enum!(MisfirePolicy { Skip => "skip", FireOnce => "fire_once", FireAll => "fire_all" });
