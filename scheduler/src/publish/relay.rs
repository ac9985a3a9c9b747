//! The relay: publishes every ticket that is still unpublished.
//!
//! The process that changes a row publishes its ticket itself, at once. The relay is for the remaining tickets:
//! after a crash, after an outage of the broker, after a rescue. A round takes a batch (which hides it from
//! other replicas for half a minute), publishes, marks. No lock is held during a publish.
//!
//! **No queue delays another.** A round divides its batch among the destinations that have due tickets. A
//! destination whose queue refuses gets a probe now and then and no share ([`sexton_model::flow_control`]).
//! Each destination has a separate send, and a round waits only a moment for its end: one that hangs is left to
//! a later round, and until then its destination gets nothing more.
//!
//! The rate is bounded, so that the tickets of a long outage do not arrive as one flood. Refusals of queues are
//! remembered in this process only: a restarted scheduler tries them all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sexton_engine::outbox::PublishedTicket;
use sexton_model::flow_control::{Destination, FULL_WINDOW, Response, shares};
use sexton_model::id::ExecutionId;
use sexton_model::log_throttle::LogThrottle;
use sexton_service::{clock, fault};
use sexton_store::relay::{self, Destinations, PostponedTicket};
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError};
use tokio::sync::Mutex;

use super::in_flight::{InFlightSend, InFlightSends};
use super::late_marks::{LateMarks, MARK_DELAY};
use super::outbox::{Outbox, RefusedTicket, SendOutcome};
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The most tickets in one round.
pub const MAX_BATCH_TICKETS: usize = FULL_WINDOW;
/// The most destinations in one round. If there are more, the next round continues with the others.
pub const MAX_DESTINATIONS: usize = 500;
/// The most tickets in flight, including those for queues that hang.
const MAX_IN_FLIGHT_TICKETS: usize = 4 * MAX_BATCH_TICKETS;
/// Statements with which a round takes its batch: the next statement gives the share that a destination did not
/// need to the others.
const MAX_TAKES: usize = 3;
/// How long a round waits for confirms. A later round collects the later ones.
const CONFIRM_WAIT: Duration = Duration::from_millis(250);
/// Pause after a full round: at most 10,000 tickets a second from one replica. More than workers drain, and little enough
/// that the tickets of a long outage do not arrive as one flood.
const FULL_BATCH_PAUSE: Duration = Duration::from_millis(50);
/// Pause while confirms are late, or a queue that has refused tickets is tried with a few more.
const CAREFUL_PAUSE: Duration = Duration::from_millis(250);
/// Pause after any other round. Notifications shorten it.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest pause before tickets that are due at an instant, however many different instants there are.
const MIN_DUE_PAUSE: Duration = Duration::from_millis(5);
/// Delay of a ticket that is too large for any queue: it is only tried again because its row may have changed.
const TOO_LARGE_WAIT_MS: i64 = 300_000;

/// The loop that publishes unpublished tickets.
#[derive(Debug)]
pub struct Relay {
    store: Store,
    outbox: Arc<Outbox>,
    confirm_wait: Duration,
    mark_delay: Duration,
    state: Mutex<RelayState>,
    log_throttle: LogThrottle,
}

/// The state that a round leaves to the next.
#[derive(Debug, Default)]
struct RelayState {
    in_flight: InFlightSends,
    late_marks: LateMarks,
    /// The last destination that was handled, if there were more.
    after: Option<Destination>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RelayReport {
    /// Tickets that were unpublished and due, at most [`MAX_BATCH_TICKETS`].
    pub taken: usize,
    /// Tickets that are in their queue now, including those of earlier rounds.
    pub published: usize,
    /// Rows that were marked.
    pub marked: u64,
    /// Tickets that the broker refused, and that wait.
    pub postponed: usize,
    /// Rows that this program cannot read.
    pub unreadable: usize,
    /// Tickets whose confirms have not arrived yet.
    pub under_way: usize,
    /// Whether published tickets wait for their marks.
    pub has_late_marks: bool,
    /// Whether another round should follow at once: for further destinations, or for one that accepts more than
    /// it got.
    pub more: bool,
    /// How long after the round's beginning the next ticket is due, as of one that was enqueued for later.
    pub next_due: Option<Duration>,
}

/// The results of sends.
#[derive(Debug, Default)]
struct Results {
    published: Vec<PublishedTicket>,
    postponed: Vec<PostponedTicket>,
    /// Whether a limited destination accepted all that it got, and has more.
    has_growing_window: bool,
}

impl Relay {
    /// Creates the relay; `outbox` publishes the unpublished tickets of `store`.
    pub fn new(store: Store, outbox: Arc<Outbox>) -> Self {
        let (state, log_throttle) = (Mutex::default(), LogThrottle::default());
        let (confirm_wait, mark_delay) = (CONFIRM_WAIT, MARK_DELAY);
        Self { store, outbox, confirm_wait, mark_delay, state, log_throttle }
    }

