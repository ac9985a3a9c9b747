//! Reports in the liveness whether the free slots consume, to tell "alive but not consuming" from healthy.
//!
//! A worker can be alive, connected and ready, and still take no tickets: when a slot's consumer is gone or
//! cannot be set up. Its tickets wait in the queue, and nothing else shows it. So each pool has a heartbeat in
//! the liveness, which stops when one of its slots has been neither consuming nor busy with a ticket for too
//! long. A task that runs for a day counts as busy. Time in which a restart would cure nothing does not count:
//! the database does not answer, so slots must not consume; the broker does not answer; the worker is stopping.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sexton_broker::{ConsumerStatus, Link, PoolName, SlotConsumer};
use sexton_service::fault;
use sexton_service::health::{Heartbeat, Liveness};
use sexton_service::metrics::{GaugeSeries, table};

use crate::context::Context;

/// How long a free slot may be without a consumer before `/livez` says so; interrupted connections do not reset
/// it. A consumer is set up within seconds of a connection; a delay beyond this limit needs a restart.
const MAX_IDLE: Duration = Duration::from_mins(1);
/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout of the heartbeat itself: several checks.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of one slot, in the liveness and in the metrics.
#[derive(Clone, Debug)]
pub(crate) struct SlotStatus {
    consuming: ConsumerStatus,
    busy: Arc<AtomicBool>,
    slots: SlotCounts,
}

/// Marks the slot as busy with a ticket until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy(SlotStatus);

/// How many slots of a pool are busy and idle.
#[derive(Clone, Debug)]
struct SlotCounts {
    busy: GaugeSeries,
    idle: GaugeSeries,
}

impl SlotStatus {
    /// Returns the status of a new slot, which is idle.
    pub(crate) fn of(consumer: &SlotConsumer, pool: &PoolName) -> Self {
        let count = |state| table::SLOTS.series([pool.as_str(), state]);
        let slots = SlotCounts { busy: count("busy"), idle: count("idle") };
        slots.idle.add(1.0);
        Self { consuming: consumer.consuming(), busy: Arc::default(), slots }
    }

    /// Marks the slot as busy.
    pub(crate) fn busy(&self) -> Busy {
        self.set_busy(true);
        Busy(self.clone())
    }

    fn set_busy(&self, is_busy: bool) {
        self.busy.store(is_busy, Ordering::Relaxed);
        let change = if is_busy { 1.0 } else { -1.0 };
        self.slots.busy.add(change);
        self.slots.idle.add(-change);
    }

    fn is_healthy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) || self.consuming.is_consuming()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set_busy(false);
    }
}

/// The slots of a worker, by pool.
#[derive(Debug, Default)]
pub(crate) struct ConsumerLiveness(BTreeMap<PoolName, Vec<SlotStatus>>);

impl ConsumerLiveness {
    pub(crate) fn add(&mut self, pool: &PoolName, slot_status: SlotStatus) {
        self.0.entry(pool.clone()).or_default().push(slot_status);
    }

    /// Reports the slots' state in the liveness as long as it is polled.
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
    /// How long at least one of them has been unhealthy.
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
