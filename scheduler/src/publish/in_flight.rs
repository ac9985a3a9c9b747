//! Tracks the relay's sends in flight: at most one for each destination.
//!
//! A queue that does not confirm keeps its own send open and no other. If the relay is dropped, its sends end
//! half way, as in a crash: the rows still have their tickets.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_model::flow_control::Destination;
use sexton_store::Now;
use sexton_store::tickets::UnpublishedTicket;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::outbox::{Outbox, SendOutcome};

/// Sends that have begun and whose results are not collected yet.
#[derive(Debug, Default)]
pub(crate) struct InFlightSends {
    tasks: JoinSet<SendOutcome>,
    under_way: HashMap<Id, InFlightSend>,
    ended_sends: Vec<(InFlightSend, SendOutcome)>,
}

/// One send.
#[derive(Debug)]
pub(crate) struct InFlightSend {
    /// The destination.
    pub(crate) destination: Destination,
    /// The number of tickets.
    pub(crate) tickets: usize,
    /// Whether the destination had no more due tickets.
    pub(crate) drained: bool,
}

impl InFlightSends {
    /// Returns whether the destination's last send is still open.
    pub(crate) fn is_under_way(&self, destination: &Destination) -> bool {
        self.under_way.values().any(|send| send.destination == *destination)
    }

    /// Returns the number of tickets in all open sends.
    pub(crate) fn tickets(&self) -> usize {
        self.under_way.values().map(|send| send.tickets).sum()
    }

    /// Begins to send tickets to one destination.
    pub(crate) fn start_send(
        &mut self,
        outbox: &Arc<Outbox>,
        destination: Destination,
        drained: bool,
        tickets: Vec<UnpublishedTicket>,
        now: Now,
    ) {
        let send = InFlightSend { destination, tickets: tickets.len(), drained };
        let outbox = Arc::clone(outbox);
        let read_at = std::time::Instant::now();
        let task = self.tasks.spawn(async move { outbox.send(&tickets, read_at, now).await });
        self.under_way.insert(task.id(), send);
    }

    /// Returns the sends that have ended, without waiting.
    pub(crate) fn collect(&mut self) -> Vec<(InFlightSend, SendOutcome)> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.record_end(ended);
        }
        std::mem::take(&mut self.ended_sends)
    }

    /// Waits for the sends to `destinations`, at most `confirm_wait`.
    pub(crate) async fn wait_for(&mut self, destinations: &[Destination], confirm_wait: Duration) {
        let end = Instant::now() + confirm_wait;
        while destinations.iter().any(|one| self.is_under_way(one)) {
            match timeout_at(end, self.tasks.join_next_with_id()).await {
                Ok(Some(ended)) => self.record_end(ended),
                Ok(None) | Err(_) => break,
            }
        }
    }

    fn record_end(&mut self, ended: Result<(Id, SendOutcome), JoinError>) {
        match ended {
            Ok((id, sent)) => {
                if let Some(send) = self.under_way.remove(&id) {
                    self.ended_sends.push((send, sent));
                }
            }
            Err(error) => {
                self.under_way.remove(&error.id());
                tracing::error!("publishing a batch of tickets broke off: {error}");
            }
        }
    }
}
