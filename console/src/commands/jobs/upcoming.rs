//! Reads the jobs whose schedules a command looks at: those named, or all active ones.

use sexton_model::job::{JobSpec, is_reserved};
use sexton_store::Store;
use sexton_store::jobs::{self, Job, JobFilter};

use super::missing;
use crate::failure::Failure;

/// Jobs of one answer of the database.
const PAGE_JOBS: i64 = 1_000;
/// The most jobs of a database that are looked at.
pub(in crate::commands) const MAX_JOBS: usize = 20_000;

/// A job's row and what is in it.
pub(in crate::commands) struct ScheduledJob {
    pub(in crate::commands) row: Job,
    pub(in crate::commands) spec: JobSpec,
}

/// The jobs, by name.
pub(in crate::commands) struct ScheduledJobs {
    pub(in crate::commands) jobs: Vec<ScheduledJob>,
    /// Whether there are no more than these.
    pub(in crate::commands) complete: bool,
}

/// The jobs of these names, or, if there are none, all active ones, [`MAX_JOBS`] at most.
///
/// # Errors
///
/// [`Failure::NotFound`] for a name that no job has, and those of the database.
pub(in crate::commands) async fn load_jobs(
    store: &Store,
    names: &[String],
) -> Result<ScheduledJobs, Failure> {
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

/// The jobs of these names, by name; each must be there.
pub(in crate::commands) async fn load_jobs_by_name(
    store: &Store,
    names: &[String],
) -> Result<Vec<ScheduledJob>, Failure> {
    let filter = JobFilter { names: Some(names.to_vec()), ..JobFilter::default() };
    let found = jobs::list(store, &filter, names.len() as i64).await?;
    if let Some(name) = names.iter().find(|name| !found.iter().any(|job| job.name == **name)) {
        return Err(missing(store, name).await);
    }
    found.into_iter().map(|row| Ok(ScheduledJob { spec: row.spec()?, row })).collect()
}
