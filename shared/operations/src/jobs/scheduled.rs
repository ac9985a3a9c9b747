//! Loads jobs with their schedules: those named, or all active ones.

use sexton_model::job::{JobSpec, is_reserved};
use sexton_store::Store;
use sexton_store::jobs::{self, Job, JobFilter};

use crate::error::OperationError;
use crate::job_names;

/// Number of jobs in one page.
const PAGE_JOBS: i64 = 1_000;
/// Maximum number of jobs loaded.
pub const MAX_JOBS: usize = 20_000;

/// A job's row and its definition.
#[derive(Debug)]
pub struct ScheduledJob {
    /// The row.
    pub row: Job,
    /// The definition.
    pub spec: JobSpec,
}

/// Jobs, by name.
#[derive(Debug)]
pub struct ScheduledJobs {
    /// The jobs.
    pub jobs: Vec<ScheduledJob>,
    /// Whether these are all.
    pub complete: bool,
}

/// Loads the jobs of these names, or, without names, all active ones, up to [`MAX_JOBS`].
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

/// Loads the jobs of these names, by name.
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
