//! The next firings of jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::plan::Timetable;
use sexton_model::zone::Zone;
use sexton_store::{Store, jobs, status};

use super::scheduled::{ScheduledJob, ScheduledJobs, load_jobs, load_jobs_by_name};
use crate::error::OperationError;
use crate::instants::is_listed;

/// A future firing.
#[derive(Debug)]
pub struct UpcomingFiring<'j> {
    /// The job.
    pub job: &'j ScheduledJob,
    /// Its nominal time.
    pub at: DateTime<Utc>,
}

/// The next firings of jobs, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextFirings {
    /// Strictly after this; `None`: those that are not planned yet.
    pub from: Option<DateTime<Utc>>,
    /// Whether all jobs were looked at.
    pub complete: bool,
    /// The firings, the soonest first.
    pub next: Vec<NextFiring>,
}

/// A future firing, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextFiring {
    /// The job's name.
    pub job_name: String,
    /// Its nominal time.
    pub at: DateTime<Utc>,
    /// The zone of `wall`.
    pub tz: &'static str,
    /// What clocks there show then.
    pub wall: String,
    /// `active`, or `paused`: it fires if it is resumed.
    pub status: String,
}

impl NextFirings {
    /// Makes the document; `zone`: of the times that clocks show; `None`: each job's own.
    pub fn new(
        firings: &[UpcomingFiring<'_>],
        from: Option<DateTime<Utc>>,
        zone: Option<Zone>,
        complete: bool,
    ) -> Self {
        let rows = firings.iter().map(|UpcomingFiring { job, at }| {
            let zone = zone.unwrap_or(job.spec.timezone);
            NextFiring {
                job_name: job.row.name.clone(),
                at: *at,
                tz: zone.name(),
                wall: zone.at(*at).to_rfc3339(),
                status: job.row.status.clone(),
            }
        });
        Self { from, complete, next: rows.collect() }
    }
}

/// Lists the next `count` firings of the jobs of these names, or of all active ones.
///
/// # Errors
///
/// As [`load_candidates`].
pub async fn list_next(
    store: &Store,
    names: &[String],
    from: Option<DateTime<Utc>>,
    zone: Option<Zone>,
    count: usize,
) -> Result<NextFirings, OperationError> {
    let ScheduledJobs { jobs, complete } = load_candidates(store, names, from, count).await?;
    let firings = soonest(&jobs, from, count, status::clock(store).await?);
    Ok(NextFirings::new(&firings, from, zone, complete))
}

/// Loads the jobs that have the next `count` firings: those of these names, or, without names, of the whole database.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] for a name that no job has, and those of the database.
pub async fn load_candidates(
    store: &Store,
    names: &[String],
    from: Option<DateTime<Utc>>,
    count: usize,
) -> Result<ScheduledJobs, OperationError> {
    if !names.is_empty() || from.is_some() {
        return load_jobs(store, names).await;
    }
    // The jobs that are due soonest have all of the soonest firings.
    let names = jobs::list_upcoming(store, count as i64).await?;
    let jobs = if names.is_empty() { Vec::new() } else { load_jobs_by_name(store, &names).await? };
    Ok(ScheduledJobs { jobs, complete: true })
}

/// Returns the first `count` firings of all these jobs, up to the year 9998. Strictly after `from`; `None`: those that are not planned
/// yet, and of a paused job those after `now`.
pub fn soonest(
    jobs: &[ScheduledJob],
    from: Option<DateTime<Utc>>,
    count: usize,
    now: DateTime<Utc>,
) -> Vec<UpcomingFiring<'_>> {
    let tables: Vec<Option<Timetable>> =
        jobs.iter().map(|job| Timetable::of(&job.spec).ok()).collect();
    let after =
        |index: usize, from| tables[index].as_ref().and_then(|table| table.next_after(from));
    let first = |index: usize| match (from, jobs[index].row.status.as_str()) {
        (Some(from), _) => after(index, from),
        // Firings missed during the pause do not run after a resume.
        (None, "paused") => after(index, now),
        (None, _) => jobs[index].row.cursor().ok().flatten().map(|cursor| cursor.nominal),
    };
    let mut left: Vec<Option<u32>> = jobs
        .iter()
        .map(|job| job.spec.constraints.runs_left(job.row.runs_used.max(0) as u32))
        .collect();
    let mut heap: BinaryHeap<Reverse<(DateTime<Utc>, usize)>> =
        (0..jobs.len()).filter_map(|index| Some(Reverse((first(index)?, index)))).collect();
    let mut firings = Vec::new();
    while firings.len() < count
        && let Some(Reverse((at, index))) = heap.pop()
        && is_listed(at)
    {
        if let Some(left) = &mut left[index] {
            let Some(fewer) = left.checked_sub(1) else { continue };
            *left = fewer;
        }
        firings.push(UpcomingFiring { job: &jobs[index], at });
        heap.extend(after(index, at).map(|next| Reverse((next, index))));
    }
    firings
}