    /// Sets how long a round waits for the confirms of its sends; 250 ms by default.
    #[must_use]
    pub const fn confirm_wait(mut self, confirm_wait: Duration) -> Self {
        self.confirm_wait = confirm_wait;
        self
    }

    /// Sets how long a worker has to open a ticket before it is marked; 250 ms by default.
    #[must_use]
    pub const fn mark_delay(mut self, mark_delay: Duration) -> Self {
        self.mark_delay = mark_delay;
        self
    }

    /// Takes a batch from the destinations in `due`, and returns which of them have nothing left.
    async fn take(
        &self,
        due: Vec<(Destination, usize)>,
        mut limit: usize,
        now: Now,
    ) -> Result<(relay::RelayBatch, Vec<Destination>), StoreError> {
        let (mut batch, mut drained) = (relay::RelayBatch::default(), Vec::new());
        let mut open = due;
        for _ in 0..MAX_TAKES {
            let windows: Vec<usize> = open.iter().map(|(_, window)| *window).collect();
            let quotas = shares(limit, &windows);
            let quota_by_destination: Vec<(Destination, usize)> = open
                .iter()
                .zip(&quotas)
                .map(|((destination, _), quota)| (destination.clone(), *quota))
                .collect();
            let taken = with_timeout(
                QUERY_TIMEOUT,
                relay::take_batch(&self.store, &quota_by_destination, now),
            )
            .await?;
            let mut still_open = Vec::new();
            for (((destination, window), quota), count) in
                open.into_iter().zip(quotas).zip(taken.counts)
            {
                limit -= count.min(limit);
                if count < quota {
                    drained.push(destination);
                } else if window > count {
                    still_open.push((destination, window - count));
                }
            }
            batch.tickets.extend(taken.tickets);
            batch.unreadable.extend(taken.unreadable);
            open = still_open;
            if limit == 0 || open.is_empty() {
                break;
            }
        }
        Ok((batch, drained))
    }

    /// Begins a send for each destination of the tickets, and waits a moment for all of them to end.
    async fn send(
        &self,
        in_flight: &mut InFlightSends,
        mut tickets: Vec<UnpublishedTicket>,
        drained: &[Destination],
        now: Now,
    ) {
        tickets.sort_by_key(|unpublished| {
            (unpublished.ticket.scheduled_for, unpublished.ticket.execution_id)
        });
        let mut parts: BTreeMap<Destination, Vec<UnpublishedTicket>> = BTreeMap::new();
        for unpublished in tickets {
            parts.entry(unpublished.destination()).or_default().push(unpublished);
        }
        let started: Vec<Destination> = parts.keys().cloned().collect();
        for (destination, part) in parts {
            let is_drained = drained.contains(&destination);
            in_flight.start_send(&self.outbox, destination, is_drained, part, now);
        }
        in_flight.wait_for(&started, self.confirm_wait).await;
    }

    /// Collects the results of sends.
    fn collect_results(
        &self,
        ended_sends: Vec<(InFlightSend, SendOutcome)>,
        now: DateTime<Utc>,
        results: &mut Results,
    ) {
        let mut flow = self.outbox.flow();
        for (InFlightSend { destination, drained, .. }, sent) in ended_sends {
            let response =
                Response { accepted: sent.published.len(), refused: sent.refused.len(), drained };
            let wait = flow.observe(&destination, response, now);
            let accepts = response.accepted > 0 && response.refused == 0;
            results.has_growing_window |= accepts && flow.is_limited(&destination);
            results.published.extend(sent.published);
            let waits = |ticket: RefusedTicket, wait_ms| PostponedTicket {
                execution_id: ticket.execution_id,
                rev: ticket.rev,
                wait_ms,
            };
            let refused = sent.refused.into_iter();
            results.postponed.extend(refused.map(|ticket| waits(ticket, wait.num_milliseconds())));
            let too_large = sent.too_large.into_iter();
            results.postponed.extend(too_large.map(|ticket| waits(ticket, TOO_LARGE_WAIT_MS)));
        }
    }

    /// Writes the collected results. Returns how many tickets were published, rows marked, and tickets
    /// postponed.
    async fn record(
        &self,
        results: &mut Results,
        now: Now,
    ) -> Result<(usize, u64, usize), StoreError> {
        let published = std::mem::take(&mut results.published);
        let postponed = std::mem::take(&mut results.postponed);
        if !published.is_empty() {
            fault::point("scheduler.relayed");
        }
        let marked = self.outbox.mark(&published, now).await?;
        if !postponed.is_empty() {
            fault::point("scheduler.relay_marked");
        }
        let postponing = relay::postpone(&self.store, &postponed, now);
        let postponed = with_timeout(QUERY_TIMEOUT, postponing).await? as usize;
        Ok((published.len(), marked, postponed))
    }

