//! Cancels work that runs in the worker itself: a request, a mail, the reading of a secret.
//!
//! Such work has no process that could clear up. Its executor drops its future, and with it the connection.

use std::time::Duration;

use tokio::time::Instant;

use crate::executor::{HostInstant, Outcome, StopReason, TaskControl};

/// Waits until the task must end, and returns the outcome: it was stopped, its lease is over, or it has run for
/// `timeout`.
pub(crate) async fn wait_for_cancellation(control: &mut TaskControl, timeout: Duration) -> Outcome {
    // A timeout beyond the clock's range counts as no timeout.
    let timeout_at = Instant::now() + timeout.min(Duration::from_hours(365 * 24));
    loop {
        if let Some(order) = control.stop_order() {
            return match order.reason {
                StopReason::Cancelled => Outcome::Cancelled,
                StopReason::Interrupted => Outcome::Interrupted,
                StopReason::LeaseLost => Outcome::LeaseLost,
            };
        }
        let lease = control.lease().saturating_duration_since(HostInstant::now());
        if lease.is_zero() {
            return Outcome::LeaseLost;
        }
        tokio::select! {
            () = control.changed() => {}
            () = tokio::time::sleep(lease) => {}
            () = tokio::time::sleep_until(timeout_at) => return Outcome::TimedOut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::TaskSupervisor;

    const LONG: Duration = Duration::from_mins(10);

    #[tokio::test]
    async fn each_cause_has_its_outcome() {
        let (supervisor, mut control) = TaskSupervisor::new(HostInstant::now() + LONG);
        assert_eq!(wait_for_cancellation(&mut control, Duration::ZERO).await, Outcome::TimedOut);
        drop(supervisor);
        for (reason, outcome) in [
            (StopReason::Cancelled, Outcome::Cancelled),
            (StopReason::Interrupted, Outcome::Interrupted),
            (StopReason::LeaseLost, Outcome::LeaseLost),
        ] {
            let (supervisor, mut control) = TaskSupervisor::new(HostInstant::now() + LONG);
            supervisor.stop(reason);
            assert_eq!(wait_for_cancellation(&mut control, LONG).await, outcome);
        }
        let (_supervisor, mut control) = TaskSupervisor::new(HostInstant::now());
        assert_eq!(wait_for_cancellation(&mut control, LONG).await, Outcome::LeaseLost);
    }

    #[tokio::test]
    async fn a_renewed_lease_is_waited_for() {
        let (supervisor, mut control) =
            TaskSupervisor::new(HostInstant::now() + Duration::from_millis(50));
        supervisor.extend_lease(HostInstant::now() + LONG);
        let end = wait_for_cancellation(&mut control, Duration::from_millis(100)).await;
        assert_eq!(end, Outcome::TimedOut);
    }
}
