//! Reads the jobs whose schedules a command looks at: those named, or all active ones.

use sexton_model::job::{JobSpec, is_reserved};
use sexton_store::Store;
use sexton_store::jobs::{self, Job, JobFilter};

use super::missing;
use crate::failure::Failure;

/// Jobs of one answer of the database.
const PAGE: i64 = 1_000;
/// The most jobs of a database that are looked at.
pub(in crate::commands) const MAX_JOBS: usize = 20_000;

/// A job's row and what is in it.
pub(in crate::commands) struct Found {
    pub(in crate::commands) row: Job,
    pub(in crate::commands) spec: JobSpec,
}

/// The jobs, by name.
pub(in crate::commands) struct Jobs {
    pub(in crate::commands) jobs: Vec<Found>,
    /// Whether there are no more than these.
    pub(in crate::commands) complete: bool,
}

/// The jobs of these names, or, if there are none, all active ones, [`MAX_JOBS`] at most.
///
/// # Errors
///
/// [`Failure::NotFound`] for a name that no job has, and those of the database.
pub(in crate::commands) async fn read(store: &Store, names: &[String]) -> Result<Jobs, Failure> {
    if !names.is_empty() {
        return Ok(Jobs { jobs: of_names(store, names).await?, complete: true });
    }
    let mut filter = JobFilter { status: Some("active".to_owned()), ..JobFilter::default() };
    let mut found = Vec::new();
    loop {
        let page = jobs::list(store, &filter, PAGE).await?;
        let full = page.len() as i64 == PAGE;
        filter.after = page.last().map(|job| job.name.clone());
        for row in page {
            if is_reserved(&row.name) {
                continue;
            }
            if found.len() == MAX_JOBS {
                return Ok(Jobs { jobs: found, complete: false });
            }
            found.push(Found { spec: row.spec()?, row });
        }
        if !full {
            return Ok(Jobs { jobs: found, complete: true });
        }
    }
}

/// The jobs of these names, by name; each must be there.
pub(in crate::commands) async fn of_names(
    store: &Store,
    names: &[String],
) -> Result<Vec<Found>, Failure> {
    let filter = JobFilter { names: Some(names.to_vec()), ..JobFilter::default() };
    let found = jobs::list(store, &filter, names.len() as i64).await?;
    if let Some(name) = names.iter().find(|name| !found.iter().any(|job| job.name == **name)) {
        return Err(missing(store, name).await);
    }
    found.into_iter().map(|row| Ok(Found { spec: row.spec()?, row })).collect()
}
