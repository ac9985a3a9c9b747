//! Catch-up that is held: what there is of it, and what an operator makes of it.
//!
//! Planners begin a hold and set firings aside ([`crate::firing::ClaimTransaction::read_clock`]);
//! only an operator ends it. [`settle()`] goes through the jobs in batches, each one transaction: lock the
//! jobs, give what was set aside its dispositions (rows and gaps by the jobs' misfire policies as of
//! when it was set aside, or gaps alone), delete it, record the deed. The last transaction ends the
//! hold, alone with its row, and only if nothing is set aside any more.
//!
//! A crash in between leaves the hold and what was not decided yet: the same call again does the rest.
//! Rows that were claimed owe their tickets; the relay publishes them.

mod settle;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::job::Overlap;
use sexton_model::overlap::UnderWay;
use sexton_model::plan::{Disposition, Gap, GapReason, Plan, PlanInput, release_at_most};

use crate::firing::{DueJob, HeldRun};
use crate::{Store, StoreError};

pub use settle::settle;

/// So many late jobs are counted at the most.
pub const MAX_COUNTED_LATE_JOBS: i64 = 10_000;

/// A hold that has no end yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hold {
    /// `forward` or `backward`: how the database's time jumped.
    pub reason: String,
    /// The last instant seen before it.
    pub last_seen: DateTime<Utc>,
    /// The database's time after it.
    pub noticed_at: DateTime<Utc>,
    /// By which scheduler, as `<instance>:<pid>`.
    pub noticed_by: String,
    /// Jobs of which firings are set aside.
    pub jobs: i64,
    /// How many firings those are.
    pub firings: i64,
}

/// What becomes of what was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldDecision {
    /// The jobs' misfire policies judge it.
    Release,
    /// It is given up: gaps with the reason `held`.
    Discard,
}

impl HoldDecision {
    /// As the database writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Release => "released",
            Self::Discard => "discarded",
        }
    }
}

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SettledHold {
    /// Jobs that were decided.
    pub jobs: usize,
    /// Executions that are to run.
    pub claimed: usize,
    /// Firings that are recorded as skipped.
    pub skipped: usize,
    /// Firings that had been claimed before.
    pub known: usize,
    /// Firings that are counted in gaps.
    pub missed: u64,
    /// Jobs whose rows cannot be read: theirs stays set aside.
    pub unreadable: Vec<String>,
    /// Whether the hold is over.
    pub ended: bool,
    /// After a discard that ended the hold: active jobs that are late, and that no scheduler had set
    /// aside. They are caught up by their policies. [`MAX_COUNTED_LATE_JOBS`] stands for more as well.
    pub late_jobs: i64,
}

/// Why it was not done, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// Somebody kept jobs locked for 5 s. What was decided before stays so; try again.
    #[error("the jobs are locked by somebody else; try again")]
    Locked,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The hold, if catch-up is held, and how much is set aside.
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

/// What a run that was set aside finds of its job, after the runs before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrecedingRuns {
    /// What of the job has not ended.
    under_way: UnderWay,
    /// How many of its firings may still run; `None`: any number.
    left: Option<u32>,
    /// How many begin before, of the same release.
    begun: u64,
}

impl PrecedingRuns {
    /// What the first run of `job` finds.
    pub fn first_of(job: &DueJob) -> Self {
        Self { under_way: job.under_way, left: job.constraints.runs_left(job.runs_used), begun: 0 }
    }

    /// What the run after the one with this plan finds.
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

/// How many firings are set aside, of the jobs `names` or of all.
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

/// What a plan makes of one run that was set aside, if it is released. `job` is as it is read for it.
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
    // A program of a version before gave the job another schedule, and left this behind.
    let is_of_another = counted + plan.firings.len() as u64 != u64::from(run.count);
    Ok(if is_of_another { whole(GapReason::Rescheduled) } else { plan })
}

/// What a release makes of a policy: newer firings have been claimed since, so it replaces nothing, and
/// waits until the job is free.
const fn release_overlap(policy: Overlap) -> Overlap {
    match policy {
        Overlap::Replace => Overlap::Queue,
        other => other,
    }
}
