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

use crate::draw;
use crate::planner::Planner;
use crate::runner::{Around, is_outage};

/// After so long without news the connection is made anew: the other side may be gone without a
/// word.
const SILENCE: Duration = Duration::from_mins(5);
/// For connecting.
const LIMIT: Duration = Duration::from_secs(15);
/// Between two tries, varied by a half to either side.
const RETRY: Duration = Duration::from_secs(2);

/// Who wants to hear.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// Set free the jobs that it had set aside.
    pub planner: Arc<Planner>,
    /// Ends the planner's rest.
    pub jobs: Arc<Notify>,
    /// Ends the relay's rest.
    pub unpublished: Arc<Notify>,
    /// Ends the rest of the loop of bulks.
    pub bulks: Arc<Notify>,
}

impl Wakes {
    /// Listens until the shutdown.
    pub async fn run(self, store: Store, around: Around) -> Result<(), Infallible> {
        tokio::select! {
            () = around.soft.cancelled() => return Ok(()),
            () = around.started.cancelled() => {}
        }
        loop {
            let listening = self.listen(&store);
            let outcome = tokio::select! {
                () = around.soft.cancelled() => return Ok(()),
                outcome = listening => outcome,
            };
            if let Err(error) = outcome {
                if is_outage(&error) {
                    around.database.record_failure(&error);
                } else {
                    tracing::debug!(%error, "listening for news broke off and begins anew");
                }
                tokio::select! {
                    () = around.soft.cancelled() => return Ok(()),
                    () = sleep(RETRY.mul_f64(0.5 + draw::fraction())) => {}
                }
            }
        }
    }

    /// One connection's life; ends well after a long silence.
    async fn listen(&self, store: &Store) -> Result<(), StoreError> {
        let Ok(connected) = timeout(LIMIT, Listener::connect(store)).await else {
            tracing::debug!("the database does not answer; connecting begins anew");
            return Ok(());
        };
        let mut listener = connected?;
        self.tell(None);
        while let Ok(news) = timeout(SILENCE, listener.next()).await {
            self.tell(news?);
        }
        Ok(())
    }

    fn tell(&self, news: Option<Notification>) {
        if matches!(news, None | Some(Notification::Jobs)) {
            self.planner.jobs_changed();
            self.jobs.notify_one();
        }
        if matches!(news, None | Some(Notification::TicketsUnpublished)) {
            self.unpublished.notify_one();
        }
        if matches!(news, None | Some(Notification::Bulk)) {
            self.bulks.notify_one();
        }
    }
}
