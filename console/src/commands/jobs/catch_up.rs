//! `sexton jobs catch-up`: what is late, what is held, and what becomes of it.
//!
//! The dry run asks the same decisions as the planner and the release, by the database's clock, and
//! changes nothing. What it says is true of that moment: a planner may claim what is due a moment later.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::json;
use sexton_model::id::ExecutionId;
use sexton_model::job::Misfire;
use sexton_model::plan::{Disposition, Firing, Plan, PlanInput, plan_at_most};
use sexton_service::fault;
use sexton_store::catch_up::{
    self, Hold, HoldDecision, PrecedingRuns, SettleError, SettledHold, plan_release,
};
use sexton_store::firing::{self, DueJob, HeldRun};
use sexton_store::operator::AuditContext;
use sexton_store::{Store, StoreError, jobs};
use uuid::Uuid;

use super::{CatchUp, missing};
use crate::actor;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, duration, instant};

/// Jobs, and runs that were set aside, that one answer has at the most.
const MAX_ENTRIES: i64 = 10_000;

/// What would become of the late firings of a job.
#[derive(Debug, Serialize)]
struct Entry {
    job_name: String,
    /// `due`: the planner claims them now; `held`: they wait for an operator.
    state: &'static str,
    /// As of when they are judged.
    judged_at: DateTime<Utc>,
    policy: &'static str,
    /// Firings that would run, oldest first; of a job whose executions run one at a time, when it is free.
    runs: Vec<DateTime<Utc>>,
    /// Firings that would be recorded as skipped.
    skipped: usize,
    /// Firings that would not run.
    gaps: Vec<GapEntry>,
    /// Milliseconds over which the beginnings are spread.
    spread_ms: i64,
}

#[derive(Debug, Serialize)]
struct GapEntry {
    reason: &'static str,
    first_firing: DateTime<Utc>,
    last_firing: DateTime<Utc>,
    count: u32,
}

pub(super) async fn run(arguments: &CatchUp, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    for name in &arguments.names {
        if jobs::find(&store, name).await?.is_none() {
            return Err(missing(&store, name).await);
        }
    }
    let names = Some(&arguments.names[..]).filter(|names| !names.is_empty());
    if arguments.dry_run {
        return show(&store, names, session).await;
    }
    let verdict = if arguments.discard { HoldDecision::Discard } else { HoldDecision::Release };
    settle(&store, (verdict, names), arguments, session).await
}

async fn show(store: &Store, names: Option<&[String]>, session: &Session) -> Result<(), Failure> {
    let hold = catch_up::find_hold(store).await?;
    let now = session.now(store).await?;
    let CatchUpPreview { entries, unreadable, is_cut } =
        preview(store, names, hold.is_some()).await?;
    if session.out.is_json() {
        return session.out.document(&json!({
            "now": now,
            "hold": hold,
            "jobs": entries,
            "unreadable": unreadable,
            "is_cut": is_cut,
        }));
    }
    match &hold {
        Some(hold) => session.out.print(describe_hold(hold))?,
        None => session.out.print("Catch-up is not held.")?,
    }
    for name in &unreadable {
        session.out.print(format!("{name} cannot be planned: its row cannot be read."))?;
    }
    if entries.is_empty() {
        return session.out.print("No firing is late.");
    }
    session.out.table(table(&entries))?;
    if is_cut {
        session.out.print(format!(
            "More is left out: only the first {MAX_ENTRIES} late jobs and runs that were set aside are \
             judged here. Ask for single jobs by their names."
        ))?;
    }
    Ok(())
}

fn describe_hold(hold: &Hold) -> String {
    let direction = if hold.reason == "backward" { "back" } else { "ahead" };
    format!(
        "Catch-up is held: the database's time went {direction} from {} to {}. {} firings of {} jobs \
         are set aside; --release lets their jobs' policies judge them, --discard gives them up.",
        instant(hold.last_seen),
        instant(hold.noticed_at),
        hold.firings,
        hold.jobs
    )
}

/// What a dry run says.
struct CatchUpPreview {
    /// What would become of what is late now, and of what was set aside.
    entries: Vec<Entry>,
    /// Jobs that cannot be read.
    unreadable: Vec<String>,
    /// Whether there is more than one answer has.
    is_cut: bool,
}

async fn preview(
    store: &Store,
    names: Option<&[String]>,
    is_held: bool,
) -> Result<CatchUpPreview, StoreError> {
    // One more than is shown tells that there is more.
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
    Ok(CatchUpPreview { entries, unreadable, is_cut })
}

