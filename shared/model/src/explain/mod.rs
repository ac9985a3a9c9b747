//! The ledger's decision: the disposition of a firing.
//!
//! # Guarantees
//!
//! * Every firing of a job's history has exactly one [`Disposition`]; for an instant that is no firing the answer
//!   says so, with the firings around it.
//! * Records come first: an execution, then a gap. So a firing that was missed and later backfilled shows its
//!   execution, and its gap stays. Only a firing without a record is judged by the current job: due, paused, not yet.
//! * A firing without a record that the job does not explain is *unknown*, with the reason; nothing is guessed.
//!
//! # What it does not do
//!
//! It reads nothing. The caller reads executions, gaps and job in one snapshot; over two snapshots a firing that was
//! claimed in between would have no record and lie behind the cursor.

mod history;

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

use crate::plan::GapReason;
use crate::state::State;

pub use history::{FiringPage, NominalFiring, Revision, ScheduleHistory};

/// A firing's execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionRecord {
    /// Its state.
    pub state: State,
    /// Why it was claimed as skipped.
    pub skip_reason: Option<String>,
    /// Whether it waits for another execution of its job.
    pub held: bool,
}

/// Consecutive firings without an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapRecord {
    /// The oldest.
    pub first: DateTime<Utc>,
    /// The newest.
    pub last: DateTime<Utc>,
    /// The recorded reason.
    pub reason: String,
    /// Who paused, changed or deleted the job.
    pub actor: Option<String>,
    /// The reason that this person gave.
    pub why: Option<String>,
    /// The key of the execution into which they were coalesced.
    pub into_key: Option<String>,
}

impl GapRecord {
    /// The reason of firings that are set aside while catch-up is held: no gap yet.
    const SET_ASIDE: &str = "set_aside";

    /// Makes a record like a gap for firings that are set aside while catch-up is held.
    pub fn set_aside(first: DateTime<Utc>, last: DateTime<Utc>) -> Self {
        let reason = Self::SET_ASIDE.to_owned();
        Self { first, last, reason, actor: None, why: None, into_key: None }
    }
}

/// Who paused a job, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pause {
    /// Who paused it; `None`: an older version did not record that.
    pub actor: Option<String>,
    /// The reason given.
    pub why: Option<String>,
}

/// The current job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSnapshot {
    /// The nominal time of the first firing that is not accounted for.
    pub next_fire_at: Option<DateTime<Utc>>,
    /// When that firing is due; `None`: at its nominal time.
    pub due_at: Option<DateTime<Utc>>,
    /// All firings up to here are accounted for.
    pub planned_until: Option<DateTime<Utc>>,
    /// The pause, if it is paused.
    pub paused: Option<Pause>,
    /// Why its late firings are held until an operator releases them.
    pub held: Option<String>,
    /// Retention may have removed executions that ended before this, and gaps that were recorded before it.
    pub pruned_before: Option<DateTime<Utc>>,
}

/// The disposition of a firing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// Its execution succeeded.
    Ran,
    /// Its execution is under way, in this state.
    Running(State),
    /// Its execution waits for another one of the job.
    Queued,
    /// Its execution failed, and waits for an operator.
    Failed,
    /// Its execution failed, and an operator discarded it.
    Discarded,
    /// Its execution was cancelled.
    Cancelled,
    /// It was claimed as skipped, for this reason.
    Skipped(String),
    /// One newer firing ran for it: the execution key, if known.
    Coalesced(Option<String>),
    /// The job was, or is, paused.
    Paused(Pause),
    /// It did not run, for its gap's reason: `outside_window`, `over_limit`, `rescheduled` …
    NotRun(String),
    /// It is due and held until an operator releases the job's late firings, for this reason.
    Held(String),
    /// It is due, and no scheduler has claimed it yet.
    Due,
    /// It lies ahead.
    NotYet,
    /// The job fired for the last time before it.
    Ended,
    /// It has no record, and the job does not explain it.
    Unknown(UnknownReason),
}

/// Why a firing is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownReason {
    /// It is older than what retention keeps.
    Pruned,
    /// Its record is missing: somebody removed the row, or a backup was restored.
    Unaccounted,
}

/// The kind of an instant that is no firing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAFiring {
    /// The schedule does not contain it.
    Between,
    /// The job did not exist yet.
    BeforeJob,
    /// The schedule of that time is not known any more, or was never recorded.
    BeforeRecords,
    /// The job was deleted.
    AfterDeletion,
}

