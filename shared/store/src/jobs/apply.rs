//! Apply: makes the database's jobs match the files.
//!
//! One transaction for all of them: everything is applied or nothing. An advisory lock serialises applies, so
//! replicas that apply the same jobs at their start do it once. Jobs are locked before they are compared; an apply
//! waits for a planner that holds one.
//!
//! A job whose schedule stays keeps its cursor. One whose schedule changes starts at its first firing after the
//! present; firings that were due under the old schedule and not yet claimed become a gap. An apply never pauses an
//! existing job (except by `prune`) and never resumes one. A new job whose file says `paused` is created paused, in
//! the same transaction.

pub(super) mod cursor_placement;
mod error;
mod expected;
mod lock_keys;
mod missing_members;
mod templates;
mod write;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_model::id::JobId;
use sexton_model::job::{FieldChange, JobSpec, RESERVED_PREFIXES, diff};
use sexton_model::jobs_file::{Problem, check_with_timetables};
use sexton_model::plan::{Cursor, GapReason, Timetable, TimetableError};
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::{Job, JobFilter, read};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::firing::gaps::{self, GapCause, GapRow};
use crate::notifications::Notification;
use crate::operator::{NewAction, is_lock_timeout, notify, record_actions, set_lock_timeout};
use crate::platform_keys::APPLY_LOCK_KEY;
use crate::{Now, Store, StoreError};

use cursor_placement::{CursorPlacement, PreparedJob};

pub use error::ApplyError;
pub use expected::ExpectedJob;

/// Maximum number of jobs in one call.
pub const MAX_APPLIED_JOBS: usize = 20_000;
/// Number of jobs in one statement.
const MAX_BATCH_JOBS: usize = 1_000;

/// The jobs and options of an apply.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The jobs, with distinct names.
    pub specs: &'a [JobSpec],
    /// The actor in the audit.
    pub actor: &'a str,
    /// Only report what the apply would do.
    pub dry_run: bool,
    /// Pause active jobs that are not among them (except those that Sexton creates itself).
    pub prune: bool,
}

/// An existing job that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangedJob {
    /// Its name.
    pub name: String,
    /// The changed fields.
    pub changes: Vec<FieldChange>,
}

/// The result of an apply, or of its dry run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Applied {
    /// New jobs.
    pub created: Vec<String>,
    /// Changed jobs.
    pub changed: Vec<ChangedJob>,
    /// Jobs without changes.
    pub unchanged: Vec<String>,
    /// Jobs that `prune` paused.
    pub paused: Vec<String>,
    /// Applied jobs that are paused, new ones included, so that they do not fire.
    pub still_paused: Vec<String>,
    /// Jobs that fire although their file says `paused`: they existed before, or somebody has resumed them.
    pub not_paused: Vec<String>,
}

/// Applies jobs. `fresh_id` yields the id of each new one.
///
/// # Errors
///
/// [`ApplyError`]; nothing was applied.
pub async fn apply(
    store: &Store,
    request: Apply<'_>,
    fresh_id: impl FnMut() -> JobId,
    now: Now,
) -> Result<Applied, ApplyError> {
    apply_expecting(store, request, None, fresh_id, now).await
}

