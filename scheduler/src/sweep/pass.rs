//! One pass over the failed queue, under the lock that keeps other replicas from it.
//!
//! The lock lives in a transaction that the server ends when it has idled for a minute. Messages
//! without a row ask nothing of it, so it is confirmed all the while.

use std::collections::HashSet;
use std::time::Duration;

use sexton_broker::screen::Flaw;
use sexton_broker::{FailedQueue, InspectError, Parked, PublishError};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::sweep::{Verdict, judge};
use sexton_model::ticket::{Envelope, Incoming, read};
use sexton_service::fault;
use sexton_store::exclusive::Exclusive;
use sexton_store::raw::{Noted, Overflow, Room};
use sexton_store::{Now, StoreError, parked};
use tokio::time::Instant;

use super::{Sweep, raw};
use crate::notice::tell_parked;
use crate::step::{ANSWER, StepError};
use sexton_store::answer::within;

/// Messages of one pass, which bounds what it remembers. A longer queue is never known whole, so its
/// rows are not owed again.
const MOST: u32 = 100_000;
/// The longest pass.
const LONGEST: Duration = Duration::from_mins(10);
/// Rows that are owed again at a time.
const OWED_AT_ONCE: i64 = 1_000;
/// How often the lock is confirmed.
pub(super) const CONFIRM_EVERY: Duration = Duration::from_secs(5);

/// What a pass did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Messages that stayed: of failed rows.
    pub kept: u64,
    /// Messages that stayed because no row says what they are.
    pub unowned: u64,
    /// Messages that went.
    pub removed: u64,
    /// Of those, the ones that no row knew and that an operator had discarded.
    pub discarded: u64,
    /// Messages that stayed without being written down, since there was no room.
    pub unrecorded: u64,
    /// Executions that were failed because the broker had parked their ticket, and that owe a message
    /// of their own now. What the broker had parked was removed.
    pub failed: u64,
    /// Failed rows that owe their message again.
    pub owed_again: u64,
    /// Whether it saw the whole queue.
    pub complete: bool,
}

/// A pass under way.
pub(super) struct Pass<'a> {
    sweep: &'a Sweep,
    lock: Exclusive,
    confirmed: Instant,
    queue: FailedQueue,
    seen: HashSet<ExecutionId>,
    room: Room,
    unrecorded_bytes: u64,
    tally: Tally,
    now: Now,
}

impl<'a> Pass<'a> {
    /// Counts what is in the queue. Nothing is taken yet.
    pub(super) async fn begin(
        sweep: &'a Sweep,
        lock: Exclusive,
        now: Now,
    ) -> Result<Self, StepError> {
        let queue = FailedQueue::open(&sweep.link, &sweep.publisher).await?;
        let room = within(ANSWER, sexton_store::raw::room(&sweep.store, sweep.raw_limit)).await?;
        let (confirmed, seen, tally) = (Instant::now(), HashSet::new(), Tally::default());
        let unrecorded_bytes = 0;
        Ok(Self { sweep, lock, confirmed, queue, seen, room, unrecorded_bytes, tally, now })
    }

    /// Goes through the queue once.
    pub(super) async fn run(&mut self) -> Result<Tally, StepError> {
        let in_queue = self.queue.left();
        let until = Instant::now() + LONGEST;
        for _ in 0..in_queue.min(MOST) {
            if self.sweep.stop.is_cancelled() || Instant::now() >= until {
                break;
            }
            if self.confirmed.elapsed() >= CONFIRM_EVERY {
                self.confirm().await?;
            }
            if !self.next().await? {
                break;
            }
        }
        let looked_at = self.tally.kept + self.tally.unowned + self.tally.removed;
        self.tally.complete = looked_at == u64::from(in_queue);
        if self.tally.complete {
            self.owe_unseen().await?;
        }
        self.record_raw().await?;
        Ok(self.tally)
    }

    /// What the rows of raw messages are to say after the pass: what is gone, and what there was no room
    /// for. Acks are not answered; a later question of the same channel is, and so says that they arrived.
    /// Otherwise what was to be removed is in the queue again, and the next pass removes it.
    async fn record_raw(&mut self) -> Result<(), StepError> {
        let (store, began) = (&self.sweep.store, self.lock.began());
        let over = Overflow {
            messages: self.tally.unrecorded as i64,
            bytes: self.unrecorded_bytes as i64,
            at_least: !self.tally.complete,
        };
        within(ANSWER, sexton_store::raw::write_overflow(store, over, began)).await?;
        if self.tally.complete {
            self.queue.acks_arrived().await?;
            within(ANSWER, sexton_store::raw::gone(store, began, self.now)).await?;
        }
        Ok(())
    }

    /// Gives the lock back. If that fails the lock is gone anyway, and the pass was made.
    pub(super) async fn end(self) {
        if let Err(error) = within(ANSWER, self.lock.release()).await {
            tracing::debug!(%error, "the lock of a pass over the failed queue was lost");
        }
    }

    async fn confirm(&mut self) -> Result<(), StoreError> {
        within(ANSWER, self.lock.confirm()).await?;
        self.confirmed = Instant::now();
        Ok(())
    }