impl Disposition {
    /// Returns the word in `--json`. Of a gap it is the recorded reason.
    pub fn word(&self) -> &str {
        match self {
            Self::Ran => "ran",
            Self::Running(_) => "running",
            Self::Queued => "queued",
            Self::Failed => "failed",
            Self::Discarded => "discarded",
            Self::Cancelled => "cancelled",
            Self::Skipped(_) => "skipped",
            Self::Coalesced(_) => "coalesced",
            Self::Paused(_) => "paused",
            Self::NotRun(reason) => reason,
            Self::Held(_) => "held",
            Self::Due => "due",
            Self::NotYet => "not_yet",
            Self::Ended => "ended",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl NotAFiring {
    /// Returns the word in `--json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Between => "not_a_firing",
            Self::BeforeJob => "before_job",
            Self::BeforeRecords => "unknown",
            Self::AfterDeletion => "after_deletion",
        }
    }
}

/// Returns the disposition of the firing at `at`, from its `execution`, the one among `gaps` that contains it, and
/// the job at `now`.
pub fn disposition(
    at: DateTime<Utc>,
    execution: Option<&ExecutionRecord>,
    gaps: &[GapRecord],
    job: &JobSnapshot,
    now: DateTime<Utc>,
) -> Disposition {
    if let Some(execution) = execution {
        return of_execution(execution);
    }
    // Gaps of excluded days may lie within a longer one.
    let mut of_others = gaps.iter().filter(|gap| gap.reason != GapReason::Excluded.as_str());
    if let Some(gap) = of_others.find(|gap| (gap.first..=gap.last).contains(&at)) {
        return of_gap(gap);
    }
    let ahead = job.next_fire_at.is_some_and(|cursor| cursor <= at);
    // With jitter, a firing is due later than its nominal time, and those after it as well.
    let spread = job.due_at.is_some_and(|due| due > now);
    if ahead && (at > now || spread) {
        return Disposition::NotYet;
    }
    if ahead {
        return match (&job.paused, &job.held) {
            (Some(pause), _) => Disposition::Paused(pause.clone()),
            (None, Some(why)) => Disposition::Held(why.clone()),
            (None, None) => Disposition::Due,
        };
    }
    if job.next_fire_at.is_none() && job.planned_until.is_none_or(|until| until < at) {
        return Disposition::Ended;
    }
    if job.pruned_before.is_some_and(|before| at < before) {
        return Disposition::Unknown(UnknownReason::Pruned);
    }
    Disposition::Unknown(UnknownReason::Unaccounted)
}

/// Returns the [`disposition`] of a nominal time of `history`, which may be on an excluded day and need no gap yet.
/// It may still have an execution, by a backfill.
pub fn nominal_disposition(
    at: DateTime<Utc>,
    history: &ScheduleHistory,
    execution: Option<&ExecutionRecord>,
    gaps: &[GapRecord],
    (job, now): (&JobSnapshot, DateTime<Utc>),
) -> Disposition {
    if execution.is_none() && history.excludes(at) {
        return Disposition::NotRun(GapReason::Excluded.as_str().to_owned());
    }
    disposition(at, execution, gaps, job, now)
}

/// Classifies an instant that is no firing of `history`.
pub fn classify_instant(at: DateTime<Utc>, history: &ScheduleHistory) -> NotAFiring {
    if history.until().is_some_and(|until| at > until) {
        return NotAFiring::AfterDeletion;
    }
    match history.oldest() {
        Some(first) if at > first.from => NotAFiring::Between,
        Some(first) if first.number == 1 => NotAFiring::BeforeJob,
        _ => NotAFiring::BeforeRecords,
    }
}

/// Returns the disposition that an execution gives to its firing.
pub fn of_execution(execution: &ExecutionRecord) -> Disposition {
    match execution.state {
        State::Succeeded => Disposition::Ran,
        State::Pending if execution.held => Disposition::Queued,
        state @ (State::Pending | State::Running | State::Retrying) => Disposition::Running(state),
        State::Failed => Disposition::Failed,
        State::Discarded => Disposition::Discarded,
        State::Cancelled => Disposition::Cancelled,
        State::Skipped => Disposition::Skipped(execution.skip_reason.clone().unwrap_or_default()),
    }
}

fn of_gap(gap: &GapRecord) -> Disposition {
    // A gap whose firings were not all counted says so in its reason.
    let reason = gap.reason.strip_suffix(", at least").unwrap_or(&gap.reason);
    match reason {
        "coalesced" => Disposition::Coalesced(gap.into_key.clone()),
        GapRecord::SET_ASIDE => Disposition::Held("the database's time has jumped".to_owned()),
        "paused" => Disposition::Paused(Pause { actor: gap.actor.clone(), why: gap.why.clone() }),
        other => Disposition::NotRun(other.to_owned()),
    }
}