fn is_late(job: &DueJob) -> bool {
    let on_time = TimeDelta::from_std(Misfire::ON_TIME_GRACE).unwrap_or_default();
    // One that cannot be read is told as such by whoever plans it.
    let due = job.timetable().map_or(job.next_fire_at, |table| table.due(job.next_fire_at));
    job.now - due > on_time
}

/// Of a job that is late: what the planner would claim, or, while catch-up is held, what a release
/// would make of what it would set aside.
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

fn table(entries: &[Entry]) -> Table {
    let headings = ["JOB", "LATE", "POLICY", "WOULD RUN", "OF", "SPREAD", "SKIPPED", "GAPS"];
    let mut table = Table::new(&headings);
    for entry in entries {
        let gaps: Vec<_> =
            entry.gaps.iter().map(|gap| format!("{} {}", gap.count, gap.reason)).collect();
        let of = match &entry.runs[..] {
            [] => Cell::none(),
            [one] => Cell::new(instant(*one)),
            [first, .., last] => Cell::new(format!("{} to {}", instant(*first), instant(*last))),
        };
        let spread = match entry.spread_ms {
            0 => Cell::none(),
            ms => Cell::new(duration(ms)),
        };
        let tone = if entry.state == "held" { Tone::Warning } else { Tone::Plain };
        table.row(vec![
            Cell::new(&entry.job_name),
            Cell::toned(entry.state, tone),
            Cell::new(entry.policy),
            Cell::number(entry.runs.len() as i64),
            of,
            spread,
            Cell::number(entry.skipped as i64),
            if gaps.is_empty() { Cell::none() } else { Cell::new(gaps.join(", ")) },
        ]);
    }
    table
}

async fn settle(
    store: &Store,
    (verdict, names): (HoldDecision, Option<&[String]>),
    arguments: &CatchUp,
    session: &Session,
) -> Result<(), Failure> {
    let firings = catch_up::count_held_firings(store, names).await?;
    if firings == 0 && (names.is_some() || catch_up::find_hold(store).await?.is_none()) {
        return Err(Failure::NothingDone("nothing is held; nothing was done".to_owned()));
    }
    let verb = match verdict {
        HoldDecision::Release => "will be judged by their jobs' misfire policies",
        HoldDecision::Discard => "will be given up",
    };
    confirm(&format!("{firings} firings that are set aside {verb}"), arguments.yes)?;
    let by = AuditContext { actor: &session.actor, reason: arguments.reason.as_deref() };
    let claimer = actor::claimer();
    let fresh_id = || ExecutionId::new(Uuid::now_v7());
    let done = catch_up::settle(store, (verdict, names), (by, &claimer), fresh_id, None).await;
    let settled = done.map_err(|error| match error {
        SettleError::Locked => Failure::Failed(error.to_string()),
        SettleError::Store(error) => error.into(),
    })?;
    fault::point("console.caught_up");
    if session.out.is_json() {
        session.out.document(&settled)?;
    } else {
        session.out.print(format!(
            "{} jobs: {} executions are pending, {} firings are skipped, {} are counted in gaps, {} \
             had been claimed before.",
            settled.jobs, settled.claimed, settled.skipped, settled.missed, settled.known
        ))?;
        let over = match (settled.ended, names) {
            (true, _) => "The hold is over.",
            (false, Some(_)) => "The hold goes on; without a name it ends.",
            (false, None) => "The hold goes on, because something is set aside still.",
        };
        session.out.print(over)?;
        if settled.late_jobs > 0 {
            session.out.print(describe_late_jobs(&settled))?;
        }
    }
    if settled.unreadable.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "these jobs cannot be read, and theirs stays set aside: {}; correct them, or --discard it",
        settled.unreadable.join(", ")
    )))
}

/// What a discard could not give up.
fn describe_late_jobs(settled: &SettledHold) -> String {
    let or_more =
        if settled.late_jobs >= catch_up::MAX_COUNTED_LATE_JOBS { " or more" } else { "" };
    format!(
        "{}{or_more} jobs are late and no scheduler has set them aside: they will be caught up by their \
         policies. sexton jobs catch-up --dry-run shows what would run; pause at once what must not \
         (sexton jobs pause NAME): resuming it passes over what was due.",
        settled.late_jobs
    )
}
