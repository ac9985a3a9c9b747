//! Runs one pass over the failed queue, under the lock that excludes other replicas.
//!
//! The queue may have any length: the kept messages are recorded in a table
//! ([`sexton_store::parked_messages::record_kept`]), and the pass ends at the message that was last when it
//! began.
//!
//! The lock lives in a transaction that the server ends when it is idle for a minute. Messages without a row
//! need no statement in it, so the pass confirms the lock periodically.

use std::time::Duration;

use sexton_broker::names::failed_queue;
use sexton_broker::{FailedQueue, InspectError, PublishError};
use sexton_model::queue_incident::QueueIncidentKind;
use sexton_store::exclusive_lock::ExclusiveLock;
use sexton_store::parked_messages::{ScanPosition, begin_pass, end_pass, mark_unseen_unpublished};
use sexton_store::timeout::with_timeout;
use sexton_store::unknown_messages::{Capacity, Overflow};
use sexton_store::{Now, StoreError};
use tokio::time::Instant;

use super::{Sweep, Tally};
use crate::background_loop::{LoopError, QUERY_TIMEOUT};

/// Failed rows that one query checks for missing messages.
const MAX_BATCH_ROWS: i64 = 5_000;
/// Timeout of the removal of a pass's records, which may be a million rows.
const LONG_QUERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of the confirmations of the lock.
pub(super) const CONFIRM_INTERVAL: Duration = Duration::from_secs(5);

/// A running pass.
pub(super) struct Pass<'a> {
    pub(super) sweep: &'a Sweep,
    /// It is dropped before the lock, so unsettled messages return before another pass counts the queue.
    pub(super) queue: FailedQueue,
    pub(super) lock: ExclusiveLock,
    pub(super) confirmed: Instant,
    pub(super) room: Capacity,
    pub(super) unrecorded_bytes: u64,
    pub(super) tally: Tally,
    /// The number of failed rows before the pass began.
    failed_rows: u64,
    pub(super) now: Now,
}

impl<'a> Pass<'a> {
    /// Counts the messages in the queue. Takes none yet.
    pub(super) async fn begin(
        sweep: &'a Sweep,
        lock: ExclusiveLock,
        failed_rows: u64,
        now: Now,
    ) -> Result<Self, LoopError> {
        let queue = FailedQueue::open(&sweep.link, &sweep.publisher).await?;
        with_timeout(LONG_QUERY_TIMEOUT, begin_pass(&sweep.store, lock.acquired_at())).await?;
        let room = with_timeout(
            QUERY_TIMEOUT,
            sexton_store::unknown_messages::remaining_capacity(&sweep.store, sweep.unknown_limit),
        )
        .await?;
        let (confirmed, tally, unrecorded_bytes) = (Instant::now(), Tally::default(), 0);
        Ok(Self { sweep, queue, lock, confirmed, room, unrecorded_bytes, tally, failed_rows, now })
    }

    /// Goes through the queue once. Each batch takes messages that were there when the pass began, so it ends,
    /// however many arrive meanwhile.
    pub(super) async fn run(&mut self) -> Result<Tally, LoopError> {
        let in_queue = self.queue.left();
        while !self.sweep.stop.is_cancelled() && self.next_batch().await? {
            self.confirm_lock_if_due().await?;
        }
        self.tally.complete = self.tally.settled() == u64::from(in_queue);
        if self.tally.complete {
            self.mark_unseen_unpublished().await?;
            if self.tally.marked_unpublished > 0 {
                let (link, missing) = (&self.sweep.link, self.tally.marked_unpublished);
                let queue = failed_queue(link.namespace());
                link.note_queue_incident(&queue, QueueIncidentKind::Missing, missing);
            }
        }
        self.record_unknown_messages().await?;
        Ok(self.tally)
    }

    /// Records which unknown messages are gone, and how many found no room. The broker does not confirm acks; its
    /// answer to a later request on the same channel shows that they arrived.
    /// Otherwise what was to be removed is in the queue again, and the next pass removes it.
    async fn record_unknown_messages(&mut self) -> Result<(), LoopError> {
        let (store, began) = (&self.sweep.store, self.lock.acquired_at());
        let over = Overflow {
            messages: self.tally.unrecorded as i64,
            bytes: self.unrecorded_bytes as i64,
            at_least: !self.tally.complete,
        };
        with_timeout(
            QUERY_TIMEOUT,
            sexton_store::unknown_messages::write_overflow(store, over, began),
        )
        .await?;
        if self.tally.complete {
            self.queue.wait_for_acks().await?;
            with_timeout(
                QUERY_TIMEOUT,
                sexton_store::unknown_messages::mark_gone(store, began, self.now),
            )
            .await?;
        }
        Ok(())
    }

    /// Releases the lock, and deletes the records of kept messages. If that fails, the lock is lost anyway and
    /// the pass is complete; the next one deletes the records.
    pub(super) async fn end(self) {
        drop(self.queue);
        let forgetting = end_pass(&self.sweep.store, self.lock.acquired_at());
        if let Err(error) = with_timeout(LONG_QUERY_TIMEOUT, forgetting).await {
            tracing::debug!(%error, "what a pass over the failed queue has kept is left to the next");
        }
        if let Err(error) = with_timeout(QUERY_TIMEOUT, self.lock.release()).await {
            tracing::debug!(%error, "the lock of a pass over the failed queue was lost");
        }
    }

    /// Confirms the lock if its connection has been idle for some time.
    pub(super) async fn confirm_lock_if_due(&mut self) -> Result<(), StoreError> {
        self.sweep.note_progress();
        if self.confirmed.elapsed() >= CONFIRM_INTERVAL { self.confirm().await } else { Ok(()) }
    }

    async fn confirm(&mut self) -> Result<(), StoreError> {
        with_timeout(QUERY_TIMEOUT, self.lock.confirm()).await?;
        self.confirmed = Instant::now();
        Ok(())
    }

    /// Goes through the rows that were failed when the pass began, from the oldest failure on.
    async fn mark_unseen_unpublished(&mut self) -> Result<(), StoreError> {
        let mut after = ScanPosition::START;
        for _ in 0..=self.failed_rows.div_ceil(MAX_BATCH_ROWS as u64) {
            let (store, began) = (&self.sweep.store, self.lock.acquired_at());
            let owing =
                mark_unseen_unpublished(store, began, false, after, MAX_BATCH_ROWS, self.now);
            let Some(unpublished) = with_timeout(QUERY_TIMEOUT, owing).await? else { break };
            self.tally.marked_unpublished += unpublished.unpublished;
            after = unpublished.upto;
            if self.sweep.stop.is_cancelled() {
                break;
            }
            self.confirm_lock_if_due().await?;
        }
        Ok(())
    }
}

pub(super) fn copy_error(error: PublishError) -> LoopError {
    match error {
        PublishError::Unavailable { .. } | PublishError::TimedOut { .. } => {
            InspectError::Unavailable(error.to_string()).into()
        }
        other => LoopError::CopyToTail(other),
    }
}
