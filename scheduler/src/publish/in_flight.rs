//! The relay's sends under way: one for each destination at a time.
//!
//! A queue that does not confirm keeps its own send open and no other. Dropped with the relay they end
//! half-way, as at a crash: the rows still have their tickets.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_model::flow_control::Destination;
use sexton_store::Now;
use sexton_store::tickets::UnpublishedTicket;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::outbox::{Outbox, SendOutcome};

/// Sends that have begun and whose result nobody has collected.
#[derive(Debug, Default)]
pub(crate) struct InFlightSends {
    tasks: JoinSet<SendOutcome>,
    under_way: HashMap<Id, InFlightSend>,
    ended_sends: Vec<(InFlightSend, SendOutcome)>,
}

/// One send.
#[derive(Debug)]
pub(crate) struct InFlightSend {
    /// Where it goes.
    pub(crate) destination: Destination,
    /// How many tickets it has.
    pub(crate) tickets: usize,
    /// Whether the destination had no more that were due.
    pub(crate) drained: bool,
}

impl InFlightSends {
    /// Whether the destination's last send is still open.
    pub(crate) fn is_under_way(&self, destination: &Destination) -> bool {
        self.under_way.values().any(|send| send.destination == *destination)
    }

    /// Tickets of all open sends.
    pub(crate) fn tickets(&self) -> usize {
        self.under_way.values().map(|send| send.tickets).sum()
    }

    /// Begins to send tickets of one destination.
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
        let task = self.tasks.spawn(async move { outbox.send(&tickets, now).await });
        self.under_way.insert(task.id(), send);
    }

    /// What has ended so far, without waiting.
    pub(crate) fn collect(&mut self) -> Vec<(InFlightSend, SendOutcome)> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.record_end(ended);
        }
        std::mem::take(&mut self.ended_sends)
    }

    /// Waits for the sends to `destinations`, for `confirm_wait` at most.
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
