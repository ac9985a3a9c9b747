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

use crate::outbox::{Outbox, Sent};

/// Sends that have begun and whose result nobody has collected.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    tasks: JoinSet<Sent>,
    under_way: HashMap<Id, Flight>,
    landed: Vec<(Flight, Sent)>,
}

/// One send.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Where it goes.
    pub(crate) destination: Destination,
    /// How many tickets it has.
    pub(crate) tickets: usize,
    /// Whether the destination had no more that were due.
    pub(crate) drained: bool,
}

impl Flights {
    /// Whether the destination's last send is still open.
    pub(crate) fn is_under_way(&self, destination: &Destination) -> bool {
        self.under_way.values().any(|flight| flight.destination == *destination)
    }

    /// Tickets of all open sends.
    pub(crate) fn tickets(&self) -> usize {
        self.under_way.values().map(|flight| flight.tickets).sum()
    }

    /// Begins to send tickets of one destination.
    pub(crate) fn launch(
        &mut self,
        outbox: &Arc<Outbox>,
        destination: Destination,
        drained: bool,
        tickets: Vec<UnpublishedTicket>,
        now: Now,
    ) {
        let flight = Flight { destination, tickets: tickets.len(), drained };
        let outbox = Arc::clone(outbox);
        let task = self.tasks.spawn(async move { outbox.send(&tickets, now).await });
        self.under_way.insert(task.id(), flight);
    }

    /// What has ended so far, without waiting.
    pub(crate) fn collect(&mut self) -> Vec<(Flight, Sent)> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.land(ended);
        }
        std::mem::take(&mut self.landed)
    }

    /// Waits for the sends to `destinations`, for `patience` at most.
    pub(crate) async fn wait_for(&mut self, destinations: &[Destination], patience: Duration) {
        let end = Instant::now() + patience;
        while destinations.iter().any(|one| self.is_under_way(one)) {
            match timeout_at(end, self.tasks.join_next_with_id()).await {
                Ok(Some(ended)) => self.land(ended),
                Ok(None) | Err(_) => break,
            }
        }
    }

    fn land(&mut self, ended: Result<(Id, Sent), JoinError>) {
        match ended {
            Ok((id, sent)) => {
                if let Some(flight) = self.under_way.remove(&id) {
                    self.landed.push((flight, sent));
                }
            }
            Err(error) => {
                self.under_way.remove(&error.id());
                tracing::error!("publishing a batch of tickets broke off: {error}");
            }
        }
    }
}
