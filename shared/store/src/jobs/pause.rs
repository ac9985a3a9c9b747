//! Pause and resume a job's schedule.
//!
//! A paused job keeps its cursor. A resume records the firings missed meanwhile as one gap and continues with the
//! first firing after the present: a pause is not an outage, so nothing is caught up. Neither touches executions
//! under way.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::id::JobId;
use sexton_model::plan::{Cursor, Gap, GapReason, excluded_gaps, plan_as_gap};
use sexton_model::zone::tz_data_version;
use sqlx::{Postgres, Transaction};

use super::{Job, JobFilter, read};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::firing::gaps::{self, GapCause, GapRow};
use crate::notifications::Notification;
use crate::operator::{
    AuditContext, NewAction, is_lock_timeout, notify, record_actions, set_lock_timeout,
};
use crate::{Now, Store, StoreError};

/// Why a job was not paused or resumed.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// No job has this name.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// It is paused already. The row is unchanged.
    #[error("job {:?} is paused already", .0.name)]
    Paused(Box<Job>),
    /// It is not paused.
    #[error("job {0:?} is not paused")]
    Active(String),
    /// Another transaction kept the row locked for 5 s. Try again.
    #[error("job {0:?} is locked by somebody else; try again")]
    Locked(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of a resume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resumed {
    /// When the job fires next; `None`: never again by itself.
    pub next_fire_at: Option<DateTime<Utc>>,
    /// Number of firings missed during the pause.
    pub passed: u32,
}

/// Stops a job's firings.
///
/// # Errors
///
/// [`PauseError::Paused`] if it is paused already: its actor and reason stay.
pub async fn pause(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), PauseError> {
    let (mut tx, job, at) = lock_job(store, name, now).await?;
    if job.status == "paused" {
        return Err(PauseError::Paused(Box::new(job)));
    }
    sqlx::query!(
        "-- pause_job
        UPDATE sexton.jobs SET status = 'paused', paused_by = $2, paused_why = $3, paused_at = $4,
            updated_at = $4
        WHERE id = $1",
        job.id,
        by.actor,
        by.reason,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    let action = NewAction {
        action: "pause",
        job_id: job.id,
        execution_id: None,
        reason: by.reason.map(str::to_owned),
        before: Some(json!({"status": "active"})),
        after: Some(json!({"status": "paused"})),
    };
    record_actions(&mut tx, by.actor, &[action], at).await?;
    notify(&mut tx, Notification::Jobs).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(())
}

/// Lets a job fire again, from now on.
///
/// # Errors
///
/// [`PauseError::Active`] if it is not paused.
pub async fn resume(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Resumed, PauseError> {
    let (mut tx, job, at) = lock_job(store, name, now).await?;
    if job.status != "paused" {
        return Err(PauseError::Active(name.to_owned()));
    }
    let PassedFirings { gap, next, excluded } = find_passed_firings(&job, at)?;
    let next_fire_at = next.map(|next| next.due);
    sqlx::query!(
        "-- resume_job
        UPDATE sexton.jobs SET status = 'active', paused_by = NULL, paused_why = NULL, paused_at = NULL,
            next_fire_at = $2, next_nominal_at = $5, tz_version = $4, updated_at = $3,
            failures_since = $3,
            planned_until = CASE WHEN $2::timestamptz IS NULL AND schedule_kind = 'once'
                THEN planned_until ELSE least($3, $6::timestamptz - interval '1 microsecond') END
        WHERE id = $1",
        job.id,
        next_fire_at,
        at,
        tz_data_version(),
        next.and_then(Cursor::distinct_nominal),
        next.map(|next| next.nominal)
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    let cause = GapCause {
        actor: job.paused_by.clone(),
        why: job.paused_why.clone(),
        ..GapCause::default()
    };
    let id = JobId::new(job.id);
    let paused = gap.as_ref().map(|gap| GapRow::of(id, gap).with_cause(cause));
    let rows: Vec<GapRow> =
        paused.into_iter().chain(excluded.iter().map(|gap| GapRow::of(id, gap))).collect();
    gaps::record_gaps(&mut tx, &rows, Some(at)).await?;
    let action = NewAction {
        action: "resume",
        job_id: job.id,
        execution_id: None,
        reason: by.reason.map(str::to_owned),
        before: Some(json!({
            "status": "paused", "paused_by": job.paused_by, "paused_why": job.paused_why,
            "paused_at": job.paused_at,
        })),
        after: Some(json!({"status": "active", "next_fire_at": next_fire_at})),
    };
    record_actions(&mut tx, by.actor, &[action], at).await?;
    notify(&mut tx, Notification::Jobs).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(Resumed { next_fire_at, passed: gap.map_or(0, |gap| gap.count) })
}

/// The consequences of a pause for the schedule.
#[derive(Default)]
struct PassedFirings {
    /// The firings that became due during it.
    gap: Option<Gap>,
    /// The next firing.
    next: Option<Cursor>,
    /// Firings on excluded days.
    excluded: Vec<Gap>,
}

fn find_passed_firings(job: &Job, at: DateTime<Utc>) -> Result<PassedFirings, StoreError> {
    let Some(cursor) = job.cursor()? else { return Ok(PassedFirings::default()) };
    let timetable = job.timetable()?;
    let plan = plan_as_gap(&timetable, cursor.nominal, at, GapReason::Paused);
    let next = plan.next_fire_at.map(|nominal| match nominal {
        same if same == cursor.nominal => cursor,
        other => Cursor::on(&timetable, other),
    });
    let from = job.planned_until.unwrap_or(cursor.nominal);
    let until = next.map_or(at, |next| next.nominal.min(at));
    let excluded = excluded_gaps(&timetable, from, until, next.is_none());
    Ok(PassedFirings { gap: plan.gaps.into_iter().next(), next, excluded })
}

/// Locks the job, and returns it with the instant of the decision.
pub(super) async fn lock_job(
    store: &Store,
    name: &str,
    now: Now,
) -> Result<(Transaction<'static, Postgres>, Job, DateTime<Utc>), PauseError> {
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    let found = sqlx::query_scalar!(
        r#"-- lock_job
        SELECT coalesce($2, now()) AS "now!" FROM sexton.jobs
        WHERE name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE"#,
        name,
        now
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await;
    let at = match found {
        Ok(at) => at.ok_or_else(|| PauseError::Missing(name.to_owned()))?,
        Err(error) if is_lock_timeout(&error) => return Err(PauseError::Locked(name.to_owned())),
        Err(error) => return Err(StoreError::from(error).into()),
    };
    // Read after the lock: an earlier read may be outdated.
    let filter = JobFilter { names: Some(vec![name.to_owned()]), ..JobFilter::default() };
    let job = read(&mut tx, &filter, 1).await?.pop();
    Ok((tx, job.ok_or_else(|| PauseError::Missing(name.to_owned()))?, at))
}