    /// Settles the next message; `false` at the end of the queue.
    async fn next(&mut self) -> Result<bool, StepError> {
        let Some(message) = self.queue.next().await? else { return Ok(false) };
        fault::point("scheduler.sweep_taken");
        let properties = &message.delivery.properties;
        let incoming = read(Envelope {
            message_id: properties.message_id.as_deref(),
            attempt: properties.attempt,
            schema: properties.schema,
            flaw: properties.flaw.map(Flaw::as_str),
            body: &message.delivery.body,
        });
        let mut row = None;
        let mut verdict = Verdict::Keep;
        if let Incoming::Ticket { execution_id, attempt } = &incoming {
            let (execution_id, attempt) = (*execution_id, *attempt);
            row = within(ANSWER, parked::row(&mut self.lock, execution_id)).await?;
            self.confirmed = Instant::now();
            let last_death = message.delivery.last_death.as_deref();
            verdict = judge(attempt, row, last_death, self.seen.contains(&execution_id));
            if let Verdict::Fail(class) = verdict {
                self.fail(execution_id, attempt, class).await?;
            }
            if verdict == Verdict::Keep && row.is_some() {
                self.seen.insert(execution_id);
            }
        }
        if verdict == Verdict::Keep && row.is_none() {
            verdict = self.unowned(&message, &incoming).await?;
        }
        // Acks are not answered: one that is lost brings the message back, to be judged again.
        let _ = match verdict {
            // What failed its execution is spent by that, or had been spent before.
            Verdict::Remove | Verdict::Fail(_) => {
                self.tally.removed += 1;
                let removed = self.queue.remove(message).await;
                fault::point("scheduler.sweep_removed");
                removed
            }
            Verdict::Keep => {
                let Tally { kept, unowned, .. } = &mut self.tally;
                *(if row.is_some() { kept } else { unowned }) += 1;
                let copied = self.queue.copy_to_tail(message).await.map_err(put_back)?;
                fault::point("scheduler.sweep_copied");
                let kept = self.queue.drop_original(copied).await;
                fault::point("scheduler.sweep_kept");
                kept
            }
        };
        Ok(true)
    }

    /// Judges a message that no row knows: it stays, unless an operator has discarded it.
    async fn unowned(
        &mut self,
        message: &Parked,
        incoming: &Incoming,
    ) -> Result<Verdict, StepError> {
        let (store, began) = (&self.sweep.store, self.lock.began());
        match raw::note(store, message, incoming, &mut self.room, began, self.now).await? {
            Noted::Kept { .. } => Ok(Verdict::Keep),
            Noted::NoRoom => {
                self.tally.unrecorded += 1;
                self.unrecorded_bytes += message.delivery.body.len() as u64;
                Ok(Verdict::Keep)
            }
            Noted::Discarded => {
                self.tally.discarded += 1;
                Ok(Verdict::Remove)
            }
        }
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
        let failing = parked::fail_unopened(store, id, attempt, class, reason, self.now);
        let failed = within(ANSWER, failing).await?;
        // Otherwise the row has moved on since it was read.
        self.tally.failed += u64::from(failed);
        if failed {
            fault::point("scheduler.sweep_failed");
            tell_parked(store, &[id]).await;
        }
        Ok(())
    }

    async fn owe_unseen(&mut self) -> Result<(), StoreError> {
        let seen: Vec<ExecutionId> = self.seen.drain().collect();
        loop {
            let (store, began) = (&self.sweep.store, self.lock.began());
            let owing = parked::owe_unseen(store, &seen, began, OWED_AT_ONCE, self.now);
            let owed = within(ANSWER, owing).await?;
            self.tally.owed_again += owed;
            if owed < OWED_AT_ONCE as u64 || self.sweep.stop.is_cancelled() {
                return Ok(());
            }
            self.confirm().await?;
        }
    }
}

pub(super) fn put_back(error: PublishError) -> StepError {
    match error {
        PublishError::Unavailable { .. } | PublishError::TimedOut { .. } => {
            InspectError::Unavailable(error.to_string()).into()
        }
        other => StepError::PutBack(other),
    }
}

impl Tally {
    pub(super) fn tell(&self) {
        if self.owed_again > 0 {
            tracing::warn!(
                sexton_unaccounted_executions = self.owed_again,
                "{} failed executions had no message in the failed queue; they are published again",
                self.owed_again
            );
        }
        if self.failed > 0 {
            tracing::warn!(
                executions.failed = self.failed,
                "{} executions failed because the broker had parked their tickets",
                self.failed
            );
        }
        if self.unrecorded > 0 {
            tracing::warn!(
                messages.unrecorded = self.unrecorded,
                "{} messages of the failed queue are nobody's and could not be written down: too many are \
                 already; they stay in the queue",
                self.unrecorded
            );
        }
        if self.discarded > 0 {
            tracing::info!(
                messages.discarded = self.discarded,
                "removed {} messages from the failed queue that an operator had discarded",
                self.discarded
            );
        }
        tracing::debug!(
            messages.kept = self.kept,
            messages.unowned = self.unowned,
            messages.removed = self.removed,
            sweep.complete = self.complete,
            "went through the failed queue and removed {} messages",
            self.removed
        );
    }
}
