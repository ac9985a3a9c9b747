//! Prepares the start of the loops: waits for a usable database, and applies the jobs of the environment.
//!
//! During an outage it waits, logs once a minute, and shows the reason in `/readyz`.

pub mod cron_jobs;
pub mod environment;

use std::time::Duration;

use sexton_engine::jitter::jittered;
use sexton_engine::start_up::{check_database, is_outage};
use sexton_model::job::JobSpec;
use sexton_service::fault;
use sexton_service::reachability::Reachability;
use sexton_store::jobs::ApplyError;
use sexton_store::{Store, StoreError};
use tokio::time::{sleep, timeout};

use self::cron_jobs::{apply_all, format_problems};

/// Time limit of one try.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause between two tries, before jitter.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Why the scheduler cannot start, however long it waits.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Jobs of the environment that would never fire, all of them named.
    #[error("CRON_JOBS: {0}")]
    Jobs(String),
    /// A bug in the program.
    #[error(transparent)]
    Store(StoreError),
}

/// Waits until the database is usable and the jobs are applied. Cancel-safe: each try is one transaction.
///
/// # Errors
///
/// [`StartError`]: waiting would not help.
pub async fn start_up(
    store: &Store,
    jobs: &[JobSpec],
    actor: &str,
    database: &Reachability,
) -> Result<(), StartError> {
    loop {
        match timeout(ATTEMPT_TIMEOUT, try_start(store, jobs, actor)).await {
            Ok(Ok(())) => {
                database.record_success();
                return Ok(());
            }
            Ok(Err(ApplyError::Store(error))) if is_outage(&error) => {
                database.record_failure(&error);
            }
            // Another replica is applying the same jobs.
            Ok(Err(ApplyError::Locked)) => {}
            Ok(Err(ApplyError::Store(error))) => return Err(StartError::Store(error)),
            Ok(Err(ApplyError::Problems(problems))) => {
                return Err(StartError::Jobs(format_problems(&problems)));
            }
            Ok(Err(
                error @ (ApplyError::TooMany(_)
                | ApplyError::MissingMembers(_)
                | ApplyError::Templates(_)
                | ApplyError::Exists(_)
                | ApplyError::Missing(_)
                | ApplyError::Changed { .. }),
            )) => {
                return Err(StartError::Jobs(error.to_string()));
            }
            Err(_) => database
                .record_failure(&format_args!("no answer within {} s", ATTEMPT_TIMEOUT.as_secs())),
        }
        sleep(jittered(RETRY_DELAY)).await;
    }
}

async fn try_start(store: &Store, jobs: &[JobSpec], actor: &str) -> Result<(), ApplyError> {
    check_database(store).await?;
    apply_all(store, jobs, actor, None).await?;
    if !jobs.is_empty() {
        fault::point("scheduler.applied");
    }
    Ok(())
}
