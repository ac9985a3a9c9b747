//! Renews the lease of an open attempt while its task runs.
//!
//! It renews every quarter of the lease. The executor kills the task by the worker's own monotonic clock at
//! (the instant *before* the last successful renewal was sent) + lease − margin, which is earlier than any
//! watcher of the lease can have seen this renewal for its whole length. So while the host runs at all, no
//! second worker can open the next attempt while this task still runs.

use std::convert::Infallible;
use std::time::Duration;

use sexton_service::fault;
use sexton_store::lease::{AttemptFence, Renewal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::executor::{HostInstant, StopReason, TaskSupervisor};

/// The longest grace of a task after the hard stop, even if its own is longer: the process ends ten seconds
/// after the hard stop, and the attempt must be settled before.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Returns the part of a lease that is left unused at its end, for the kill itself and for two clocks that run
/// at slightly different speeds: a tenth, at least 200 ms, at most 2 s.
fn margin(lease: Duration) -> Duration {
    (lease / 10).clamp(Duration::from_millis(200), Duration::from_secs(2))
}

/// Returns until when a task may run after an open or a renewal that was sent at `sent`.
pub(crate) fn lease_end(sent: HostInstant, lease: Duration) -> HostInstant {
    sent + lease.saturating_sub(margin(lease))
}

/// Renews until it is dropped (it never returns), and stops the task when the attempt is fenced or cancelled,
/// or when the worker must end. `cancels` must not have seen a cancel that arrived after the attempt's open was
/// sent.
pub(crate) async fn renew_lease(
    context: &Context,
    held: AttemptFence,
    lease: Duration,
    cancels: watch::Receiver<u64>,
    supervisor: &TaskSupervisor,
) -> Infallible {
    // Both run concurrently: a renewal that waits for an answer must not delay the stop.
    tokio::select! {
        never = renew_periodically(context, held, lease, cancels, supervisor) => never,
        never = stop_at_shutdown(context, supervisor) => never,
    }
}

async fn renew_periodically(
    context: &Context,
    held: AttemptFence,
    lease: Duration,
    mut cancels: watch::Receiver<u64>,
    supervisor: &TaskSupervisor,
) -> Infallible {
    let quarter = lease / 4;
    let mut next = Instant::now() + quarter;
    loop {
        tokio::select! {
            () = sleep_until(next) => {}
            // The context owns the sender, so this never fails.
            _ = cancels.changed() => {}
        }
        let sent = HostInstant::now();
        next = Instant::now() + quarter;
        match context.write_batcher.renew(held, lease).await {
            Ok(Renewal::Renewed { cancel_requested }) => {
                fault::point("worker.renewed");
                supervisor.extend_lease(lease_end(sent, lease));
                if cancel_requested {
                    supervisor.stop(StopReason::Cancelled);
                }
            }
            Ok(Renewal::Fenced) => {
                supervisor.stop(StopReason::LeaseLost);
                return std::future::pending().await;
            }
            // Without an answer, the renewal is retried soon. The executor watches the remaining lease.
            Ok(Renewal::Locked) | Err(_) => next = Instant::now() + lease / 20,
        }
    }
}

/// At the hard stop, gives the task its grace, but no more than the process has left.
async fn stop_at_shutdown(context: &Context, supervisor: &TaskSupervisor) -> Infallible {
    context.hard.cancelled().await;
    supervisor.stop(StopReason::Interrupted);
    tokio::time::sleep(SHUTDOWN_GRACE).await;
    supervisor.stop_at_once(StopReason::Interrupted);
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_ends_before_its_lease_does() {
        let sent = HostInstant::from_nanos(0);
        for (lease_s, end_s) in [(20, 18.0), (1, 0.8), (5, 4.5), (3600, 3598.0)] {
            let end = lease_end(sent, Duration::from_secs(lease_s));
            let end = end.saturating_duration_since(sent).as_secs_f64();
            assert!((end - end_s).abs() < 1e-9, "{lease_s}: {end}");
        }
    }
}
