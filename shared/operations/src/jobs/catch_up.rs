//! Late firings: their future under the policies, and the release or discard of held ones.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sexton_model::id::ExecutionId;
use sexton_model::job::Misfire;
use sexton_model::plan::{Disposition, Firing, Plan, PlanInput, plan_at_most};
use sexton_service::fault;
use sexton_store::catch_up::{
    self, Hold, HoldDecision, PrecedingRuns, SettleError, SettledHold, plan_release,
};
use sexton_store::firing::{self, DueJob, HeldRun};
use sexton_store::{Store, StoreError, status};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{Conflict, OperationError};
use crate::job_names;
use crate::scope;

/// Maximum number of jobs, and of held runs, in one answer.
pub const MAX_ENTRIES: i64 = 10_000;

/// Checks that each name belongs to a job.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] for the first that does not.
pub async fn check_names(store: &Store, names: &[String]) -> Result<(), OperationError> {
    for name in names {
        job_names::find(store, name).await?;
    }
    Ok(())
}

/// Counts the held firings of these jobs, or of all.
///
/// # Errors
///
/// [`Conflict`] when none is held.
pub async fn count_held(store: &Store, names: Option<&[String]>) -> Result<i64, OperationError> {
    let firings = catch_up::count_held_firings(store, names).await?;
    if firings == 0 && (names.is_some() || catch_up::find_hold(store).await?.is_none()) {
        let text = "nothing is held; nothing was done".to_owned();
        return Err(Conflict::Other(text).into());
    }
    Ok(firings)
}

/// Releases or discards the held firings of these jobs or of all; without names the hold itself ends. Runs in
/// batches, each one transaction with its record in the audit.
///
/// # Errors
///
/// [`OperationError::Failed`] when another operator settles at the same time. Jobs that cannot be read are in the
/// answer.
pub async fn settle(
    store: &Store,
    decision: HoldDecision,
    names: Option<&[String]>,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<SettledHold, OperationError> {
    // Each batch is a transaction, so one that is refused would come too late.
    match names {
        None if store.only_jobs().is_some() => {
            return Err(scope::refusal(store, "the held firings of all jobs; name the jobs"));
        }
        None => {}
        Some(names) => {
            for name in names {
                scope::check_job(store, name).await?;
            }
        }
    }
    let claimer = actor.process();
    let by = (actor.because(reason), claimer.as_str());
    let fresh_id = || ExecutionId::new(Uuid::now_v7());
    let done = catch_up::settle(store, (decision, names), by, fresh_id, None).await;
    let settled = done.map_err(|error| match error {
        SettleError::Locked => OperationError::Failed(error.to_string()),
        SettleError::Store(error) => error.into(),
    })?;
    fault::point("console.caught_up");
    Ok(settled)
}

/// The future of a job's late firings.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LateFirings))]
pub struct Entry {
    /// The job.
    pub job_name: String,
    /// `due`: the planner claims them now; `held`: they wait for an operator.
    pub state: &'static str,
    /// The instant by which they are judged.
    pub judged_at: DateTime<Utc>,
    /// The job's misfire policy.
    pub policy: &'static str,
    /// Firings that would run, oldest first; if the job's executions run one at a time, when the job is free.
    pub runs: Vec<DateTime<Utc>>,
    /// Firings that would be recorded as skipped.
    pub skipped: usize,
    /// Firings that would not run.
    pub gaps: Vec<GapEntry>,
    /// Milliseconds over which the starts are spread.
    pub spread_ms: i64,
}

/// Firings that would not run, and the reason.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = LateGap))]
pub struct GapEntry {
    /// The reason, in a word.
    pub reason: &'static str,
    /// The first of them.
    pub first_firing: DateTime<Utc>,
    /// The last of them.
    pub last_firing: DateTime<Utc>,
    /// Number of firings.
    pub count: u32,
}

/// The result of a dry run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CatchUpPreview {
    /// When it was made, by the database's clock.
    pub now: DateTime<Utc>,
    /// The hold, if catch-up is held.
    pub hold: Option<Hold>,
    /// The late and the held firings.
    #[serde(rename = "jobs")]
    pub entries: Vec<Entry>,
    /// Jobs that cannot be read.
    pub unreadable: Vec<String>,
    /// Whether the answer is truncated.
    pub is_cut: bool,
}

