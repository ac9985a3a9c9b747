//! Passes freshly claimed tickets to a publishing task, so that claiming need not wait for confirms.
//!
//! Between the two is a short queue in memory. If the queue is full or the broker is down, a batch is not
//! passed on, and a batch in the queue can die with the process: in each case its tickets are unpublished in
//! their rows since the claim's commit, and the relay publishes them a few seconds later.
//!
//! Marks are delayed on purpose. A worker on an idle machine opens a ticket within milliseconds, and its open
//! marks the ticket in the same statement; a mark at that moment would only be in its way, and most tickets
//! never need one.
//!
//! Every batch ends within [`MAX_BATCH_DURATION`], whatever the servers do, and a shutdown waits for running
//! batches for only five seconds.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use sexton_engine::outbox::PublishedTicket;
use sexton_service::fault;
use sexton_service::reachability::Reachability;
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::{Now, StoreError};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use super::late_marks::MARK_DELAY;
use super::outbox::{MAX_BATCH_DURATION, Outbox, SendOutcome};
use crate::background_loop::runner::LoopContext;

/// The most batches that wait.
const MAX_QUEUED_BATCHES: usize = 16;
/// The most marks that wait; further ones are dropped, so that their tickets are published once more.
const MAX_PENDING_MARKS: usize = 50_000;
/// Batches that are published concurrently: one fills the broker's window while another is confirmed.
const MAX_IN_FLIGHT_BATCHES: usize = 2;
/// Time limit for the remaining batches after the soft stop; milliseconds are enough unless a server does not
/// answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the heartbeat to the liveness while there is nothing to do.
const BEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Tickets, and when their rows were written.
type FreshBatch = (Vec<UnpublishedTicket>, std::time::Instant);

/// The planner's end.
#[derive(Clone, Debug)]
pub struct Dispatch {
    outbox: Arc<Outbox>,
    sender: mpsc::Sender<FreshBatch>,
}

/// The publishing task's end.
#[derive(Debug)]
pub struct Dispatcher {
    outbox: Arc<Outbox>,
    receiver: mpsc::Receiver<FreshBatch>,
}

/// Creates a queue of batches to `outbox`.
pub fn dispatch(outbox: Arc<Outbox>) -> (Dispatch, Dispatcher) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_BATCHES);
    (Dispatch { outbox: Arc::clone(&outbox), sender }, Dispatcher { outbox, receiver })
}

impl Dispatch {
    /// Passes a batch on, without waiting. `false`: the relay will publish it.
    pub fn offer(&self, tickets: Vec<UnpublishedTicket>) -> bool {
        tickets.is_empty()
            || (self.outbox.is_open()
                && self.sender.try_send((tickets, std::time::Instant::now())).is_ok())
    }
}

impl Dispatcher {
    /// Publishes batches until every [`Dispatch`] is dropped, and then the remaining ones; or until five
    /// seconds after the soft stop, or the hard stop.
    pub async fn run(self, context: LoopContext) {
        let drain_timeout = async {
            context.soft.cancelled().await;
            sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            () = context.hard.cancelled() => {}
            () = drain_timeout => tracing::warn!(
                "tickets were not published within {} s of the stop; the relay publishes them later",
                DRAIN_TIMEOUT.as_secs()
            ),
            () = self.publish_all(&context) => {}
        }
    }

    async fn publish_all(mut self, context: &LoopContext) {
        let heartbeat =
            context.liveness.register("dispatcher", 2 * (MAX_BATCH_DURATION + BEAT_INTERVAL));
        let mut in_flight: JoinSet<SendOutcome> = JoinSet::new();
        let mut marking: JoinSet<Result<u64, StoreError>> = JoinSet::new();
        let mut confirmed: Vec<PublishedTicket> = Vec::new();
        let mut mark_at = Instant::now();
        loop {
            // A publishing task whose batches do not end sends no heartbeat.
            if in_flight.len() < MAX_IN_FLIGHT_BATCHES {
                heartbeat.beat();
            }
            tokio::select! {
                () = sleep_until(mark_at), if !confirmed.is_empty() && marking.is_empty() => {
                    let (outbox, marks) = (Arc::clone(&self.outbox), mem::take(&mut confirmed));
                    marking.spawn(async move { outbox.mark(&marks, None).await });
                }
                Some(done) = marking.join_next() => log_mark_result(done, &context.database),
                batch = self.receiver.recv(), if in_flight.len() < MAX_IN_FLIGHT_BATCHES => match batch {
                    Some(batch) => {
                        let outbox = Arc::clone(&self.outbox);
                        in_flight.spawn(async move { send(&outbox, batch, None).await });
                    }
                    None => break,
                },
                Some(done) = in_flight.join_next() => {
                    if confirmed.is_empty() {
                        mark_at = Instant::now() + MARK_DELAY;
                    }
                    collect(done, &mut confirmed);
                }
                () = sleep(BEAT_INTERVAL) => {}
            }
        }
        while let Some(done) = in_flight.join_next().await {
            collect(done, &mut confirmed);
        }
        while let Some(done) = marking.join_next().await {
            log_mark_result(done, &context.database);
        }
        log_mark_result(Ok(self.outbox.mark(&confirmed, None).await), &context.database);
    }

    /// Publishes the next waiting batch and marks it, at once; returns how many rows were marked. `None` if no
    /// batch waits.
    ///
    /// # Errors
    ///
    /// As [`Outbox::mark`].
    pub async fn publish_next(
        &mut self,
        now: Now,
    ) -> Option<Result<(SendOutcome, u64), StoreError>> {
        let batch = self.receiver.try_recv().ok()?;
        let sent = send(&self.outbox, batch, now).await;
        Some(
            self.outbox
                .mark(&sent.published, now)
                .await
                .map(|log_mark_result| (sent, log_mark_result)),
        )
    }
}

/// Publishes a batch; its marks follow later.
async fn send(outbox: &Outbox, (tickets, written_at): FreshBatch, now: Now) -> SendOutcome {
    let sent = outbox.send_fresh(tickets, written_at, now).await;
    if !sent.published.is_empty() {
        fault::point("scheduler.published");
    }
    sent
}

/// Collects the confirmed tickets of a batch.
fn collect(done: Result<SendOutcome, JoinError>, confirmed: &mut Vec<PublishedTicket>) {
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
            sent.published.truncate(MAX_PENDING_MARKS.saturating_sub(confirmed.len()));
            confirmed.append(&mut sent.published);
        }
        Err(error) => tracing::error!("publishing a batch of tickets broke off: {error}"),
    }
}

fn log_mark_result(done: Result<Result<u64, StoreError>, JoinError>, database: &Reachability) {
    match done {
        Ok(Ok(_)) => {}
        Ok(Err(error)) if error.is_transient() => database.record_failure(&error),
        Ok(Err(error)) => tracing::error!("published tickets could not be marked: {error}"),
        Err(error) => tracing::error!("marking published tickets broke off: {error}"),
    }
}
