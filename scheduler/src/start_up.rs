//! What must be true before any loop begins: the database answers, its schema fits, and the jobs of
//! the environment are in it.
//!
//! The parts of a platform start in any order, so whatever somebody else will put right is waited
//! for: an unreachable server, refused credentials, a pooler that drops settings, a schema that is still to be migrated. It is
//! said once a minute, and `/readyz` says it all the while.

use std::time::Duration;

use sexton_model::job::JobSpec;
use sexton_service::fault;
use sexton_service::outage::Reachability;
use sexton_store::jobs::ApplyError;
use sexton_store::{Store, StoreError};
use tokio::time::{sleep, timeout};

use crate::cron_jobs::{apply_all, format_problems};
use crate::random;
use crate::runner::is_outage;

/// One try.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);
/// Between two tries, varied by a half to either side.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Why the scheduler cannot begin, whatever it waits for.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Jobs of the environment that would never fire, all of them named.
    #[error("CRON_JOBS: {0}")]
    Jobs(String),
    /// A fault of the program.
    #[error(transparent)]
    Store(StoreError),
}

/// Waits until all of it is true. Cancel-safe: each try is one transaction.
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
            // Another replica applies the same jobs.
            Ok(Err(ApplyError::Locked)) => {}
            Ok(Err(ApplyError::Store(error))) => return Err(StartError::Store(error)),
            Ok(Err(ApplyError::Problems(problems))) => {
                return Err(StartError::Jobs(format_problems(&problems)));
            }
            Ok(Err(error @ ApplyError::TooMany(_))) => {
                return Err(StartError::Jobs(error.to_string()));
            }
            Err(_) => database
                .record_failure(&format_args!("no answer within {} s", ATTEMPT_TIMEOUT.as_secs())),
        }
        sleep(RETRY_DELAY.mul_f64(0.5 + random::fraction())).await;
    }
}

async fn try_start(store: &Store, jobs: &[JobSpec], actor: &str) -> Result<(), ApplyError> {
    store.check_settings().await?;
    store.check_schema().await?;
    apply_all(store, jobs, actor, None).await?;
    if !jobs.is_empty() {
        fault::point("scheduler.applied");
    }
    Ok(())
}
