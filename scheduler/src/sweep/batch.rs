//! Handles one batch of a pass: takes some messages, *then* reads their rows, and decides each.
//!
//! **Order.** An execution that the sweep fails has failed before its message is removed. Kept messages are
//! copied to the tail, all of them together, and the originals are acknowledged when the copies are confirmed.
//! A crash in between leaves at most one batch of messages twice, and the next pass removes the second copies.
//! It could not do that for messages that no row knows: so these are settled one by one, and a crash leaves at
//! most one of them twice.
//!
//! Kept messages are recorded before the next batch is decided: a copy of the same message in it is removed.

use std::collections::HashMap;

use sexton_broker::frame_filter::PropertiesFlaw;
use sexton_broker::names::is_main_queue;
use sexton_broker::{FailedQueue, ParkedMessage, publish};
use sexton_engine::parked_log::log_parked;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::queue_incident::QueueIncidentKind;
use sexton_model::sweep::{KnownRow, MessageAttempt, SweepDecision, judge_batch};
use sexton_model::ticket::{Envelope, IncomingMessage, read_message};
use sexton_service::fault;
use sexton_store::timeout::with_timeout;
use sexton_store::unknown_messages::RecordOutcome;
use sexton_store::{StoreError, parked_messages};
use tokio::time::Instant;

use super::pass::{Pass, copy_error};
use super::unknown_messages;
use crate::background_loop::{LoopError, QUERY_TIMEOUT};

/// Messages in a batch: as many as are copied in their order.
pub(super) const MAX_BATCH_MESSAGES: usize = publish::MAX_ORDERED_BATCH;

/// Messages with rows, by decision, with their executions if they are kept.
#[derive(Default)]
struct MessagesByVerdict {
    kept: Vec<ParkedMessage>,
    ids: Vec<ExecutionId>,
    removed: Vec<ParkedMessage>,
    /// Tickets of waiting rows, whose messages are removed once the tickets are unpublished again.
    returned: Vec<(ExecutionId, AttemptNumber)>,
}

