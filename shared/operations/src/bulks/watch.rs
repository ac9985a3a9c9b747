//! Reports a bulk's progress to a waiting program.

use std::time::Duration;

use sexton_store::bulk::{self, Bulk};
use sexton_store::{Store, instances};
use tokio::time::Instant;

use super::verify_command::COMMAND_TIMEOUT;
use crate::error::{NotFound, OperationError};

/// Without an answer for this long, no operator's command is running.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(COMMAND_TIMEOUT.as_secs() + 5);
/// A scheduler without a heartbeat for this long is inactive, in milliseconds.
const MAX_HEARTBEAT_AGE_MS: i64 = 30_000;

/// Returns a bulk.
///
/// # Errors
///
/// [`NotFound::Bulk`].
pub async fn find(store: &Store, id: i64) -> Result<Bulk, OperationError> {
    Ok(bulk::find(store, id).await?.ok_or(NotFound::Bulk(id))?)
}

/// A bulk's progress.
#[derive(Debug)]
pub struct BulkProgress {
    /// The bulk.
    pub bulk: Bulk,
    /// Number of executions that wait for an operator's command.
    pub unanswered: u64,
    /// Whether all remaining items wait for answers, and none has come for more than a minute.
    pub is_stalled: bool,
}

impl BulkProgress {
    /// Returns whether the bulk continues by itself.
    pub fn is_running(&self) -> bool {
        is_running(&self.bulk)
    }
}

/// Watches one bulk.
#[derive(Debug)]
pub struct Watch {
    id: i64,
    /// Number of items without an answer, and since when it has not changed.
    waiting: (u64, Instant),
}

impl Watch {
    /// Watches the bulk with this number.
    pub fn new(id: i64) -> Self {
        Self { id, waiting: (0, Instant::now()) }
    }

    /// Reads the progress once.
    ///
    /// # Errors
    ///
    /// [`NotFound::Bulk`], and those of the database.
    pub async fn poll(&mut self, store: &Store) -> Result<BulkProgress, OperationError> {
        let bulk = find(store, self.id).await?;
        let unanswered = count_unanswered(store, &bulk).await?;
        if unanswered != self.waiting.0 {
            self.waiting = (unanswered, Instant::now());
        }
        let is_only = bulk.prepared_at.is_some() && unanswered >= bulk.remaining() as u64;
        let is_stalled = unanswered > 0 && is_only && self.waiting.1.elapsed() > ANSWER_TIMEOUT;
        Ok(BulkProgress { bulk, unanswered, is_stalled })
    }
}

/// Returns whether a scheduler is active, without which no bulk continues.
///
/// # Errors
///
/// Those of the database.
pub async fn is_scheduler_running(store: &Store) -> Result<bool, OperationError> {
    let all = instances::list(store, None).await?;
    Ok(all
        .iter()
        .any(|instance| instance.kind == "scheduler" && instance.silent_ms < MAX_HEARTBEAT_AGE_MS))
}

/// Counts the items of a running bulk that wait for a command's answer.
async fn count_unanswered(store: &Store, bulk: &Bulk) -> Result<u64, OperationError> {
    let waits = is_running(bulk) && bulk.verify.as_deref() == Some(bulk::VERIFY_BY_COMMAND);
    if waits { Ok(bulk::count_unasked(store, bulk.id).await?) } else { Ok(0) }
}

fn is_running(bulk: &Bulk) -> bool {
    matches!(bulk.state.as_str(), "preparing" | "running")
}

/// Describes a bulk's progress in words.
pub fn summary(bulk: &Bulk) -> String {
    let done = match bulk.kind.as_str() {
        "discard" => "discarded",
        "restore" => "restored",
        "cancel" => "cancelled or requested to end",
        _ => "requeued",
    };
    let mut parts = vec![format!("{} of {} {done}", bulk.done, bulk.selected)];
    if bulk.refused > 0 {
        parts.push(format!("{} refused, as they had changed meanwhile", bulk.refused));
    }
    if bulk.resolved > 0 {
        parts.push(format!("{} had happened already", bulk.resolved));
    }
    if bulk.left_alone > 0 {
        parts.push(format!("{} left as they are", bulk.left_alone));
    }
    if bulk.remaining() > 0 {
        parts.push(format!("{} to go", bulk.remaining()));
    }
    parts.join(", ")
}
