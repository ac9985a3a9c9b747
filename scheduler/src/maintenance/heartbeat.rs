//! The heartbeat as a loop: records every few seconds that this scheduler is alive.
//!
//! No decision depends on it: when a scheduler dies, the others claim what it would have claimed.

use std::time::Duration;

use sexton_engine::heartbeat::{HEARTBEAT_INTERVAL, Heartbeat};
use sexton_store::Now;

use crate::background_loop::{BackgroundLoop, LoopError, Pause};

/// The loop that sends the heartbeats.
#[derive(Debug)]
pub struct InstanceHeartbeat(pub Heartbeat);

impl BackgroundLoop for InstanceHeartbeat {
    const NAME: &'static str = "heartbeat";
    const ROUND_TIMEOUT: Duration = Duration::from_secs(30);
    type Report = bool;

    /// Sends one heartbeat; returns whether the process is ready.
    async fn run_once(&self, now: Now) -> Result<bool, LoopError> {
        let ready = self.0.beat(now).await?;
        self.0.record_queue_incidents(now).await;
        Ok(ready)
    }

    /// Shorter until the process is ready, so that its readiness shows soon.
    fn pause(&self, ready: &bool) -> Pause {
        Pause::AtMost(if *ready { HEARTBEAT_INTERVAL } else { Duration::from_secs(1) })
    }
}
