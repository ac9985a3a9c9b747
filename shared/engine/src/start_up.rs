//! Waits for a database that this version can use.
//!
//! The parts of a platform start in any order, so the start waits for all that others will repair: an
//! unreachable server, refused credentials, a pooler that drops settings, a schema that is not migrated yet.

use std::time::Duration;

use sexton_service::reachability::Reachability;
use sexton_store::timeout::with_timeout;
use sexton_store::{Store, StoreError};
use tokio::time::sleep;

use crate::jitter::jittered;

/// Time limit of one try.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two tries, before jitter.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns whether the error means that no statement of this process can succeed at present.
pub const fn is_outage(error: &StoreError) -> bool {
    error.is_transient() || matches!(error, StoreError::Schema(_))
}

/// Waits until [`check_database`] succeeds. `database` logs the failures and shows them in `/readyz`.
///
/// # Errors
///
/// A [`StoreError`] that is not an [outage](is_outage): waiting would not help.
///
/// # Cancellation
///
/// Safe: each try only reads.
pub async fn wait_for_database(store: &Store, database: &Reachability) -> Result<(), StoreError> {
    loop {
        match with_timeout(ATTEMPT_TIMEOUT, check_database(store)).await {
            Ok(()) => {
                database.record_success();
                return Ok(());
            }
            Err(error) if is_outage(&error) => database.record_failure(&error),
            Err(error) => return Err(error),
        }
        sleep(jittered(RETRY_DELAY)).await;
    }
}

/// Checks once that the database answers, applies this program's settings, and has this version's schema.
///
/// # Errors
///
/// [`StoreError`]: an [outage](is_outage), or an error that waiting would not solve.
pub async fn check_database(store: &Store) -> Result<(), StoreError> {
    store.check_settings().await?;
    store.check_schema().await
}
