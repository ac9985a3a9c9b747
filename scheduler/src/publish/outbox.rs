//! Publishes tickets and marks them: the way of every ticket out of this process.
//!
//! The order is publish, confirm, mark. A crash in between publishes a ticket twice, which the open
//! recognises; a row that has moved on meanwhile is not marked. What could not be published stays
//! unpublished in its row. Remembered is only which queues refused lately ([`FlowControl`]). Neither server
//! is waited for without end, so a batch is done with in [`MAX_BATCH_DURATION`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sexton_broker::{Link, PoolName, PublishError, Publisher};
use sexton_engine::outbox::{self, MARK_TIMEOUT, PublishedTicket};
use sexton_model::flow_control::{Destination, FlowControl};
use sexton_model::id::ExecutionId;
use sexton_model::log_throttle::LogThrottle;
use sexton_service::clock;
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::{Now, Store, StoreError};
use tokio::time::timeout;

/// For the broker: longer than the link waits for a confirm, so that what was confirmed beside a ticket
/// that was not is known.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(35);
/// For a batch.
pub const MAX_BATCH_DURATION: Duration =
    Duration::from_secs(PUBLISH_TIMEOUT.as_secs() + MARK_TIMEOUT.as_secs());

/// The way out. One per process: its complaints are throttled together.
#[derive(Debug)]
pub struct Outbox {
    store: Store,
    link: Link,
    publisher: Publisher,
    flow: Mutex<FlowControl>,
    log_throttle: LogThrottle,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Tickets that are in their queue now, to be marked.
    pub published: Vec<PublishedTicket>,
    /// Tickets that a broker which is there did not take, or did not confirm in time.
    pub refused: Vec<RefusedTicket>,
    /// Tickets that no queue can take; nothing was sent.
    pub too_large: Vec<RefusedTicket>,
    /// Tickets of which nothing is known, because the broker went away or fell silent.
    pub unknown: usize,
    /// Tickets that were left to the relay, because their queue has refused some lately.
    pub left_to_relay: usize,
}

/// A ticket that the broker did not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedTicket {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// The row's revision at the try.
    pub rev: i32,
    /// Where it should have gone.
    pub destination: Destination,
}

impl Outbox {
    /// `publisher` publishes through `link`.
    pub fn new(store: Store, link: Link, publisher: Publisher) -> Self {
        Self {
            store,
            link,
            publisher,
            flow: Mutex::default(),
            log_throttle: LogThrottle::default(),
        }
    }

    /// Which queues refused lately, in this process.
    pub(crate) fn flow(&self) -> MutexGuard<'_, FlowControl> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a broker to publish to.
    pub fn is_open(&self) -> bool {
        self.link.is_up()
    }

    /// Marks published tickets; returns how many rows that changed. Fewer is normal: a worker was
    /// faster.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: what was published will be published again.
    pub async fn mark(&self, published: &[PublishedTicket], now: Now) -> Result<u64, StoreError> {
        outbox::mark(&self.store, published, now).await
    }

    /// The same as [`Self::send`] for tickets that are published for the first time. Those for a queue that
    /// has refused some lately are left to the relay: they would be refused as well, or, if the queue is
    /// silent, hold up the others of the batch.
    pub async fn send_fresh(&self, mut tickets: Vec<UnpublishedTicket>, now: Now) -> SendOutcome {
        let all = tickets.len();
        {
            let flow = self.flow();
            tickets.retain(|unpublished| !flow.is_limited(&unpublished.destination()));
        }
        let mut sent = self.send(&tickets, now).await;
        sent.left_to_relay = all - tickets.len();
        let mut flow = self.flow();
        for RefusedTicket { destination, .. } in &sent.refused {
            flow.suspect(destination);
        }
        drop(flow);
        sent
    }

    /// Publishes tickets with confirms, without marking them.
    pub async fn send(&self, tickets: &[UnpublishedTicket], now: Now) -> SendOutcome {
        if tickets.is_empty() {
            return SendOutcome::default();
        }
        let publishing = async {
            self.ensure_queues(tickets).await;
            // People read it; nothing is decided by it.
            let dated = now.unwrap_or_else(clock::now);
            let namespace = self.link.namespace();
            let batch = tickets.iter().map(|one| outbox::publication(namespace, one, dated));
            self.publisher.publish(batch.collect()).await
        };
        // What was confirmed by then is not known to be: it is published again.
        let Ok(answers) = timeout(PUBLISH_TIMEOUT, publishing).await else {
            return SendOutcome { unknown: tickets.len(), ..SendOutcome::default() };
        };
        let mut sent = SendOutcome::default();
        for (unpublished, answer) in tickets.iter().zip(answers) {
            match answer {
                Ok(()) => sent.published.push(outbox::published(unpublished)),
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
        sent
    }

    /// A job may name a pool that no worker has declared yet.
    async fn ensure_queues(&self, tickets: &[UnpublishedTicket]) {
        let pools: BTreeSet<&PoolName> =
            tickets.iter().map(|unpublished| &unpublished.pool).collect();
        let pools: Vec<PoolName> = pools.into_iter().cloned().collect();
        if let Err(error) = self.link.ensure_pools(&pools).await {
            // A mismatch ends the process by way of the link; anything else shows at the publish.
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
