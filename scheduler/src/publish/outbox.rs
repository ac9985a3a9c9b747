//! Publishes tickets and marks them: all tickets of this process pass through here.
//!
//! The order is publish, confirm, mark. A crash in between publishes a ticket twice, which the open recognises;
//! a row that has changed meanwhile is not marked. A ticket that could not be published stays unpublished in
//! its row. The outbox only remembers which queues refused recently ([`FlowControl`]). Every wait for a server
//! has a time limit, so a batch ends within [`MAX_BATCH_DURATION`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sexton_broker::{Link, PoolName, Publication, PublishError, Publisher};
use sexton_engine::outbox::{self, MARK_TIMEOUT, PublishedTicket};
use sexton_engine::traces::record_publication;
use sexton_model::flow_control::{Destination, FlowControl};
use sexton_model::id::ExecutionId;
use sexton_model::log_throttle::LogThrottle;
use sexton_model::state::State;
use sexton_service::metrics::table;
use sexton_service::{clock, traces};
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::{Now, Store, StoreError};
use tokio::time::timeout;

/// The revision of a row that was only inserted.
const FIRST_REV: i32 = 1;
/// Time limit of the publishing: longer than the link waits for a confirm, so that the confirms beside an
/// unconfirmed ticket are known.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(35);
/// Time limit of a batch.
pub const MAX_BATCH_DURATION: Duration =
    Duration::from_secs(PUBLISH_TIMEOUT.as_secs() + MARK_TIMEOUT.as_secs());

/// Publishes tickets. There is one per process, because it throttles its log lines.
#[derive(Debug)]
pub struct Outbox {
    store: Store,
    link: Link,
    publisher: Publisher,
    flow: Mutex<FlowControl>,
    log_throttle: LogThrottle,
}

/// The result of a batch.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Tickets that are in their queue now and need their mark.
    pub published: Vec<PublishedTicket>,
    /// Tickets that a reachable broker refused, or did not confirm in time.
    pub refused: Vec<RefusedTicket>,
    /// Tickets that are too large for any queue; they were not sent.
    pub too_large: Vec<RefusedTicket>,
    /// The number of tickets of which nothing is known, because the broker disconnected or did not answer.
    pub unknown: usize,
    /// The number of tickets that were left to the relay, because their queue has recently refused others.
    pub left_to_relay: usize,
}

/// A ticket that the broker refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedTicket {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// The row's revision at the try.
    pub rev: i32,
    /// Its destination.
    pub destination: Destination,
}

impl Outbox {
    /// Creates the outbox; `publisher` publishes through `link`.
    pub fn new(store: Store, link: Link, publisher: Publisher) -> Self {
        Self {
            store,
            link,
            publisher,
            flow: Mutex::default(),
            log_throttle: LogThrottle::default(),
        }
    }

    /// Returns the record of queues that refused recently, in this process.
    pub(crate) fn flow(&self) -> MutexGuard<'_, FlowControl> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a broker is connected.
    pub fn is_open(&self) -> bool {
        self.link.is_up()
    }

    /// Marks published tickets; returns how many rows that changed. Fewer is normal: a worker opened the ticket
    /// first.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the tickets will be published again.
    pub async fn mark(&self, published: &[PublishedTicket], now: Now) -> Result<u64, StoreError> {
        outbox::mark(&self.store, published, now).await
    }

    /// Publishes tickets for the first time, like [`Self::send`], but leaves those for a queue that has
    /// recently refused others to the relay: the queue would refuse them as well, or, if it is silent, delay
    /// the others of the batch.
    pub async fn send_fresh(
        &self,
        mut tickets: Vec<UnpublishedTicket>,
        read_at: Instant,
        now: Now,
    ) -> SendOutcome {
        let count = tickets.len();
        {
            let flow = self.flow();
            tickets.retain(|unpublished| !flow.is_limited(&unpublished.destination()));
        }
        let mut sent = self.send(&tickets, read_at, now).await;
        sent.left_to_relay = count - tickets.len();
        let mut flow = self.flow();
        for RefusedTicket { destination, .. } in &sent.refused {
            flow.suspect(destination);
        }
        drop(flow);
        sent
    }

