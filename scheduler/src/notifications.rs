//! News from the database: wakes the planner when jobs change, the relay when tickets are owed, and the
//! bulks when one was asked for.
//!
//! A notification can be lost with its connection, so every loop also polls, and whenever this
//! connection is made anew everybody looks for work once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sexton_store::notifications::{Listener, Notification};
use sexton_store::{Store, StoreError};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::planner::Planner;
use crate::random;
use crate::runner::{LoopContext, is_outage};

/// After so long without news the connection is made anew: the other side may be gone without a
/// word.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// For connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Between two tries, varied by a half to either side.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Who wants to hear.
#[derive(Clone, Debug)]
pub struct NotificationListener {
    /// Set free the jobs that it had set aside.
    pub planner: Arc<Planner>,
    /// Ends the planner's rest.
    pub jobs: Arc<Notify>,
    /// Ends the relay's rest.
    pub unpublished: Arc<Notify>,
    /// Ends the rest of the loop of bulks.
    pub bulks: Arc<Notify>,
}

impl NotificationListener {
    /// Listens until the shutdown.
    pub async fn run(self, store: Store, context: LoopContext) -> Result<(), Infallible> {
        tokio::select! {
            () = context.soft.cancelled() => return Ok(()),
            () = context.started.cancelled() => {}
        }
        loop {
            let listening = self.listen(&store);
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
                    () = sleep(RECONNECT_DELAY.mul_f64(0.5 + random::fraction())) => {}
                }
            }
        }
    }

    /// One connection's life; ends well after a long silence.
    async fn listen(&self, store: &Store) -> Result<(), StoreError> {
        let Ok(connected) = timeout(CONNECT_TIMEOUT, Listener::connect(store)).await else {
            tracing::debug!("the database does not answer; connecting begins anew");
            return Ok(());
        };
        let mut listener = connected?;
        self.wake_loops(None);
        while let Ok(wakeup) = timeout(IDLE_TIMEOUT, listener.next()).await {
            self.wake_loops(wakeup?);
        }
        Ok(())
    }

    fn wake_loops(&self, wakeup: Option<Notification>) {
        if matches!(wakeup, None | Some(Notification::Jobs)) {
            self.planner.release_quarantine();
            self.jobs.notify_one();
        }
        if matches!(wakeup, None | Some(Notification::TicketsUnpublished)) {
            self.unpublished.notify_one();
        }
        if matches!(wakeup, None | Some(Notification::Bulk)) {
            self.bulks.notify_one();
        }
    }
}
