//! The job: what runs, when, and by which policies.
//!
//! A [`JobSpec`] is what a deployer writes and what the database keeps; it is valid by construction
//! once it came through [`crate::jobs_file`] (or was built by code that keeps the same limits).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cron::Dst;
use crate::moment::Moment;
use crate::pool::PoolName;
use crate::rate::Rate;
use crate::verify_task::VERIFY_PREFIX;
use crate::zone::Zone;

mod columns;
mod constraints;
mod diff;
mod exclusions;
mod name;

pub use columns::{COLUMNS, ColumnError, ConstraintColumns};
pub use constraints::ScheduleConstraints;
pub use diff::{FieldChange, diff};
pub use exclusions::{DateRange, DateRangeError, Exclusions, MAX_EXCLUSIONS};
pub use name::{NameError, check_class, check_name, check_task_type};

/// Longest job name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;
/// Largest params of a job or a trigger, in bytes of JSON.
pub const MAX_PARAMS_BYTES: usize = 256 * 1024;
/// Deepest nesting of params, themselves counted: documents that carry params, such as a message's
/// body, can be read again by readers that end at 127 levels.
pub const MAX_PARAMS_DEPTH: usize = 64;
/// Longest task type, in bytes.
pub const MAX_TASK_TYPE_BYTES: usize = 100;
/// Longest class of error that a job can call permanent, in bytes.
pub const MAX_CLASS_BYTES: usize = 100;
/// Longest execution key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;
/// The most failures in a row after which a job can be paused.
pub const MAX_PAUSE_AFTER_FAILURES: u32 = 100;
/// Prefix of the jobs that stand for tasks published by others; reserved.
pub const FOREIGN_PREFIX: &str = "foreign.";
/// What no job of a file may begin with: jobs that come into being by themselves.
pub const RESERVED_PREFIXES: [&str; 2] = [FOREIGN_PREFIX, VERIFY_PREFIX];
/// Longest run of one attempt where the job does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);
/// The shortest period of [`Schedule::Every`]. Execution keys name the second of a firing, so two
/// firings of a job must never share one.
pub const MIN_PERIOD: Duration = Duration::from_secs(1);
/// The longest period of [`Schedule::Every`].
pub const MAX_PERIOD: Duration = Duration::from_hours(366 * 24);

/// Whether a job of this name came into being by itself, and is nobody's to define.
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
    /// The id of the report, worker or reminder that the job is about; handed on to the task.
    pub target: Option<String>,
    /// When it fires.
    pub schedule: Schedule,
    /// What its schedule is subject to.
    pub constraints: ScheduleConstraints,
    /// What becomes of an instant that is past when the job is applied. Matters then and is not kept.
    pub past: PastPolicy,
    /// The zone whose clocks its schedule and its terms are about.
    pub timezone: Zone,
    /// What a change of those clocks means for a cron expression.
    pub dst: Dst,
    /// The task type, looked up in a worker's catalogue.
    pub task_type: String,
    /// Handed to every attempt as it was at the claim. An object.
    pub params: serde_json::Value,
    /// The worker pool that runs it.
    pub pool: PoolName,
    /// What happens when a firing comes while an earlier execution has not ended.
    pub overlap: Overlap,
    /// What happens to firings that were noticed late.
    pub misfire: Misfire,
    /// Where unset, the process that settles uses its own defaults.
    pub retry: RetryOverrides,
    /// Longest run of one attempt.
    pub timeout: Duration,
    /// How long a running attempt stays its worker's own without a renewal; `None`: the worker's
    /// `LEASE_MS`. A trade: a shorter one finds a dead worker sooner, a longer one survives a longer
    /// outage of the database, since a worker that cannot renew ends the task before the lease is over.
    pub lease: Option<Duration>,
    /// A number other systems know this job by (advisory locks, dashboards).
    pub lock_key: Option<i64>,
    /// `{job}` and `{execution_key}` are replaced; `None`: `<job>:<execution_key>`.
    pub idempotency_template: Option<String>,
    /// How long after its nominal time an execution is expected to have succeeded.
    pub expect_within: Option<Duration>,
    /// How long after its nominal time a firing may still be begun: the first attempt of one that is
    /// opened later is skipped. `None`: it never gets too old. Of triggers and of tasks of other
    /// programs it says nothing: somebody wants them.
    pub stale_after: Option<Duration>,
    /// After this many consecutive executions that failed for good, 1 to [`MAX_PAUSE_AFTER_FAILURES`], the
    /// job is paused when its next firing is due; `None`: never.
    pub pause_after_failures: Option<u32>,
    /// The task type that answers whether the effect of a failed execution has happened, before it is
    /// requeued; `None`: nothing verifies it.
    pub verify_task: Option<String>,
    /// Whether a new job begins paused. Read when the job is created and not kept: from then on pausing
    /// and resuming are the operators'.
    pub paused: bool,
    /// The owner's own words: user, group, language …
    pub labels: std::collections::BTreeMap<String, String>,
}

