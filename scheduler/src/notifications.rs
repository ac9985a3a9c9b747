//! Listens for notifications of the database: wakes the planner when jobs change, the relay when a ticket is
//! unpublished, the loop of bulks when a bulk is created, and the maker of members when a flow has begun.
//!
//! After each reconnection all of them run one round.

use std::convert::Infallible;
use std::sync::Arc;

use sexton_engine::jitter::jittered;
use sexton_engine::notifications::{RECONNECT_DELAY, listen};
use sexton_engine::start_up::is_outage;
use sexton_store::Store;
use sexton_store::notifications::Notification;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::background_loop::runner::LoopContext;
use crate::planner::Planner;

/// The loops that notifications wake.
#[derive(Clone, Debug)]
pub struct NotificationListener {
    /// Releases its quarantined jobs.
    pub planner: Arc<Planner>,
    /// Ends the planner's pause.
    pub jobs: Arc<Notify>,
    /// Ends the relay's pause.
    pub unpublished: Arc<Notify>,
    /// Ends the pause of the loop of bulks.
    pub bulks: Arc<Notify>,
    /// Ends the pause of the maker of flows' members.
    pub flows: Arc<Notify>,
}

impl NotificationListener {
    /// Listens until the shutdown.
    pub async fn run(self, store: Store, context: LoopContext) -> Result<(), Infallible> {
        tokio::select! {
            () = context.soft.cancelled() => return Ok(()),
            () = context.started.cancelled() => {}
        }
        loop {
            let listening = listen(&store, |news| self.wake_loops(news));
            let outcome = tokio::select! {
                () = context.soft.cancelled() => return Ok(()),
                outcome = listening => outcome,
            };
            if let Err(error) = outcome {
                if is_outage(&error) {
                    context.database.record_failure(&error);
                } else {
                    tracing::debug!(%error, "listening for news broke off and begins anew");
                }
                tokio::select! {
                    () = context.soft.cancelled() => return Ok(()),
                    () = sleep(jittered(RECONNECT_DELAY)) => {}
                }
            }
        }
    }

    fn wake_loops(&self, wakeup: Option<Notification>) {
        if matches!(wakeup, None | Some(Notification::Jobs)) {
            self.planner.release_quarantine();
            self.jobs.notify_one();
        }
        if wakeup == Some(Notification::Waiters) {
            self.jobs.notify_one();
        }
        if matches!(wakeup, None | Some(Notification::TicketsUnpublished)) {
            self.unpublished.notify_one();
        }
        if matches!(wakeup, None | Some(Notification::Bulk)) {
            self.bulks.notify_one();
        }
        if matches!(wakeup, None | Some(Notification::Flows)) {
            self.flows.notify_one();
        }
    }
}