impl Pass<'_> {
    /// Settles the next messages; `false` at the end of the queue. After an error the unsettled ones return to
    /// the queue.
    pub(super) async fn next_batch(&mut self) -> Result<bool, LoopError> {
        let taken = self.queue.take(self.sweep.batch).await?;
        if taken.is_empty() {
            return Ok(false);
        }
        fault::point("scheduler.sweep_taken");
        let incoming_messages: Vec<IncomingMessage> = taken.iter().map(incoming).collect();
        let deaths: Vec<_> = taken.iter().map(|one| self.last_death_reason(one)).collect();
        let claims: Vec<_> = incoming_messages
            .iter()
            .zip(deaths)
            .map(|(read, last_death_reason)| claim(read, last_death_reason))
            .collect();
        let rows = self.rows(&claims).await?;
        let verdicts = judge_batch(&claims, &rows);
        let claimed: Vec<_> =
            claims.iter().map(|claim| claim.map(|it| (it.id, it.attempt))).collect();
        let mut by_verdict = MessagesByVerdict::default();
        for (((message, read), verdict), claimed) in
            taken.into_iter().zip(&incoming_messages).zip(verdicts).zip(claimed)
        {
            match (verdict, claimed) {
                (Some(SweepDecision::Keep), Some((id, _))) => {
                    by_verdict.kept.push(message);
                    by_verdict.ids.push(id);
                }
                (Some(SweepDecision::Fail(class)), Some((id, attempt))) => {
                    self.confirm_lock_if_due().await?;
                    self.fail(id, attempt, class).await?;
                    // This message has failed its execution, or was outdated before, so it is removed.
                    by_verdict.removed.push(message);
                }
                (Some(SweepDecision::Republish), Some(ticket)) => {
                    by_verdict.returned.push(ticket);
                    by_verdict.removed.push(message);
                }
                (Some(_), _) => by_verdict.removed.push(message),
                (None, _) => {
                    self.confirm_lock_if_due().await?;
                    self.unknown(message, read).await?;
                }
            }
        }
        let MessagesByVerdict { kept, ids, removed, returned } = by_verdict;
        if !returned.is_empty() {
            self.confirm_lock_if_due().await?;
            let owing = parked_messages::mark_unpublished(&self.sweep.store, &returned, self.now);
            self.tally.returned += with_timeout(QUERY_TIMEOUT, owing).await?;
        }
        self.keep(kept, &ids).await?;
        self.remove(removed).await;
        Ok(true)
    }

    /// Returns why the broker moved a message out of a main queue, if it did. Removals by a policy are logged.
    fn last_death_reason<'m>(&self, message: &'m ParkedMessage) -> Option<&'m str> {
        let (link, delivery) = (&self.sweep.link, &message.delivery);
        let queue = delivery.last_death_queue.as_deref()?;
        let reason = delivery.last_death.as_deref()?;
        if !is_main_queue(link.namespace(), queue) {
            return None;
        }
        if let Some(kind) = QueueIncidentKind::from_dead_letter_reason(reason) {
            link.note_queue_incident(queue, kind, 1);
        }
        Some(reason)
    }

    async fn rows(
        &mut self,
        claims: &[Option<MessageAttempt<'_>>],
    ) -> Result<HashMap<ExecutionId, KnownRow>, StoreError> {
        let ids: Vec<_> = claims.iter().flatten().map(|claim| claim.id).collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows =
            with_timeout(QUERY_TIMEOUT, parked_messages::read_rows(&mut self.lock, &ids)).await?;
        self.confirmed = Instant::now();
        Ok(rows)
    }

    /// Leaves messages of failed rows in the queue.
    async fn keep(
        &mut self,
        kept: Vec<ParkedMessage>,
        ids: &[ExecutionId],
    ) -> Result<(), LoopError> {
        if kept.is_empty() {
            return Ok(());
        }
        let recording =
            parked_messages::record_kept(&self.sweep.store, self.lock.acquired_at(), ids);
        let count = kept.len() as u64;
        let (recorded, stayed) = tokio::join!(
            with_timeout(QUERY_TIMEOUT, recording),
            return_to_queue(&self.queue, kept)
        );
        stayed?;
        self.tally.kept += count;
        Ok(recorded?)
    }

    /// Removes messages from the queue for good.
    async fn remove(&mut self, removed: Vec<ParkedMessage>) {
        if removed.is_empty() {
            return;
        }
        self.tally.removed += removed.len() as u64;
        let _ = self.queue.remove(removed).await;
        fault::point("scheduler.sweep_removed");
    }

    /// Settles a message that no row knows: it stays, unless an operator has discarded it.
    async fn unknown(
        &mut self,
        message: ParkedMessage,
        read: &IncomingMessage,
    ) -> Result<(), LoopError> {
        let (store, began) = (&self.sweep.store, self.lock.acquired_at());
        let noted =
            unknown_messages::record(store, &message, read, &mut self.room, began, self.now)
                .await?;
        match noted {
            RecordOutcome::Kept { .. } => {}
            RecordOutcome::NoRoom => {
                self.tally.unrecorded += 1;
                self.unrecorded_bytes += message.delivery.body.len() as u64;
            }
            RecordOutcome::Discarded => {
                self.tally.discarded += 1;
                self.remove(vec![message]).await;
                return Ok(());
            }
        }
        return_to_queue(&self.queue, vec![message]).await?;
        self.tally.unknown += 1;
        Ok(())
    }

    async fn fail(
        &mut self,
        id: ExecutionId,
        attempt: AttemptNumber,
        class: &str,
    ) -> Result<(), StoreError> {
        let reason = "the broker parked the ticket: it was handed out again and again and no \
                      worker answered for it";
        let store = &self.sweep.store;
        let failing = parked_messages::fail_unopened(store, id, attempt, class, reason, self.now);
        let failed = with_timeout(QUERY_TIMEOUT, failing).await?;
        // If it failed nothing, another transaction has changed the row since the read.
        self.tally.failed += u64::from(failed);
        if failed {
            fault::point("scheduler.sweep_failed");
            log_parked(store, &[id], QUERY_TIMEOUT).await;
        }
        Ok(())
    }
}

/// Returns messages to the queue: those whose copy is confirmed to the tail, the others to where they were.
async fn return_to_queue(
    queue: &FailedQueue,
    messages: Vec<ParkedMessage>,
) -> Result<(), LoopError> {
    let (copied, failed) = queue.copy_to_tail(messages).await;
    fault::point("scheduler.sweep_copied");
    // The broker does not confirm acks: if one is lost, the message returns and is decided again.
    let _ = queue.drop_originals(copied).await;
    fault::point("scheduler.sweep_kept");
    failed.map_or(Ok(()), |error| Err(copy_error(error)))
}

fn incoming(message: &ParkedMessage) -> IncomingMessage {
    let properties = &message.delivery.properties;
    read_message(Envelope {
        message_id: properties.message_id.as_deref(),
        attempt: properties.attempt,
        schema: properties.schema,
        flaw: properties.flaw.map(PropertiesFlaw::as_str),
        body: &message.delivery.body,
    })
}

fn claim<'a>(read: &IncomingMessage, last_death: Option<&'a str>) -> Option<MessageAttempt<'a>> {
    let IncomingMessage::Ticket { execution_id, attempt } = read else { return None };
    Some(MessageAttempt { id: *execution_id, attempt: *attempt, last_death })
}
