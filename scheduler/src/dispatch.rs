//! Hands freshly claimed tickets to a publishing task, so that claiming need not wait for confirms.
//!
//! Between the two is a short queue in memory. A batch that finds it full, or no broker, is not
//! handed over at all, and one that dies with the process was owed from the claim's commit on: the
//! relay publishes it a few seconds later.
//!
//! Marks are written a moment later than they could be. A worker on an idle machine opens a ticket
//! within milliseconds, and its open pays the debt in the same statement; a mark at that moment would
//! only be in its way, and for most tickets it is never needed.
//!
//! Every batch ends within [`LONGEST`], whatever the servers do, and a shutdown waits for those under
//! way only for five seconds.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use sexton_service::fault;
use sexton_service::outage::Reachability;
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::{Now, StoreError};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::outbox::{LONGEST, Outbox, Published, Sent};
use crate::runner::Around;

/// Batches that wait.
const BACKLOG: usize = 16;
/// Confirmed tickets wait so long for their mark; far below the relay's patience of 5 s.
const MARK_AFTER: Duration = Duration::from_millis(250);
/// Marks that wait; those beyond are left out, so that their tickets are published once more.
const MOST_MARKS: usize = 50_000;
/// Batches that are published at a time: one fills the broker's window while another is confirmed.
const IN_FLIGHT: usize = 2;
/// After the soft stop, for what was claimed before it; milliseconds are enough unless a server does
/// not answer.
const PARTING: Duration = Duration::from_secs(5);
/// How often it shows that it is alive when there is nothing to do.
const BEAT: Duration = Duration::from_secs(30);

/// The planner's end.
#[derive(Clone, Debug)]
pub struct Dispatch {
    outbox: Arc<Outbox>,
    sender: mpsc::Sender<Vec<UnpublishedTicket>>,
}

/// The publishing task's end.
#[derive(Debug)]
pub struct Dispatcher {
    outbox: Arc<Outbox>,
    receiver: mpsc::Receiver<Vec<UnpublishedTicket>>,
}

/// A queue of batches on their way to `outbox`.
pub fn dispatch(outbox: Arc<Outbox>) -> (Dispatch, Dispatcher) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    (Dispatch { outbox: Arc::clone(&outbox), sender }, Dispatcher { outbox, receiver })
}

impl Dispatch {
    /// Hands a batch over, never waiting. `false`: the relay will see to it.
    pub fn offer(&self, tickets: Vec<UnpublishedTicket>) -> bool {
        tickets.is_empty() || (self.outbox.is_open() && self.sender.try_send(tickets).is_ok())
    }
}

impl Dispatcher {
    /// Publishes what is handed over until every [`Dispatch`] is gone, then what is left; or until
    /// five seconds after the soft stop, or the hard stop.
    pub async fn run(self, around: Around) {
        let parting = async {
            around.soft.cancelled().await;
            sleep(PARTING).await;
        };
        tokio::select! {
            () = around.hard.cancelled() => {}
            () = parting => tracing::warn!(
                "tickets were not published within {} s of the stop; they are owed in their rows",
                PARTING.as_secs()
            ),
            () = self.publish_all(&around) => {}
        }
    }

    async fn publish_all(mut self, around: &Around) {
        let heartbeat = around.liveness.register("dispatcher", 2 * (LONGEST + BEAT));
        let mut flying: JoinSet<Sent> = JoinSet::new();
        let mut marking: JoinSet<Result<u64, StoreError>> = JoinSet::new();
        let mut confirmed: Vec<Published> = Vec::new();
        let mut mark_at = Instant::now();
        loop {
            // Silent while no batch comes to its end.
            if flying.len() < IN_FLIGHT {
                heartbeat.beat();
            }
            tokio::select! {
                () = sleep_until(mark_at), if !confirmed.is_empty() && marking.is_empty() => {
                    let (outbox, marks) = (Arc::clone(&self.outbox), mem::take(&mut confirmed));
                    marking.spawn(async move { outbox.mark(&marks, None).await });
                }
                Some(done) = marking.join_next() => marked(done, &around.database),
                batch = self.receiver.recv(), if flying.len() < IN_FLIGHT => match batch {
                    Some(tickets) => {
                        let outbox = Arc::clone(&self.outbox);
                        flying.spawn(async move { send(&outbox, tickets, None).await });
                    }
                    None => break,
                },
                Some(done) = flying.join_next() => {
                    if confirmed.is_empty() {
                        mark_at = Instant::now() + MARK_AFTER;
                    }
                    collect(done, &mut confirmed);
                }
                () = sleep(BEAT) => {}
            }
        }
        while let Some(done) = flying.join_next().await {
            collect(done, &mut confirmed);
        }
        while let Some(done) = marking.join_next().await {
            marked(done, &around.database);
        }
        marked(Ok(self.outbox.mark(&confirmed, None).await), &around.database);
    }

    /// Publishes the next batch that waits and marks it, at once; says how many rows were marked.
    /// `None` if none waits.
    ///
    /// # Errors
    ///
    /// As [`Outbox::mark`].
    pub async fn publish_next(&mut self, now: Now) -> Option<Result<(Sent, u64), StoreError>> {
        let tickets = self.receiver.try_recv().ok()?;
        let sent = send(&self.outbox, tickets, now).await;
        Some(self.outbox.mark(&sent.published, now).await.map(|marked| (sent, marked)))
    }
}

/// Publishes a batch; its marks come later.
async fn send(outbox: &Outbox, tickets: Vec<UnpublishedTicket>, now: Now) -> Sent {
    let sent = outbox.send_fresh(tickets, now).await;
    if !sent.published.is_empty() {
        fault::point("scheduler.published");
    }
    sent
}

/// Takes over what was confirmed of a batch.
fn collect(done: Result<Sent, JoinError>, confirmed: &mut Vec<Published>) {
    match done {
        Ok(mut sent) => {
            tracing::debug!(
                tickets.published = sent.published.len(),
                tickets.refused = sent.refused.len(),
                tickets.unknown = sent.unknown,
                tickets.left_to_relay = sent.left_to_relay,
                "published {} fresh tickets",
                sent.published.len()
            );
            sent.published.truncate(MOST_MARKS.saturating_sub(confirmed.len()));
            confirmed.append(&mut sent.published);
        }
        Err(error) => tracing::error!("publishing a batch of tickets broke off: {error}"),
    }
}

fn marked(done: Result<Result<u64, StoreError>, JoinError>, database: &Reachability) {
    match done {
        Ok(Ok(_)) => {}
        Ok(Err(error)) if error.is_transient() => database.record_failure(&error),
        Ok(Err(error)) => tracing::error!("published tickets could not be marked: {error}"),
        Err(error) => tracing::error!("marking published tickets broke off: {error}"),
    }
}
