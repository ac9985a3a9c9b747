//! Signals when a handler must stop, and when its grace must end early.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::context::StopCause;
use crate::executor::{HostInstant, StopReason, TaskControl};

/// The stop signal of the attempt's owner, combined with the timeout.
pub(super) struct StopSignal {
    control: TaskControl,
    timeout_at: Instant,
}

impl StopSignal {
    pub(super) fn new(control: TaskControl, timeout_at: Instant) -> Self {
        Self { control, timeout_at }
    }

    /// Waits for the first reason to stop. Cancel-safe.
    pub(super) async fn stop(&mut self) -> StopCause {
        loop {
            if self.lease_is_lost() {
                return StopCause::LeaseLost;
            }
            match self.control.stop_order().map(|order| order.reason) {
                Some(StopReason::Cancelled) => return StopCause::Cancelled,
                Some(StopReason::Interrupted) => return StopCause::Interrupted,
                // The match above has handled both.
                Some(StopReason::LeaseLost) | None => {}
            }
            let lease = self.lease_left();
            tokio::select! {
                () = self.control.changed() => {}
                () = sleep(lease) => {}
                () = sleep_until(self.timeout_at) => return StopCause::TimedOut,
            }
        }
    }

    /// Waits until no grace is left. Cancel-safe.
    pub(super) async fn wait_for_grace_end(&mut self) {
        while !self.lease_is_lost() {
            if self.control.stop_order().is_some_and(|order| order.at_once) {
                return;
            }
            let lease = self.lease_left();
            tokio::select! {
                () = self.control.changed() => {}
                () = sleep(lease) => {}
            }
        }
    }

    /// Returns whether this worker has lost the attempt's lease, or may have.
    pub(super) fn lease_is_lost(&self) -> bool {
        let order = self.control.stop_order();
        order.is_some_and(|order| order.reason == StopReason::LeaseLost)
            || self.lease_left().is_zero()
    }

    fn lease_left(&self) -> Duration {
        self.control.lease().saturating_duration_since(HostInstant::now())
    }
}
