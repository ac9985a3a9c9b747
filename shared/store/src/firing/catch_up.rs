//! Held catch-up: its state, and its end by an operator.
//!
//! Planners begin a hold and set firings aside ([`crate::firing::ClaimTransaction::read_clock`]); only an operator
//! ends it. [`settle()`] handles the jobs in batches, each one transaction: lock the jobs, give the firings that were
//! set aside their dispositions (rows and gaps by the jobs' misfire policies of that time, or gaps alone), delete
//! them from the hold, write the audit. The last transaction ends the hold; it touches only the hold's row, and only
//! if no firing is set aside any more.
//!
//! A crash in between leaves the hold and the undecided firings; the same call again does the rest. The relay
//! publishes the tickets of the claimed rows.

mod settle;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::job::Overlap;
use sexton_model::plan::overlap::UnderWay;
use sexton_model::plan::{Disposition, Gap, GapReason, Plan, PlanInput, release_at_most};

use crate::firing::{DueJob, HeldRun};
use crate::{Store, StoreError};

pub use settle::settle;

/// Maximum number of late jobs that are counted.
pub const MAX_COUNTED_LATE_JOBS: i64 = 10_000;

/// A hold that has not ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    /// `forward` or `backward`: how the database's time jumped.
    pub reason: String,
    /// The last instant seen before the jump.
    pub last_seen: DateTime<Utc>,
    /// The database's time after the jump.
    pub noticed_at: DateTime<Utc>,
    /// The scheduler that noticed it, as `<instance>:<pid>`.
    pub noticed_by: String,
    /// Number of jobs with firings set aside.
    pub jobs: i64,
    /// Number of firings set aside.
    pub firings: i64,
}

/// An operator's decision about the firings that are set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldDecision {
    /// The jobs' misfire policies judge them.
    Release,
    /// They become gaps with the reason `held`.
    Discard,
}

impl HoldDecision {
    /// The value in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Release => "released",
            Self::Discard => "discarded",
        }
    }
}

/// The result of a release or discard.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettledHold {
    /// Number of jobs that were decided.
    pub jobs: usize,
    /// Number of executions claimed.
    pub claimed: usize,
    /// Number of firings recorded as skipped.
    pub skipped: usize,
    /// Number of firings that had been claimed before.
    pub known: usize,
    /// Number of firings counted in gaps.
    pub missed: u64,
    /// Jobs whose rows cannot be read; their firings stay set aside.
    pub unreadable: Vec<String>,
    /// Whether the hold is over.
    pub ended: bool,
    /// After a discard that ended the hold: number of active jobs that are late and that no scheduler had set aside.
    /// Their policies catch them up. [`MAX_COUNTED_LATE_JOBS`] also means more.
    pub late_jobs: i64,
}

/// Why a release or discard failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// Other transactions kept jobs locked for 5 s. Earlier batches stay decided; try again.
    #[error("the jobs are locked by somebody else; try again")]
    Locked,
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the hold, if catch-up is held, and how much is set aside.
pub async fn find_hold(store: &Store) -> Result<Option<Hold>, StoreError> {
    Ok(sqlx::query_as!(
        Hold,
        r#"-- hold
        SELECT reason, last_seen, noticed_at, noticed_by, h.jobs AS "jobs!", h.firings AS "firings!"
        FROM sexton.holds, (SELECT count(DISTINCT job_id) AS jobs, coalesce(sum(count), 0)::bigint AS firings
                     FROM sexton.held_firings) h
        WHERE released_at IS NULL"#
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// A job's state as a run that was set aside finds it, after the runs before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrecedingRuns {
    /// The job's executions that have not ended.
    under_way: UnderWay,
    /// How many of its firings may still run; `None`: any number.
    left: Option<u32>,
    /// How many executions of the same release begin before this one.
    begun: u64,
}

impl PrecedingRuns {
    /// Returns the state that the first run of `job` finds.
    pub fn first_of(job: &DueJob) -> Self {
        Self { under_way: job.under_way, left: job.constraints.runs_left(job.runs_used), begun: 0 }
    }

    /// Updates the state for the run after the one with this plan.
    pub fn add(&mut self, plan: &Plan) {
        self.left = self.left.map(|left| left.saturating_sub(plan.runs()));
        self.begun += plan.begins();
        for firing in &plan.firings {
            match firing.disposition {
                Disposition::Run => self.under_way.ready = true,
                Disposition::Waits(_) => self.under_way.firing_waits = true,
                Disposition::Skipped(_) => {}
            }
        }
    }
}

/// Counts the firings that are set aside, of the jobs `names` or of all.
pub async fn count_held_firings(
    store: &Store,
    names: Option<&[String]>,
) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- firings_set_aside
        SELECT coalesce(sum(h.count), 0)::bigint AS "firings!"
        FROM sexton.held_firings h JOIN sexton.jobs j ON j.id = h.job_id
        WHERE $1::text[] IS NULL OR j.name = ANY ($1)"#,
        names as Option<&[String]>
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Plans the release of one run that was set aside. `job` is as it was read for this run.
///
/// # Errors
///
/// [`StoreError::Inconsistent`]: the schedule cannot be read.
pub fn plan_release(
    job: &DueJob,
    run: &HeldRun,
    before: PrecedingRuns,
) -> Result<Plan, StoreError> {
    let PrecedingRuns { under_way, left, begun } = before;
    let whole = |reason| Plan {
        gaps: vec![Gap { first: run.first, last: run.last, count: run.count, reason }],
        ..Plan::default()
    };
    if run.paused {
        return Ok(whole(GapReason::Paused));
    }
    let timetable = job.timetable().map_err(|error| StoreError::Inconsistent {
        place: "jobs.schedule_expression",
        value: error.to_string(),
    })?;
    let due = PlanInput {
        timetable: &timetable,
        overlap: release_overlap(job.overlap),
        misfire: job.misfire,
        next_fire_at: run.first,
        under_way,
        held: false,
    };
    let plan = release_at_most(&due, (begun, left), run.last, run.held_at);
    let counted: u64 = plan.gaps.iter().map(|gap| u64::from(gap.count)).sum();
    // An older version of the program gave the job another schedule, and left this run behind.
    let is_of_another = counted + plan.firings.len() as u64 != u64::from(run.count);
    Ok(if is_of_another { whole(GapReason::Rescheduled) } else { plan })
}

/// Returns the overlap policy that a release applies: newer firings have been claimed since, so a released firing
/// replaces nothing and waits until the job is free.
const fn release_overlap(policy: Overlap) -> Overlap {
    match policy {
        Overlap::Replace => Overlap::Queue,
        other => other,
    }
}
