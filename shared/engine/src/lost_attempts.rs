//! Ends the attempts of dead workers: finds them, decides what follows, and writes it.
//!
//! The decision is the same as after any failed attempt, with a separate budget. The tickets that follow are
//! unpublished; the relay publishes them.

use std::collections::HashSet;

use sexton_model::retry::{AttemptEnd, Decision, LOST, RetryPolicy, decide};
use sexton_service::metrics::table;
use sexton_store::lost_attempts::{self, LossGrounds, LostAttempt};
use sexton_store::{Now, Store, StoreError};

/// Attempts in one statement.
pub const MAX_BATCH_ATTEMPTS: usize = 500;

/// A lost attempt, with the decision about it.
pub type LostDecision = (LostAttempt, Decision);

/// Finds up to [`MAX_BATCH_ATTEMPTS`] attempts that are lost on these grounds, and decides what follows from
/// each. `defaults` apply where a job has no value. Writes nothing.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find(
    store: &Store,
    grounds: &LossGrounds<'_>,
    defaults: &RetryPolicy,
) -> Result<Vec<LostDecision>, StoreError> {
    let found = lost_attempts::find(store, grounds, MAX_BATCH_ATTEMPTS as i64).await?;
    let decided = found.into_iter().map(|lost| {
        let policy = defaults.with(&lost.retry);
        let decision = decide(AttemptEnd::Lost, LOST, lost.used, &policy, fastrand::f64());
        (lost, decision)
    });
    Ok(decided.collect())
}

/// Ends the attempts as decided, each if its grounds still hold; returns those that were ended. The others had
/// changed meanwhile, or another transaction had locked them.
///
/// # Errors
///
/// [`StoreError`]; the statement may have been carried out.
pub async fn settle(
    store: &Store,
    grounds: &LossGrounds<'_>,
    mut lost: Vec<LostDecision>,
    now: Now,
) -> Result<Vec<LostDecision>, StoreError> {
    let ended = lost_attempts::settle(store, grounds, &lost, now).await?;
    let ended: HashSet<_> = ended.into_iter().collect();
    lost.retain(|(lost, _)| ended.contains(&lost.execution_id));
    table::LEASES_LOST.add([], lost.len() as u64);
    Ok(lost)
}
