//! Telling that a task was parked.

use std::time::Duration;

use sexton_model::id::ExecutionId;
use sexton_service::notice;
use sexton_store::Store;
use sexton_store::answer::within;
use sexton_store::parked::notices;

/// For the row behind the line. The line is a courtesy: the row is there without it.
const LIMIT: Duration = Duration::from_secs(2);

/// Tells that a task was parked, as its row has it. If the row cannot be read, it says no more than that.
pub(crate) async fn tell_parked(store: &Store, id: ExecutionId) {
    match within(LIMIT, notices(store, &[id])).await {
        // None: requeued already, it waits for nobody.
        Ok(tasks) => tasks.iter().for_each(notice::parked),
        Err(error) => tracing::error!(
            execution.id = %id,
            "execution {id} is parked; its row cannot be read now: {error}"
        ),
    }
}