    /// Returns the destinations that may be sent to now, with the number of tickets for each.
    fn windows(&self, in_flight: &InFlightSends, found: Destinations) -> Vec<(Destination, usize)> {
        let Some(now) = found.now else { return Vec::new() };
        let flow = self.outbox.flow();
        let idle = found.due.into_iter().filter(|one| !in_flight.is_under_way(one));
        let windows = idle.map(|one| {
            let window = flow.window(&one, now);
            (one, window)
        });
        windows.filter(|(_, window)| *window > 0).collect()
    }

    fn log_unreadable(&self, unreadable: &[(ExecutionId, StoreError)]) {
        if let Some((id, error)) = unreadable.first()
            && self.log_throttle.permits(Instant::now())
        {
            tracing::error!(
                execution.id = %id,
                "the tickets of {} rows cannot be published, because the rows cannot be read: {error}",
                unreadable.len()
            );
        }
    }
}

impl BackgroundLoop for Relay {
    const NAME: &'static str = "relay";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = RelayReport;

    async fn run_once(&self, now: Now) -> Result<RelayReport, LoopError> {
        let mut state = self.state.lock().await;
        let RelayState { in_flight, late_marks, after } = &mut *state;
        if !self.outbox.is_open() {
            // Otherwise they would be published again after an outage.
            let waiting = late_marks.exchange(Vec::new(), Duration::ZERO, Instant::now());
            self.outbox.mark(&waiting, now).await?;
            return Err(LoopError::BrokerUnavailable);
        }
        let finding = relay::find_destinations(&self.store, after.as_ref(), MAX_DESTINATIONS, now);
        let mut destinations = with_timeout(QUERY_TIMEOUT, finding).await?;
        let (instant, next) =
            (destinations.now.or(now).unwrap_or_else(clock::now), destinations.next.take());
        let mut results = Results::default();
        self.collect_results(in_flight.collect(), instant, &mut results);
        // Before the take, which would otherwise take tickets with late confirms again.
        let (earlier, earlier_marked, earlier_postponed) = self.record(&mut results, now).await?;
        if after.is_none() && next.is_none() {
            let all: BTreeSet<&Destination> =
                destinations.due.iter().chain(&destinations.not_due).collect();
            self.outbox.flow().retain(|destination| all.contains(destination));
        }
        let next_due = destinations.next_due;
        let due = self.windows(in_flight, destinations);
        let limit =
            MAX_BATCH_TICKETS.min(MAX_IN_FLIGHT_TICKETS.saturating_sub(in_flight.tickets()));
        let (taken, drained) = self.take(due, limit, now).await?;
        if !taken.tickets.is_empty() {
            fault::point("scheduler.relay_taken");
        }
        self.log_unreadable(&taken.unreadable);
        let count = taken.tickets.len() + taken.unreadable.len();
        self.send(in_flight, taken.tickets, &drained, now).await;
        self.collect_results(in_flight.collect(), instant, &mut results);
        let published = std::mem::take(&mut results.published);
        let newly_published = published.len();
        results.published = late_marks.exchange(published, self.mark_delay, Instant::now());
        let (_, marked, postponed) = self.record(&mut results, now).await?;
        let more = next.is_some() || results.has_growing_window;
        *after = next;
        let relayed = RelayReport {
            taken: count,
            published: earlier + newly_published,
            marked: earlier_marked + marked,
            postponed: earlier_postponed + postponed,
            unreadable: taken.unreadable.len(),
            under_way: in_flight.tickets(),
            has_late_marks: !late_marks.is_empty(),
            more,
            next_due,
        };
        if relayed.taken > 0 {
            tracing::debug!(
                tickets.taken = relayed.taken,
                tickets.published = relayed.published,
                tickets.postponed = relayed.postponed,
                tickets.under_way = relayed.under_way,
                "published {} tickets that were unpublished",
                relayed.published
            );
        }
        Ok(relayed)
    }

    fn pause(&self, relayed: &RelayReport) -> Pause {
        if relayed.more {
            return Pause::Exactly(CAREFUL_PAUSE);
        }
        if relayed.taken >= MAX_BATCH_TICKETS {
            return Pause::Exactly(FULL_BATCH_PAUSE);
        }
        let is_careful = relayed.under_way > 0 || relayed.has_late_marks;
        let poll = if is_careful { CAREFUL_PAUSE } else { POLL_INTERVAL };
        match relayed.next_due {
            Some(due) if due < poll => Pause::Due(due.max(MIN_DUE_PAUSE)),
            _ => Pause::AtMost(poll),
        }
    }
}
