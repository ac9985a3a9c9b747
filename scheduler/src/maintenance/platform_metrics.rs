//! Reads the values of the whole platform that every scheduler answers at `/metrics`.
//!
//! Every replica reads, because a scraper must find the same values on each of them. A round that fails leaves the last
//! values, which are answered for two minutes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_model::failures::GroupState;
use sexton_service::fault;
use sexton_service::metrics::{MAX_SERIES, SnapshotGauge, table};
use sexton_store::alerts::outcome;
use sexton_store::incidents;
use sexton_store::job_readings::{self, JobReading};
use sexton_store::readings::{self, PlatformReading};
use sexton_store::status::{self, PoolCounts, Unpublished};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

const READ_INTERVAL: Duration = Duration::from_secs(15);

/// The loop that reads them.
#[derive(Debug)]
pub struct PlatformMetrics {
    store: Store,
    /// Whether each job has values.
    per_job: bool,
    requeues: Mutex<Option<Requeues>>,
}

/// The requeues that were counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct Requeues {
    /// The last row of the audit that was counted.
    last_action: i64,
    single: f64,
    bulk: f64,
    hand: f64,
}

impl PlatformMetrics {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store, per_job: bool) -> Self {
        Self { store, per_job, requeues: Mutex::new(None) }
    }

    async fn count_requeues(&self) -> Result<Requeues, LoopError> {
        let counted = *self.requeues.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requeues = if let Some(requeues) = counted {
            requeues
        } else {
            // What was requeued before this process began is not its to count.
            let last_action =
                with_timeout(QUERY_TIMEOUT, readings::last_action(&self.store)).await?;
            Requeues { last_action, ..Requeues::default() }
        };
        let counting = readings::count_requeues(&self.store, requeues.last_action);
        let (last_action, counts) = with_timeout(QUERY_TIMEOUT, counting).await?;
        requeues.last_action = last_action;
        for (how, count) in counts {
            let sum = match how.as_str() {
                "bulk" => &mut requeues.bulk,
                "hand_requeue" => &mut requeues.hand,
                _ => &mut requeues.single,
            };
            *sum += count as f64;
        }
        *self.requeues.lock().unwrap_or_else(PoisonError::into_inner) = Some(requeues);
        Ok(requeues)
    }
}

impl BackgroundLoop for PlatformMetrics {
    const NAME: &'static str = "metrics";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = ();

    async fn run_once(&self, now: Now) -> Result<(), LoopError> {
        set_tickets(with_timeout(QUERY_TIMEOUT, status::read_unpublished(&self.store, now)).await?);
        set_pools(&with_timeout(QUERY_TIMEOUT, status::pools(&self.store, now)).await?);
        set_reading(&with_timeout(QUERY_TIMEOUT, readings::read(&self.store, now)).await?);
        let open = with_timeout(QUERY_TIMEOUT, incidents::count_open(&self.store)).await?;
        let open = open.into_iter().map(|(severity, count)| ([severity.as_str()], count as f64));
        table::INCIDENTS_OPEN.set(open.collect());
        let oldest = with_timeout(QUERY_TIMEOUT, outcome::oldest_due_s(&self.store, now)).await?;
        table::NOTIFICATION_OLDEST.set(vec![([], oldest)]);
        if self.per_job {
            let reading = job_readings::read(&self.store, MAX_SERIES as i64);
            set_jobs(&with_timeout(QUERY_TIMEOUT, reading).await?);
        }
        let requeues = self.count_requeues().await?;
        table::REQUEUED.set(vec![
            (["single"], requeues.single),
            (["bulk"], requeues.bulk),
            (["hand"], requeues.hand),
        ]);
        Ok(())
    }

    fn pause(&self, (): &()) -> Pause {
        Pause::AtMost(fault::test_override(READ_INTERVAL, "METRICS_INTERVAL_MS"))
    }
}

fn set_tickets(unpublished: Unpublished) {
    let oldest_ms = unpublished.oldest_ms.unwrap_or(0);
    table::UNPUBLISHED_TICKETS.set(vec![([], unpublished.tickets as f64)]);
    table::UNPUBLISHED_TICKET_OLDEST.set(vec![([], oldest_ms as f64 / 1_000.0)]);
}

fn set_pools(pools: &[PoolCounts]) {
    let states = pools.iter().flat_map(|pool| {
        [
            ("pending", pool.pending),
            ("waiting", pool.waiting),
            ("running", pool.running),
            ("retrying", pool.retrying),
        ]
        .map(|(state, count)| ([pool.pool.as_str(), state], count as f64))
    });
    table::EXECUTIONS.set(states.collect());
    let oldest = |pool: &PoolCounts| pool.oldest_due_ms.unwrap_or(0) as f64 / 1_000.0;
    table::DUE_OLDEST.set(pools.iter().map(|pool| ([pool.pool.as_str()], oldest(pool))).collect());
    let slots = pools.iter().map(|pool| ([pool.pool.as_str()], pool.slots as f64));
    table::POOL_SLOTS.set(slots.collect());
}

fn set_jobs(readings: &[JobReading]) {
    type Value = fn(&JobReading) -> Option<f64>;
    let gauges: [(&SnapshotGauge<1>, Value); 3] = [
        (&table::JOB_LAST_SUCCESS, |reading| reading.last_success_s),
        (&table::JOB_NEXT_FIRING, |reading| reading.next_firing_s),
        (&table::JOB_CONSECUTIVE_FAILURES, |reading| Some(reading.failures as f64)),
    ];
    let others = readings.iter().find(|reading| reading.job.is_none());
    for (gauge, value) in gauges {
        let named = readings.iter().filter_map(|one| Some(([one.job.as_deref()?], value(one)?)));
        gauge.set_with_other(named.collect(), others.and_then(value));
    }
    let dropped = others.map_or(0, |others| others.jobs.unsigned_abs());
    table::SERIES_DROPPED.add([], dropped * gauges.len() as u64);
}

fn set_reading(reading: &PlatformReading) {
    table::CATCH_UP_HELD_JOBS.set(vec![([], reading.held_jobs as f64)]);
    table::UNACCOUNTED_FIRINGS.set(vec![([], reading.unaccounted_firings as f64)]);
    table::LEDGER_CHECK_AGE.set(vec![([], reading.ledger_check_age_s)]);
    let failed = reading.failed.iter().map(|one| ([one.pool.as_str()], one.failed as f64));
    table::FAILED.set(failed.collect());
    let oldest = reading.failed.iter().map(|one| ([one.pool.as_str()], one.oldest_s));
    table::FAILED_OLDEST.set(oldest.collect());
    let groups = GroupState::ALL.map(|state| {
        let found = reading.groups.iter().filter(|(found, _)| *found == state);
        ([state.as_str()], found.map(|(_, count)| *count).sum::<i64>() as f64)
    });
    table::FAILED_GROUPS.set(groups.to_vec());
}
