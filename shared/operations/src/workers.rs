//! Workers: listed with their states, and shown with what they run.

use serde::Serialize;
use sexton_store::workers::{self, RunningExecution, Worker, WorkerFilter};
use sexton_store::{Now, Store};

use crate::error::{InvalidRequest, NotFound, OperationError};
use crate::execution_ids::uuid_range;

/// A process writes its heartbeat every few seconds; one that has not for this long is silent, in milliseconds.
pub const MAX_HEARTBEAT_AGE_MS: i64 = 30_000;
/// A worker that has been silent for this long is gone, in milliseconds.
const GONE_AFTER_MS: i64 = 86_400_000;
/// Maximum number of candidates that an error names.
const MAX_CANDIDATES: usize = 5;

/// Whether a worker still works, by its last heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WorkerState {
    /// Its heartbeats come.
    Alive,
    /// Its last heartbeat is more than 30 seconds old: it is killed, frozen or cut off from the database.
    Silent,
    /// It stopped, or has been silent for a day.
    Gone,
}

impl WorkerState {
    /// Judges a worker.
    pub const fn of(worker: &Worker) -> Self {
        if worker.stopped_at.is_some() || worker.silent_ms > GONE_AFTER_MS {
            Self::Gone
        } else if worker.silent_ms > MAX_HEARTBEAT_AGE_MS {
            Self::Silent
        } else {
            Self::Alive
        }
    }

    /// Returns the state's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Gone => "gone",
        }
    }
}

/// A worker with its state.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedWorker {
    /// The worker.
    #[serde(flatten)]
    pub worker: Worker,
    /// Its state.
    pub state: WorkerState,
}

impl From<Worker> for ListedWorker {
    fn from(worker: Worker) -> Self {
        Self { state: WorkerState::of(&worker), worker }
    }
}

/// A worker with what it runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerDetails {
    /// The worker.
    #[serde(flatten)]
    pub listed: ListedWorker,
    /// The task types of its catalogue, sorted.
    pub task_types: Vec<String>,
    /// The executions in its slots, the longest first.
    pub executions: Vec<RunningExecution>,
}

/// Lists the workers that match a filter: those that are not gone first, then by name.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &WorkerFilter<'_>,
    limit: i64,
    now: Now,
) -> Result<Vec<ListedWorker>, OperationError> {
    let found = workers::list(store, filter, limit, now).await?;
    Ok(found.into_iter().map(ListedWorker::from).collect())
}

/// Returns the worker with the name `text`, or whose id begins with it, and what it runs. A name stands for its
/// newest process; those that are gone count only if no other has the name.
///
/// # Errors
///
/// [`NotFound::Worker`], and [`InvalidRequest::AmbiguousWorker`] for the beginning of several ids.
pub async fn show(store: &Store, text: &str, now: Now) -> Result<WorkerDetails, OperationError> {
    let listed = find(store, text, now).await?;
    let (task_types, executions) = (
        workers::list_task_types(store, listed.worker.id).await?,
        workers::list_running(store, listed.worker.id).await?,
    );
    Ok(WorkerDetails { listed, task_types, executions })
}

async fn find(store: &Store, text: &str, now: Now) -> Result<ListedWorker, OperationError> {
    let named = WorkerFilter { with_gone: true, name: Some(text), ..WorkerFilter::default() };
    let mut found = list(store, &named, MAX_CANDIDATES as i64, now).await?;
    if !found.is_empty() {
        return Ok(found.remove(0));
    }
    let missing = || NotFound::Worker(text.to_owned());
    let ids = uuid_range(text).ok_or_else(missing)?;
    let identified = WorkerFilter { with_gone: true, ids: Some(ids), ..WorkerFilter::default() };
    let mut found = list(store, &identified, MAX_CANDIDATES as i64, now).await?;
    match found.len() {
        0 => Err(missing().into()),
        1 => Ok(found.remove(0)),
        _ => {
            let candidate = |it: &ListedWorker| {
                format!("{} ({}, {})", it.worker.id, it.worker.name, it.state.as_str())
            };
            let several = found.iter().map(candidate).collect();
            Err(InvalidRequest::AmbiguousWorker { digits: text.to_owned(), several }.into())
        }
    }
}
