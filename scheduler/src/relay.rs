//! The relay: publishes every ticket that is still owed.
//!
//! Whoever changes a row publishes its ticket himself, at once; the relay is for those who could not:
//! a crash, a broker that was away, a rescue. It takes a batch in nominal order (which hides it from
//! other replicas for half a minute), publishes, marks. No lock is held over a publish.
//!
//! The rate is bounded, so that the debt of a long outage does not arrive as one flood. A ticket
//! that a broker which is there does not take waits for longer each time; how often it was refused
//! is remembered here only, so a restart is a fresh try.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_model::id::ExecutionId;
use sexton_service::fault;
use sexton_store::answer::within;
use sexton_store::{Now, Store, StoreError, relay};
use tokio::time::Instant;

use crate::outbox::{Outbox, Refused};
use crate::step::{ANSWER, Pause, Step, StepError};
use crate::throttle::Throttle;

/// Tickets of one round.
pub const BATCH: usize = 500;
/// After a full round: 2,000 tickets a second at most, from one replica.
const BETWEEN_FULL: Duration = Duration::from_millis(250);
/// Otherwise. News comes in between.
const POLL: Duration = Duration::from_secs(1);

/// The loop.
#[derive(Debug)]
pub struct Relay {
    store: Store,
    outbox: Arc<Outbox>,
    waits: Mutex<Waits>,
    complaint: Throttle,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relayed {
    /// Tickets that were owed and due, of [`BATCH`] at most.
    pub taken: usize,
    /// Of those, tickets that are in their queue now.
    pub published: usize,
    /// Rows that were marked.
    pub marked: u64,
    /// Tickets that the broker did not take, and that wait.
    pub postponed: usize,
    /// Rows that this program cannot read.
    pub unreadable: usize,
}

impl Relay {
    /// Publishes through `outbox` what `store` says is owed.
    pub fn new(store: Store, outbox: Arc<Outbox>) -> Self {
        Self { store, outbox, waits: Mutex::default(), complaint: Throttle::default() }
    }

    async fn postpone(&self, refused: &[Refused], now: Now) -> Result<usize, StoreError> {
        let mut postponed = 0;
        for Refused { execution_id, rev } in refused {
            let wait = self.waits().next(*execution_id);
            let wait_ms = wait.as_millis() as i64;
            let postponing = relay::postpone(&self.store, *execution_id, *rev, wait_ms, now);
            let done = within(ANSWER, postponing).await?;
            postponed += usize::from(done);
        }
        Ok(postponed)
    }

    fn waits(&self) -> std::sync::MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complain(&self, unreadable: &[(ExecutionId, StoreError)]) {
        if let Some((id, error)) = unreadable.first()
            && self.complaint.permits(Instant::now())
        {
            tracing::error!(
                execution.id = %id,
                "the tickets of {} rows cannot be published, because the rows cannot be read: {error}",
                unreadable.len()
            );
        }
    }
}

impl Step for Relay {
    const NAME: &'static str = "relay";
    const LIMIT: Duration = Duration::from_mins(2);
    type Report = Relayed;

    async fn run_once(&self, now: Now) -> Result<Relayed, StepError> {
        if !self.outbox.is_open() {
            return Err(StepError::BrokerAway);
        }
        let taken = within(ANSWER, relay::take(&self.store, BATCH as i64, now)).await?;
        if !taken.tickets.is_empty() {
            fault::point("scheduler.relay_taken");
        }
        self.complain(&taken.unreadable);
        let sent = self.outbox.send(&taken.tickets, now).await;
        if !sent.published.is_empty() {
            fault::point("scheduler.relayed");
        }
        let marked = self.outbox.mark(&sent.published, now).await?;
        if !sent.refused.is_empty() {
            fault::point("scheduler.relay_marked");
        }
        let postponed = self.postpone(&sent.refused, now).await?;
        let relayed = Relayed {
            taken: taken.tickets.len() + taken.unreadable.len(),
            published: sent.published.len(),
            marked,
            postponed,
            unreadable: taken.unreadable.len(),
        };
        if relayed.taken > 0 {
            tracing::debug!(
                tickets.taken = relayed.taken,
                tickets.published = relayed.published,
                tickets.postponed = relayed.postponed,
                "published {} owed tickets",
                relayed.published
            );
        }
        Ok(relayed)
    }

    fn pause(&self, relayed: &Relayed) -> Pause {
        if relayed.taken >= BATCH { Pause::Exactly(BETWEEN_FULL) } else { Pause::AtMost(POLL) }
    }
}

/// How often tickets were refused.
#[derive(Debug, Default)]
struct Waits(HashMap<ExecutionId, u32>);

impl Waits {
    /// Tickets remembered. When there are more, all are forgotten and begin with the shortest wait.
    const MOST: usize = 10_000;
    const FIRST: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_mins(5);
    /// Doublings of `FIRST` that reach `LONGEST`.
    const DOUBLINGS: u32 = 6;

    fn next(&mut self, id: ExecutionId) -> Duration {
        if self.0.len() >= Self::MOST && !self.0.contains_key(&id) {
            self.0.clear();
        }
        let times = self.0.entry(id).or_insert(0);
        let wait = Self::FIRST * 2_u32.pow(*times);
        *times = (*times + 1).min(Self::DOUBLINGS);
        wait.min(Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> ExecutionId {
        ExecutionId::new(Uuid::from_u128(number))
    }

    #[test]
    fn a_refused_ticket_waits_twice_as_long_each_time_up_to_five_minutes() {
        let mut waits = Waits::default();
        let seconds: Vec<_> = (0..9).map(|_| waits.next(id(1)).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(waits.next(id(2)).as_secs(), 5);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut waits = Waits::default();
        for number in 0..2 * Waits::MOST as u128 {
            assert_eq!(waits.next(id(number)), Waits::FIRST);
        }
        assert!(waits.0.len() <= Waits::MOST);
    }
}
