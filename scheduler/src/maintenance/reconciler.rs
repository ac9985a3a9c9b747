//! The reconciler: marks tickets as unpublished again that the broker seems to have lost.
//!
//! A ticket counts as lost only long after it was due, and only when its main queue is empty or younger tickets
//! of its pool were opened before it. A wrong guess costs a duplicate, which the open recognises. This is half
//! of the recovery from a wiped broker; the sweep is the other half.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_broker::names::main_queue;
use sexton_broker::{InspectError, Link};
use sexton_model::log_throttle::LogThrottle;
use sexton_model::pool::PoolName;
use sexton_service::fault;
use sexton_store::reconcile::{self, OverduePool};
use sexton_store::{Now, Store};
use tokio::sync::Notify;

use crate::background_loop::{BackgroundLoop, LoopError, Pause};

/// Tickets in one round, and so in one second.
const MAX_BATCH_TICKETS: u64 = 500;
const FULL_BATCH_PAUSE: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The loop that finds lost tickets.
#[derive(Debug)]
pub struct Reconciler {
    store: Store,
    link: Link,
    relay: Arc<Notify>,
    log_throttle: LogThrottle,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReconcilerReport {
    /// Published tickets that were not opened long after they were due. They wait in a long queue, or are lost.
    pub unaccounted: u64,
    /// Number of those tickets that seem lost; the relay publishes them again.
    pub marked_unpublished: u64,
}

impl Reconciler {
    /// Creates the reconciler; `link` answers its queries of the broker, `relay` is woken when a ticket is
    /// unpublished.
    pub fn new(store: Store, link: Link, relay: Arc<Notify>) -> Self {
        Self { store, link, relay, log_throttle: LogThrottle::default() }
    }

    /// Returns whether a pool's main queue is empty.
    async fn is_empty(&self, pool: &PoolName) -> Result<bool, LoopError> {
        match self.link.depth(&main_queue(self.link.namespace(), pool)).await {
            Ok(depth) => Ok(depth.ready == 0),
            Err(InspectError::Missing(queue)) => {
                self.link.note_missing_queue(&queue);
                tracing::warn!(
                    queue.name = queue,
                    "queue {queue} is missing and is declared again"
                );
                let declared = match self.link.ensure_pools(slice::from_ref(pool)).await {
                    Ok(()) => self.link.redeclare().await,
                    Err(error) => Err(error),
                };
                match declared {
                    Ok(()) => fault::point("scheduler.declared"),
                    // The following publish finds the queue missing, too, and logs that.
                    Err(error) => tracing::debug!(%error, "queue {queue} could not be declared"),
                }
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Logs overdue tickets. Those in a queue that moves are not logged: that is a backlog.
    fn log_overdue(&self, overdue: &OverduePool, unpublished: u64, empty: bool) {
        if unpublished > 0 && self.log_throttle.permits(Instant::now()) {
            tracing::warn!(
                sexton_unaccounted_executions = overdue.tickets,
                tickets.marked_unpublished = unpublished,
                pool.name = %overdue.pool,
                queue.empty = empty,
                "{} tickets of pool {} are long overdue and seem lost; they are published again",
                overdue.tickets,
                overdue.pool
            );
        } else {
            tracing::debug!(
                sexton_unaccounted_executions = overdue.tickets,
                tickets.marked_unpublished = unpublished,
                pool.name = %overdue.pool,
                queue.empty = empty,
                "{} tickets of pool {} are long overdue",
                overdue.tickets,
                overdue.pool
            );
        }
    }
}

impl BackgroundLoop for Reconciler {
    const NAME: &'static str = "reconciler";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = ReconcilerReport;

    async fn run_once(&self, now: Now) -> Result<ReconcilerReport, LoopError> {
        if !self.link.is_up() {
            return Err(LoopError::BrokerUnavailable);
        }
        let mut reconciled = ReconcilerReport::default();
        for overdue in reconcile::list_overdue_pools(&self.store, now).await? {
            reconciled.unaccounted += overdue.tickets;
            let left = MAX_BATCH_TICKETS - reconciled.marked_unpublished;
            if left == 0 {
                continue;
            }
            let empty = self.is_empty(&overdue.pool).await?;
            let unpublished =
                reconcile::mark_unpublished(&self.store, &overdue.pool, empty, left as i64, now)
                    .await?;
            reconciled.marked_unpublished += unpublished;
            self.log_overdue(&overdue, unpublished, empty);
        }
        if reconciled.marked_unpublished > 0 {
            fault::point("scheduler.marked_unpublished");
            self.relay.notify_one();
        }
        Ok(reconciled)
    }

    fn pause(&self, reconciled: &ReconcilerReport) -> Pause {
        if reconciled.marked_unpublished >= MAX_BATCH_TICKETS {
            Pause::Exactly(FULL_BATCH_PAUSE)
        } else {
            Pause::AtMost(POLL_INTERVAL)
        }
    }
}