    /// Publishes tickets with confirms, without marking them. `read_at` is when their rows were read.
    pub async fn send(
        &self,
        tickets: &[UnpublishedTicket],
        read_at: Instant,
        now: Now,
    ) -> SendOutcome {
        if tickets.is_empty() {
            return SendOutcome::default();
        }
        let publishing = async {
            self.ensure_queues(tickets).await;
            // People read it; no decision depends on it.
            let dated = now.unwrap_or_else(clock::now);
            let namespace = self.link.namespace();
            let batch: Vec<Publication> =
                tickets.iter().map(|one| outbox::publication(namespace, one, dated)).collect();
            let queues: Vec<String> = if traces::is_on() {
                batch.iter().map(|one| one.queue().to_owned()).collect()
            } else {
                Vec::new()
            };
            (self.publisher.publish(batch).await, queues)
        };
        let (began, began_at) = (Instant::now(), clock::now());
        // The confirms that arrived before the timeout are lost; the relay publishes these tickets again.
        let Ok((answers, queues)) = timeout(PUBLISH_TIMEOUT, publishing).await else {
            return SendOutcome { unknown: tickets.len(), ..SendOutcome::default() };
        };
        let took = began.elapsed();
        for ((unpublished, answer), queue) in tickets.iter().zip(&answers).zip(queues) {
            let error = answer.as_ref().err().map(ToString::to_string);
            record_publication(unpublished, &queue, began_at, error.as_deref());
        }
        let mut sent = SendOutcome::default();
        for (unpublished, answer) in tickets.iter().zip(answers) {
            match answer {
                Ok(()) => {
                    observe_lag(unpublished, read_at);
                    sent.published.push(outbox::published(unpublished));
                }
                Err(PublishError::Unavailable { .. }) => sent.unknown += 1,
                Err(error) => {
                    self.log_refusal(unpublished, &error);
                    let (execution_id, destination) =
                        (unpublished.ticket.execution_id, unpublished.destination());
                    let refused = RefusedTicket { execution_id, rev: unpublished.rev, destination };
                    let too_large = matches!(error, PublishError::TooLarge { .. });
                    if too_large { &mut sent.too_large } else { &mut sent.refused }.push(refused);
                }
            }
        }
        if !sent.published.is_empty() {
            table::PUBLISH_CONFIRM.observe([], took);
        }
        sent
    }

    /// Declares the queues of new pools: a job may name a pool that no worker has declared yet.
    async fn ensure_queues(&self, tickets: &[UnpublishedTicket]) {
        let pools: BTreeSet<&PoolName> =
            tickets.iter().map(|unpublished| &unpublished.pool).collect();
        let pools: Vec<PoolName> = pools.into_iter().cloned().collect();
        if let Err(error) = self.link.ensure_pools(&pools).await {
            // A mismatch ends the process through the link; any other error shows at the publish.
            tracing::debug!(%error, "the queues of a new pool could not be declared");
        }
    }

    fn log_refusal(&self, unpublished: &UnpublishedTicket, error: &PublishError) {
        if self.log_throttle.permits(Instant::now()) {
            tracing::warn!(
                execution.id = %unpublished.ticket.execution_id,
                attempt.number = unpublished.ticket.attempt.get(),
                job.name = unpublished.ticket.job,
                pool.name = %unpublished.pool,
                "a ticket stays unpublished, because the broker did not take it: {error}"
            );
        }
    }
}

/// Records how long after it was due an execution's first ticket is in its queue. A ticket that seemed lost and is published
/// again has a later revision, as that of an execution that waited for its job.
fn observe_lag(unpublished: &UnpublishedTicket, read_at: Instant) {
    if unpublished.state == State::Pending && unpublished.rev == FIRST_REV {
        let due_in = unpublished.due_in.to_std().unwrap_or_default();
        let overdue = (-unpublished.due_in).to_std().unwrap_or_default();
        table::FIRING_LAG.observe([], (read_at.elapsed() + overdue).saturating_sub(due_in));
    }
}