/// Predicts what happens to the late firings of these jobs or of all, by the planner's and the release's own
/// decisions. It changes nothing; the prediction holds for this moment.
///
/// # Errors
///
/// Those of the database.
pub async fn preview(
    store: &Store,
    names: Option<&[String]>,
) -> Result<CatchUpPreview, OperationError> {
    let now = status::clock(store).await?;
    let hold = catch_up::find_hold(store).await?;
    let is_held = hold.is_some();
    // One more than is shown, to detect a truncation.
    let due = firing::list_due_now(store, names, MAX_ENTRIES + 1, None).await?;
    let mut unreadable: Vec<String> = due.unreadable.iter().map(|job| job.name.clone()).collect();
    let mut entries = Vec::new();
    for job in due.jobs.iter().filter(|job| is_late(job)) {
        match due_entry(job, is_held) {
            Ok(entry) => entries.push(entry),
            Err(_) => unreadable.push(job.name.clone()),
        }
    }
    let mut runs = firing::list_held_runs(store, names, MAX_ENTRIES + 1).await?;
    let of_held = firing::list_held_jobs(store, names, MAX_ENTRIES, None).await?;
    let is_cut = due.jobs.len() + due.unreadable.len() > MAX_ENTRIES as usize
        || runs.len() > MAX_ENTRIES as usize;
    runs.truncate(MAX_ENTRIES as usize);
    unreadable.extend(of_held.unreadable.iter().map(|job| job.name.clone()));
    for job in &of_held.jobs {
        let mut before = PrecedingRuns::first_of(job);
        for run in runs.iter().filter(|run| run.job_id == job.id) {
            match plan_release(job, run, before) {
                Ok(plan) => {
                    before.add(&plan);
                    entries.push(Entry::new(job, "held", run.held_at, &plan));
                }
                Err(_) => unreadable.push(job.name.clone()),
            }
        }
    }
    entries.sort_by(|a, b| (&a.job_name, a.judged_at).cmp(&(&b.job_name, b.judged_at)));
    unreadable.sort_unstable();
    unreadable.dedup();
    Ok(CatchUpPreview { now, hold, entries, unreadable, is_cut })
}

fn is_late(job: &DueJob) -> bool {
    let on_time = TimeDelta::from_std(Misfire::ON_TIME_GRACE).unwrap_or_default();
    // The planner reports an unreadable schedule.
    let due = job.timetable().map_or(job.next_fire_at, |table| table.due(job.next_fire_at));
    job.now - due > on_time
}

/// Predicts the claims of a late job: the planner's, or, while catch-up is held, those of a release of the firings
/// that the planner would set aside.
fn due_entry(job: &DueJob, is_held: bool) -> Result<Entry, StoreError> {
    let timetable = job.timetable().map_err(|error| StoreError::Inconsistent {
        place: "jobs.schedule_expression",
        value: error.to_string(),
    })?;
    let due = PlanInput {
        timetable: &timetable,
        overlap: job.overlap,
        misfire: job.misfire,
        next_fire_at: job.next_fire_at,
        under_way: job.under_way,
        held: is_held,
    };
    let left = job.constraints.runs_left(job.runs_used);
    let plan = plan_at_most(&due, left, job.now);
    let Some(gap) = &plan.held else { return Ok(Entry::new(job, "due", job.now, &plan)) };
    let run = HeldRun {
        job_id: job.id,
        job_name: job.name.clone(),
        first: gap.first,
        last: gap.last,
        count: gap.count,
        held_at: job.now,
        paused: false,
    };
    Ok(Entry::new(job, "held", job.now, &plan_release(job, &run, PrecedingRuns::first_of(job))?))
}

impl Entry {
    fn new(job: &DueJob, state: &'static str, judged_at: DateTime<Utc>, plan: &Plan) -> Self {
        let is_skipped = |firing: &&Firing| matches!(firing.disposition, Disposition::Skipped(_));
        let runs = plan.firings.iter().filter(|firing| !is_skipped(firing));
        let spread = runs.clone().map(|firing| firing.after).max().unwrap_or_default();
        let runs: Vec<_> = runs.map(|firing| firing.scheduled_for).collect();
        Self {
            job_name: job.name.clone(),
            state,
            judged_at,
            policy: job.misfire.policy.as_str(),
            skipped: plan.firings.len() - runs.len(),
            runs,
            gaps: plan
                .gaps
                .iter()
                .map(|gap| GapEntry {
                    reason: gap.reason.as_str(),
                    first_firing: gap.first,
                    last_firing: gap.last,
                    count: gap.count,
                })
                .collect(),
            spread_ms: i64::try_from(spread.as_millis()).unwrap_or(i64::MAX),
        }
    }
}
