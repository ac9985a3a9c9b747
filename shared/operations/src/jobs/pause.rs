//! Pauses and resumes a job's firings.

use sexton_service::fault;
use sexton_store::jobs::{self, PauseError, Resumed};
use sexton_store::{Store, status};

use crate::actor::Actor;
use crate::error::{Conflict, OperationError};
use crate::job_names;
use crate::text::ago;

/// Stops a job's firings; executions under way continue. One transaction, with its record in the audit.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`]; [`Conflict`] for one that is paused already, with since when, by whom and why.
pub async fn pause(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: &str,
) -> Result<(), OperationError> {
    if let Err(error) = jobs::pause(store, name, actor.because(Some(reason)), None).await {
        return Err(describe(store, error).await);
    }
    fault::point("console.paused");
    Ok(())
}

/// Lets a job fire again from now on; the firings missed meanwhile become a gap, and do not run. One transaction,
/// with its record in the audit.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`]; [`Conflict`] for one that is not paused.
pub async fn resume(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Resumed, OperationError> {
    match jobs::resume(store, name, actor.because(reason), None).await {
        Ok(resumed) => {
            fault::point("console.resumed");
            Ok(resumed)
        }
        Err(error) => Err(describe(store, error).await),
    }
}

async fn describe(store: &Store, error: PauseError) -> OperationError {
    match error {
        PauseError::Missing(name) => job_names::missing(store, &name).await,
        PauseError::Paused(job) => {
            let since = match (job.paused_at, status::clock(store).await) {
                (Some(at), Ok(now)) => format!(" since {}", ago(at, now)),
                _ => String::new(),
            };
            let text = format!(
                "job {:?} is paused already{since}, by {}: {}",
                job.name,
                job.paused_by.as_deref().unwrap_or("somebody"),
                job.paused_why.as_deref().unwrap_or("no reason given")
            );
            Conflict::Other(text).into()
        }
        error @ PauseError::Active(_) => Conflict::Other(error.to_string()).into(),
        error @ PauseError::Locked(_) => OperationError::Failed(error.to_string()),
        PauseError::Store(error) => error.into(),
    }
}
