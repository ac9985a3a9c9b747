//! Whether the slots that are free consume: "alive but not consuming" told from healthy.
//!
//! A worker can live, be connected and ready, and take nothing all the same: a slot whose consumer
//! cannot be set up, or that is gone. What it could run waits in its queue, and nothing else shows it.
//! So each pool has a pulse in the liveness, which beats unless some slot of it has not been where it
//! should be, consuming or busy with a ticket, for too long. A task that runs for a day is no silence.
//! Nor does time count in which a restart would cure nothing: the database does not answer, so slots
//! must not consume; the broker does not; the worker is stopping.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sexton_broker::{ConsumerStatus, Link, PoolName, SlotConsumer};
use sexton_service::fault;
use sexton_service::health::{Heartbeat, Liveness};

use crate::context::Context;

/// For so long a free slot may be without a consumer, connections that came and went in between not
/// counted, before `/livez` says so. A consumer is set up within seconds of a connection; what takes
/// longer than this does not cure itself.
const MAX_IDLE: Duration = Duration::from_mins(1);
/// Between two looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The pulse itself: some looks.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// What one slot is at.
#[derive(Clone, Debug)]
pub(crate) struct SlotStatus {
    consuming: ConsumerStatus,
    busy: Arc<AtomicBool>,
}

/// A slot has a ticket in hand as long as this lives.
#[derive(Debug)]
pub(crate) struct Busy(Arc<AtomicBool>);

impl SlotStatus {
    pub(crate) fn of(consumer: &SlotConsumer) -> Self {
        Self { consuming: consumer.consuming(), busy: Arc::default() }
    }

    /// The slot takes a ticket in hand.
    pub(crate) fn busy(&self) -> Busy {
        self.busy.store(true, Ordering::Relaxed);
        Busy(Arc::clone(&self.busy))
    }

    fn is_healthy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) || self.consuming.is_consuming()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The slots of a worker, by pool.
#[derive(Debug, Default)]
pub(crate) struct ConsumerLiveness(BTreeMap<PoolName, Vec<SlotStatus>>);

impl ConsumerLiveness {
    pub(crate) fn add(&mut self, pool: &PoolName, slot_status: SlotStatus) {
        self.0.entry(pool.clone()).or_default().push(slot_status);
    }

    /// Shows it in the liveness as long as it is polled.
    pub(crate) async fn report(
        self,
        context: Arc<Context>,
        link: Link,
        liveness: Liveness,
    ) -> Infallible {
        let max_idle = fault::test_override(MAX_IDLE, "CONSUME_SILENCE_MS");
        let heartbeat = |pool: &PoolName| {
            liveness
                .register(format!("slots of pool {pool}, which should consume"), HEARTBEAT_TIMEOUT)
        };
        let mut pools: Vec<Pool> = self
            .0
            .into_iter()
            .map(|(pool, statuses)| Pool {
                heartbeat: heartbeat(&pool),
                statuses,
                unhealthy_for: Duration::ZERO,
            })
            .collect();
        loop {
            let excused = context.soft.is_cancelled() || !context.gate.is_open() || !link.is_up();
            for pool in &mut pools {
                pool.check(excused, max_idle);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

/// The slots of one pool.
struct Pool {
    heartbeat: Heartbeat,
    statuses: Vec<SlotStatus>,
    /// For how long not all of them have been well.
    unhealthy_for: Duration,
}

impl Pool {
    fn check(&mut self, excused: bool, max_idle: Duration) {
        if self.statuses.iter().all(SlotStatus::is_healthy) {
            self.unhealthy_for = Duration::ZERO;
        } else if !excused {
            self.unhealthy_for += CHECK_INTERVAL;
        }
        if self.unhealthy_for < max_idle || excused {
            self.heartbeat.beat();
        }
    }
}