/// When a job fires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// A cron expression of five or six fields, in the job's zone.
    Cron {
        /// As written; it parses.
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
        /// When.
        at: Moment,
    },
    /// Never by itself: only when triggered.
    None,
}

/// What becomes of a job that fires once, and whose instant is past when it is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PastPolicy {
    /// It is refused: mostly the instant is mistaken.
    #[default]
    Refuse,
    /// It runs at once.
    Run,
}

impl JobSpec {
    /// A job of which only the necessary is given: everything else is at its default.
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
            task_type: task_type.into(),
            params: serde_json::Value::Object(serde_json::Map::new()),
            pool: PoolName::default_pool(),
            overlap: Overlap::default(),
            misfire: Misfire::default(),
            retry: RetryOverrides::default(),
            timeout: DEFAULT_TIMEOUT,
            lease: None,
            lock_key: None,
            idempotency_template: None,
            expect_within: None,
            stale_after: None,
            pause_after_failures: None,
            verify_task: None,
            paused: false,
            labels: std::collections::BTreeMap::new(),
        }
    }
}

impl JobSpec {
    /// Whether it has the same firings as `other` of the same name. When they become due, and how many
    /// of them may run, may differ.
    pub fn has_same_firings(&self, other: &Self) -> bool {
        (&self.schedule, self.timezone, self.dst) == (&other.schedule, other.timezone, other.dst)
            && self.constraints.has_same_firings(&other.constraints)
    }
}

impl Schedule {
    /// A period at its multiples.
    pub const fn every(period: Duration) -> Self {
        Self::Every { period, phase: Duration::ZERO }
    }

    /// The kind, as the database and `--json` name it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Every { .. } => "every",
            Self::At { .. } => "once",
            Self::None => "none",
        }
    }
}

/// What happens when a firing comes while an earlier execution of the job has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It runs beside the earlier one.
    #[default]
    Allow,
    /// It is recorded as skipped.
    Skip,
    /// It waits until the job is free; one that comes while another waits is recorded as skipped.
    Queue,
    /// It takes the earlier one's place: that one is cancelled and cannot succeed any more.
    Replace,
}

/// What happens to firings that were noticed late (the schedulers were away).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfire {
    /// Which of them run.
    pub policy: MisfirePolicy,
    /// A late firing older than this does not run, whatever the policy says.
    pub window: Duration,
    /// The most late firings that `FireAll` claims for one stretch of absence, up to
    /// [`Misfire::MAX_LIMIT`]; the newest are kept.
    pub limit: u32,
    /// How fast `FireAll` lets them begin; `None`: all at once.
    pub rate: Option<Rate>,
}

impl Misfire {
    /// A firing noticed within this time is on time, not late.
    pub const ON_TIME_GRACE: Duration = Duration::from_mins(1);
    /// The largest `limit`: what one catch-up may put into the queues at once.
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

/// The retry settings that somebody gives: a job, or the catalogue's entry of a task type.
///
/// What a job leaves out comes from the entry, what that leaves out from the environment of the
/// process that settles, and the rest from [`crate::retry::RetryPolicy::default`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RetryOverrides {
    /// Retries after the first attempt.
    pub max_retries: Option<u32>,
    /// The attempt that runs into its timeout for this many times parks the execution.
    pub max_timeouts: Option<u32>,
    /// The attempt that crashes for this many times parks the execution.
    pub max_crashes: Option<u32>,
    /// Before the first retry.
    pub delay: Option<Duration>,
    /// Factor from one delay to the next, at least 1.
    pub multiplier: Option<f64>,
    /// The longest delay.
    pub max_delay: Option<Duration>,
    /// Fraction by which a delay may vary, 0 to 1.
    pub jitter: Option<f64>,
    /// Classes of error after which no retry is made; they take the place of others, an empty list
    /// of all others.
    pub permanent: Option<Vec<String>>,
}

macro_rules! text_enum {
    ($type:ty { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $type {
            /// As the database, the jobs file and `--json` write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The inverse of [`Self::as_str`].
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use text_enum;

text_enum!(PastPolicy { Refuse => "refuse", Run => "run" });
text_enum!(Overlap { Allow => "allow", Skip => "skip", Queue => "queue", Replace => "replace" });
text_enum!(MisfirePolicy { Skip => "skip", FireOnce => "fire_once", FireAll => "fire_all" });
