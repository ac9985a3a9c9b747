//! The jobs whose schedules are looked at: those named, or all active ones.

use sexton_model::job::{JobSpec, is_reserved};
use sexton_store::Store;
use sexton_store::jobs::{self, Job, JobFilter};

use crate::error::OperationError;
use crate::job_names;

/// Jobs of one answer of the database.
const PAGE_JOBS: i64 = 1_000;
/// The most jobs of a database that are looked at.
pub const MAX_JOBS: usize = 20_000;

/// A job's row and what is in it.
#[derive(Debug)]
pub struct ScheduledJob {
    /// The row.
    pub row: Job,
    /// The job.
    pub spec: JobSpec,
}

/// Jobs, by name.
#[derive(Debug)]
pub struct ScheduledJobs {
    /// The jobs.
    pub jobs: Vec<ScheduledJob>,
    /// Whether there are no more than these.
    pub complete: bool,
}

/// The jobs of these names, or, if there are none, all active ones, [`MAX_JOBS`] at most.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] for a name that no job has, and those of the database.
pub async fn load_jobs(store: &Store, names: &[String]) -> Result<ScheduledJobs, OperationError> {
    if !names.is_empty() {
        return Ok(ScheduledJobs { jobs: load_jobs_by_name(store, names).await?, complete: true });
    }
    let mut filter = JobFilter { status: Some("active".to_owned()), ..JobFilter::default() };
    let mut found = Vec::new();
    loop {
        let page = jobs::list(store, &filter, PAGE_JOBS).await?;
        let full = page.len() as i64 == PAGE_JOBS;
        filter.after = page.last().map(|job| job.name.clone());
        for row in page {
            if is_reserved(&row.name) {
                continue;
            }
            if found.len() == MAX_JOBS {
                return Ok(ScheduledJobs { jobs: found, complete: false });
            }
            found.push(ScheduledJob { spec: row.spec()?, row });
        }
        if !full {
            return Ok(ScheduledJobs { jobs: found, complete: true });
        }
    }
}

/// The jobs of these names, by name.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] for a name that no job has, and those of the database.
pub async fn load_jobs_by_name(
    store: &Store,
    names: &[String],
) -> Result<Vec<ScheduledJob>, OperationError> {
    let filter = JobFilter { names: Some(names.to_vec()), ..JobFilter::default() };
    let found = jobs::list(store, &filter, names.len() as i64).await?;
    if let Some(name) = names.iter().find(|name| !found.iter().any(|job| job.name == **name)) {
        return Err(job_names::missing(store, name).await);
    }
    found.into_iter().map(|row| Ok(ScheduledJob { spec: row.spec()?, row })).collect()
}
