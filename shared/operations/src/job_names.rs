//! Finds a job by its name, and similar names if none has it.

use std::collections::{BTreeSet, HashMap};

use sexton_store::jobs::{self, Job};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use crate::error::{NotFound, OperationError};

/// Returns the existing job of that name.
///
/// # Errors
///
/// [`NotFound::Job`] with similar names.
pub async fn find(store: &Store, name: &str) -> Result<Job, OperationError> {
    or_missing(store, name, jobs::find(store, name).await).await
}

/// Returns the job of that name: the existing one, or else the one that was deleted last.
///
/// # Errors
///
/// [`NotFound::Job`] with similar names.
pub async fn find_including_deleted(store: &Store, name: &str) -> Result<Job, OperationError> {
    or_missing(store, name, jobs::find_including_deleted(store, name).await).await
}

/// Returns the id of the job that a filter names, if it names one; also of a deleted job.
///
/// # Errors
///
/// [`NotFound::Job`] with similar names.
pub async fn find_optional_id(
    store: &Store,
    name: Option<&str>,
) -> Result<Option<Uuid>, OperationError> {
    match name {
        None => Ok(None),
        Some(name) => Ok(Some(find_including_deleted(store, name).await?.id)),
    }
}

/// Returns the names of these jobs, also of deleted ones; those that retention has removed are missing.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<HashMap<Uuid, String>, OperationError> {
    let ids: BTreeSet<Uuid> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = ids.into_iter().collect();
    Ok(jobs::list_names(store, &ids).await?)
}

/// Returns the error for a job that does not exist, with similar names unless the database does not answer.
pub async fn missing(store: &Store, name: &str) -> OperationError {
    let similar = jobs::similar_names(store, name).await.unwrap_or_default();
    NotFound::Job { name: name.to_owned(), similar }.into()
}

async fn or_missing(
    store: &Store,
    name: &str,
    found: Result<Option<Job>, StoreError>,
) -> Result<Job, OperationError> {
    match found? {
        Some(job) => Ok(job),
        None => Err(missing(store, name).await),
    }
}
