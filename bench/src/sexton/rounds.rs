//! Rounds of the relay and of the planner, run and timed in this process: those of the scheduler are too rare, and each
//! has its own pauses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sexton_broker::publish::DEFAULT_LANES;
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Publisher, Timeouts};
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::Planner;
use sexton_scheduler::publish::dispatch::{Dispatcher, dispatch};
use sexton_scheduler::publish::outbox::Outbox;
use sexton_scheduler::publish::relay::Relay;
use sexton_tests::platform::Platform;
use tokio::time::timeout;

use super::DEADLINE;
use crate::line::at;

/// Rounds of each: after the first ones PostgreSQL keeps one plan for all values, as for a scheduler that has run for long.
const ROUNDS: usize = 200;
/// Rounds before the statements are prepared are not counted.
const WARM_UP: usize = 10;

/// A relay and a planner of the platform, beside those of its scheduler.
pub(super) struct Rounds {
    relay: Relay,
    planner: Planner,
    link: Link,
    /// What the planner claims would be left to the relay without it.
    _dispatcher: Dispatcher,
}

impl Rounds {
    /// Connects them.
    pub(super) async fn start(platform: &Platform) -> Result<Self> {
        let link = Link::start(LinkSettings {
            endpoint: Endpoint::parse(platform.amqp_url())?,
            name: "bench".to_owned(),
            namespace: platform.namespace().clone(),
            pools: vec![PoolName::default_pool()],
            timeouts: Timeouts::default(),
        });
        timeout(DEADLINE, link.up()).await?.context("the broker refuses this link")?;
        let publisher = Publisher::start(&link, DEFAULT_LANES);
        let store = platform.store();
        let outbox = Arc::new(Outbox::new(store.clone(), link.clone(), publisher));
        let (dispatch, dispatcher) = dispatch(Arc::clone(&outbox));
        Ok(Self {
            relay: Relay::new(store.clone(), outbox),
            planner: Planner::new(store.clone(), dispatch, "bench:1"),
            link,
            _dispatcher: dispatcher,
        })
    }

    /// Returns the median of a relay's round and of a planner's, in milliseconds.
    pub(super) async fn medians(&self) -> Result<(f64, f64)> {
        Ok((median(&self.relay).await?, median(&self.planner).await?))
    }

    pub(super) async fn stop(self) {
        self.link.close().await;
    }
}

async fn median(one: &impl BackgroundLoop) -> Result<f64> {
    let mut took = Vec::with_capacity(ROUNDS);
    for number in 0..WARM_UP + ROUNDS {
        let since = Instant::now();
        one.run_once(None).await?;
        if number >= WARM_UP {
            took.push(since.elapsed());
        }
    }
    let mut samples: Vec<f64> = took.iter().map(Duration::as_secs_f64).collect();
    samples.sort_by(f64::total_cmp);
    Ok(at(&samples, 0.5) * 1e3)
}