/// Applies jobs, if each of them is as expected.
///
/// # Errors
///
/// As [`apply`].
pub async fn apply_expecting(
    store: &Store,
    request: Apply<'_>,
    expected: Option<ExpectedJob>,
    fresh_id: impl FnMut() -> JobId,
    now: Now,
) -> Result<Applied, ApplyError> {
    if request.specs.len() > MAX_APPLIED_JOBS {
        return Err(ApplyError::TooMany(request.specs.len()));
    }
    // Computed before the transaction: thousands take a while, and the server ends an idle transaction.
    let timetables: Vec<_> = request.specs.iter().map(Timetable::of).collect();
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    let (at, existing) = match lock_jobs(&mut tx, &request, now).await {
        Ok(found) => found,
        Err(error) if is_lock_timeout(&error) => return Err(ApplyError::Locked),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let jobs = existing_jobs(&mut tx, existing).await?;
    expected::check(&request, expected, &jobs)?;
    let missing = missing_members::find(&mut tx, request.specs).await?;
    if !missing.is_empty() {
        return Err(ApplyError::MissingMembers(missing));
    }
    let unfilled = templates::find_problems(&mut tx, request.specs).await?;
    if !unfilled.is_empty() {
        return Err(ApplyError::Templates(unfilled));
    }
    let key_problems = lock_keys::find_problems(&mut tx, request.specs, &jobs).await?;
    let work = decide(&request, &timetables, &jobs, key_problems, fresh_id, at)?;
    let done = work.applied;
    let touched =
        if request.dry_run { false } else { write::touch(&mut tx, &work.over, at).await? };
    if touched && work.actions.is_empty() {
        commit(tx).await.map_err(StoreError::from)?;
    } else if !request.dry_run && !work.actions.is_empty() {
        write::release_lock_keys(&mut tx, &work.releasing).await?;
        for batch in work.created.chunks(MAX_BATCH_JOBS) {
            write::insert(&mut tx, batch, at).await?;
        }
        for batch in work.changed.chunks(MAX_BATCH_JOBS) {
            write::update(&mut tx, batch, at).await?;
        }
        write::prune(&mut tx, &done.paused, request.actor, at).await?;
        let cause = GapCause { actor: Some(request.actor.to_owned()), ..GapCause::default() };
        let reason = GapReason::Rescheduled;
        gaps::record_held(&mut tx, &work.rescheduled, reason, &cause, at).await?;
        gaps::record_gaps(&mut tx, &work.gaps, Some(at)).await?;
        for batch in work.actions.chunks(MAX_BATCH_JOBS) {
            record_actions(&mut tx, request.actor, batch, at).await?;
        }
        notify(&mut tx, Notification::Jobs).await?;
        commit(tx).await.map_err(StoreError::from)?;
    }
    Ok(done)
}

/// Takes the apply lock, reads the clock and locks the jobs concerned, by name.
async fn lock_jobs(
    tx: &mut Transaction<'static, Postgres>,
    request: &Apply<'_>,
    now: Now,
) -> Result<(DateTime<Utc>, Vec<String>), sqlx::Error> {
    set_lock_timeout(tx).await?;
    let names: Vec<String> = request.specs.iter().map(|spec| spec.name.clone()).collect();
    let reserved = RESERVED_PREFIXES.map(str::to_owned);
    if !request.dry_run {
        sqlx::query!("-- take_turn\nSELECT pg_advisory_xact_lock($1)", APPLY_LOCK_KEY)
            .execute(WithTimeout(&mut **tx))
            .await?;
        sqlx::query_scalar!(
            "-- lock_jobs
            SELECT id FROM sexton.jobs
            WHERE name = ANY ($1) OR ($2 AND status = 'active'
                AND NOT EXISTS (SELECT FROM unnest($3::text[]) p WHERE starts_with(name, p)))
            ORDER BY id FOR NO KEY UPDATE",
            &names,
            request.prune,
            &reserved
        )
        .fetch_all(WithTimeout(&mut **tx))
        .await?;
    }
    let at = instant(&mut *tx, now).await?;
    let concerned = sqlx::query_scalar!(
        "-- concerned_jobs
        SELECT name FROM sexton.jobs
        WHERE name = ANY ($1) OR ($2 AND status = 'active'
                AND NOT EXISTS (SELECT FROM unnest($3::text[]) p WHERE starts_with(name, p)))",
        &names,
        request.prune,
        &reserved
    )
    .fetch_all(WithTimeout(&mut **tx))
    .await?;
    Ok((at, concerned))
}

async fn existing_jobs(
    connection: &mut PgConnection,
    names: Vec<String>,
) -> Result<Vec<Job>, StoreError> {
    let limit = names.len() as i64;
    let filter = JobFilter { names: Some(names), ..JobFilter::default() };
    read(connection, &filter, limit).await
}

/// The rows to write.
#[derive(Default)]
struct PlannedWrites {
    applied: Applied,
    created: Vec<Value>,
    changed: Vec<Value>,
    gaps: Vec<GapRow>,
    /// Existing jobs with a new schedule.
    rescheduled: Vec<JobId>,
    actions: Vec<NewAction>,
    /// Finished one-shot jobs, which stay as they are.
    over: Vec<Uuid>,
    /// Jobs that give up their lock key.
    releasing: Vec<Uuid>,
}

fn decide(
    request: &Apply<'_>,
    timetables: &[Result<Timetable, TimetableError>],
    jobs: &[Job],
    mut problems: Vec<Problem>,
    mut fresh_id: impl FnMut() -> JobId,
    at: DateTime<Utc>,
) -> Result<PlannedWrites, ApplyError> {
    let by_name: HashMap<&str, &Job> = jobs.iter().map(|job| (job.name.as_str(), job)).collect();
    let mut work = PlannedWrites::default();
    let mut rescheduled = Vec::new();
    for (spec, timetable) in request.specs.iter().zip(timetables) {
        let ready = PreparedJob { spec, timetable: timetable.as_ref().ok() };
        if let Some(job) = by_name.get(spec.name.as_str()) {
            let old = job.spec()?;
            let changes = diff(&old, spec);
            if job.status == "paused" {
                work.applied.still_paused.push(spec.name.clone());
            } else if spec.paused {
                work.applied.not_paused.push(spec.name.clone());
            }
            if changes.is_empty() {
                work.applied.unchanged.push(spec.name.clone());
                if job.schedule_kind == "once" && job.next_fire_at.is_none() {
                    work.over.push(job.id);
                }
                continue;
            }
            if !old.has_same_firings(spec) {
                rescheduled.push((spec, timetable));
            }
            work.change(job, &old, ready, changes, request.actor, at)?;
        } else {
            rescheduled.push((spec, timetable));
            work.create(ready, fresh_id(), request.actor, at);
        }
    }
    problems.extend(check_with_timetables(rescheduled, at));
    if !problems.is_empty() {
        return Err(ApplyError::Problems(problems));
    }
    if request.prune {
        let listed_names: HashSet<&str> =
            request.specs.iter().map(|spec| spec.name.as_str()).collect();
        let is_removed =
            |job: &&Job| job.status == "active" && !listed_names.contains(job.name.as_str());
        for job in jobs.iter().filter(is_removed) {
            work.pause(job);
        }
    }
    Ok(work)
}

/// Builds the definition's row, for `jsonb_populate_recordset`.
fn row(mut row: Value, id: JobId, place: &CursorPlacement) -> Value {
    row["id"] = json!(id);
    row["runs_used"] = json!(place.runs_used);
    row["next_fire_at"] = json!(place.cursor.map(|cursor| cursor.due));
    row["next_nominal_at"] = json!(place.cursor.and_then(Cursor::distinct_nominal));
    row["planned_until"] = json!(place.planned_until);
    row["tz_version"] = json!(place.tz_version);
    row
}

impl PlannedWrites {
    fn create(&mut self, ready: PreparedJob<'_>, id: JobId, actor: &str, at: DateTime<Utc>) {
        let definition = ready.spec.to_json();
        self.applied.created.push(ready.spec.name.clone());
        let mut row = row(definition.clone(), id, &CursorPlacement::start(ready, 0, at));
        row["status"] = json!("active");
        self.actions.push(definition_action(id, None, Some(definition)));
        if ready.spec.paused {
            self.applied.still_paused.push(ready.spec.name.clone());
            row["status"] = json!("paused");
            row["paused_by"] = json!(actor);
            row["paused_why"] = json!(CREATED_PAUSED_REASON);
            row["paused_at"] = json!(at);
            self.actions.push(pause_action(id, CREATED_PAUSED_REASON));
        }
        self.created.push(row);
    }

    fn change(
        &mut self,
        job: &Job,
        old: &JobSpec,
        ready: PreparedJob<'_>,
        changes: Vec<FieldChange>,
        actor: &str,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let id = JobId::new(job.id);
        let spec = ready.spec;
        if job.lock_key.is_some() && job.lock_key != spec.lock_key {
            self.releasing.push(job.id);
        }
        if !old.has_same_firings(spec) {
            self.rescheduled.push(id);
        }
        let (place, gaps) = cursor_placement::reschedule(job, old, ready, at)?;
        self.gaps.extend(gaps.iter().map(|gap| {
            let (actor, why) = match gap.reason {
                GapReason::Paused => (job.paused_by.clone(), job.paused_why.clone()),
                GapReason::Rescheduled | GapReason::PastEnd => (Some(actor.to_owned()), None),
                _ => (None, None),
            };
            GapRow::of(id, gap).with_cause(GapCause { actor, why, into_key: None })
        }));
        self.changed.push(row(spec.to_json(), id, &place));
        let side = |pick: fn(&FieldChange) -> &Value| {
            let fields = changes.iter().map(|c| (c.field.to_owned(), pick(c).clone()));
            Some(Value::Object(fields.collect::<Map<_, _>>()))
        };
        self.actions.push(definition_action(
            id,
            side(|change| &change.from),
            side(|change| &change.to),
        ));
        self.applied.changed.push(ChangedJob { name: spec.name.clone(), changes });
        Ok(())
    }

    fn pause(&mut self, job: &Job) {
        self.applied.paused.push(job.name.clone());
        self.actions.push(pause_action(JobId::new(job.id), PRUNE_REASON));
    }
}

const PRUNE_REASON: &str = "not in the applied files";
const CREATED_PAUSED_REASON: &str = "the jobs file creates it paused";

fn pause_action(job: JobId, reason: &str) -> NewAction {
    let status = |status: &str| Some(json!({"status": status}));
    NewAction {
        action: "pause",
        reason: Some(reason.to_owned()),
        ..definition_action(job, status("active"), status("paused"))
    }
}

fn definition_action(job: JobId, before: Option<Value>, after: Option<Value>) -> NewAction {
    NewAction {
        action: "apply",
        job_id: job.get(),
        execution_id: None,
        reason: None,
        before,
        after,
    }
}
