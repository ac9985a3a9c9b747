//! Telling of the tasks that a loop has parked.

use sexton_model::id::ExecutionId;
use sexton_service::parked_task;
use sexton_store::Store;
use sexton_store::parked_messages::read_notices;
use sexton_store::timeout::with_timeout;

use crate::background_loop::QUERY_TIMEOUT;

/// Tells of those among `ids` that are failed, one line each, as their rows have it. If the rows cannot be
/// read, it says how many they might be: the rows are there without the lines.
pub(crate) async fn log_parked(store: &Store, ids: &[ExecutionId]) {
    match with_timeout(QUERY_TIMEOUT, read_notices(store, ids)).await {
        Ok(tasks) => tasks.iter().for_each(parked_task::log_parked),
        Err(error) => tracing::error!(
            "up to {} executions are parked; their rows cannot be read now: {error}",
            ids.len()
        ),
    }
}
