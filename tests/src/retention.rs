//! Retention as tests need it: by the pruner's own batches, without its rests.

use sexton_store::retention::{Position, RetentionPolicy, RetentionTarget, prune_batch};
use sexton_store::{Now, Store, StoreError};

/// What went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Executions.
    pub executions: u64,
    /// Executions that were stripped to their key.
    pub stripped: u64,
    /// All other rows.
    pub other: u64,
}

/// Removes these things one after another, each to its end, in batches of `most` rows.
///
/// # Errors
///
/// Those of the database.
pub async fn pass(
    store: &Store,
    terms: RetentionPolicy,
    things: &[RetentionTarget],
    most: i64,
    now: Now,
) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    for thing in things {
        let mut position = Position::default();
        loop {
            let done = prune_batch(store, *thing, &mut position, terms, most, now).await?;
            removed.stripped += done.stripped;
            match thing {
                RetentionTarget::Executions | RetentionTarget::OwnKeys => {
                    removed.executions += done.removed;
                }
                _ => removed.other += done.removed,
            }
            if done.is_last {
                break;
            }
        }
    }
    Ok(removed)
}
