//! Finds a job by its name, and for a name that no job has, those that are like it.

use sexton_store::jobs::{self, Job};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use crate::error::{NotFound, OperationError};

/// Finds the job of that name that lives.
///
/// # Errors
///
/// [`NotFound::Job`] with names that are like it.
pub async fn find(store: &Store, name: &str) -> Result<Job, OperationError> {
    or_missing(store, name, jobs::find(store, name).await).await
}

/// Finds the job of that name: the one that lives, or else the one that was deleted last.
///
/// # Errors
///
/// [`NotFound::Job`] with names that are like it.
pub async fn find_including_deleted(store: &Store, name: &str) -> Result<Job, OperationError> {
    or_missing(store, name, jobs::find_including_deleted(store, name).await).await
}

/// The id of the job that a filter names, if it names one; also of a deleted job.
///
/// # Errors
///
/// [`NotFound::Job`] with names that are like it.
pub async fn find_optional_id(
    store: &Store,
    name: Option<&str>,
) -> Result<Option<Uuid>, OperationError> {
    match name {
        None => Ok(None),
        Some(name) => Ok(Some(find_including_deleted(store, name).await?.id)),
    }
}

/// There is no such job; names that are like it are offered, unless the database does not answer.
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
