//! Flow control of the relay: how many tickets each destination gets, and when.
//!
//! A queue that refuses must not use up the capacity of others. The relay therefore limits each [`Destination`] by
//! what its queue accepted last. A refusal shrinks the *window*, down to one probe; when nothing was accepted the
//! destination pauses, longer each time. When everything was accepted the window doubles, until the destination is no
//! longer limited.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::state::State;

/// The destination of a row's ticket: the state decides between a pool's main queue (`pending`), the delay queues
/// (`retrying`) and the failed queue (`failed`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Destination {
    /// The row's value, which need not be a valid pool name.
    pub pool: String,
    /// One of those that [have a ticket](State::has_ticket).
    pub state: State,
}

/// A queue's response to the tickets that one destination got at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// Tickets that its queue confirmed.
    pub accepted: usize,
    /// Tickets that its queue refused or did not confirm in time.
    pub refused: usize,
    /// Whether it had fewer due tickets than its window allowed.
    pub drained: bool,
}

/// The limited destinations. In memory only: a restarted process tries all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowControl(BTreeMap<Destination, Limit>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limit {
    window: usize,
    /// Number of responses in a row in which nothing was accepted.
    failures: u32,
    /// The destination gets nothing before this.
    paused_until: Option<DateTime<Utc>>,
}

/// The largest window, and that of an unlimited destination.
pub const FULL_WINDOW: usize = 500;
/// Maximum number of limited destinations in memory. Beyond it, the one with the largest window is forgotten: it gets
/// a full window once more.
pub const MAX_LIMITED_DESTINATIONS: usize = 1_000;
/// The pause after the first refusal; each further one doubles it.
const INITIAL_WAIT: chrono::Duration = chrono::Duration::seconds(5);
/// The longest pause of a destination. One probe each half minute costs little, soon finds a queue that has room
/// again, and bounds how long one ticket that is always refused delays the others.
const MAX_DESTINATION_PAUSE: chrono::Duration = chrono::Duration::seconds(30);
/// The longest wait of a refused ticket.
const MAX_TICKET_WAIT: chrono::Duration = chrono::Duration::minutes(5);
/// Number of doublings of `INITIAL_WAIT` that reach `MAX_TICKET_WAIT`.
const MAX_DOUBLINGS: u32 = 6;

impl FlowControl {
    /// Returns how many tickets the destination may get at `now`.
    pub fn window(&self, destination: &Destination, now: DateTime<Utc>) -> usize {
        let Some(limit) = self.0.get(destination) else { return FULL_WINDOW };
        // A clock that was set back must not prolong the pause.
        let is_paused =
            limit.paused_until.is_some_and(|end| now < end && end - now <= MAX_DESTINATION_PAUSE);
        if is_paused { 0 } else { limit.window }
    }

    /// Returns whether the destination's queue has refused tickets lately. Fresh tickets for it are left to the
    /// relay, which alone probes it.
    pub fn is_limited(&self, destination: &Destination) -> bool {
        self.0.contains_key(destination)
    }

    /// Records a response to the relay. Returns how long its refused tickets wait, so that the next probe is another
    /// ticket.
    pub fn observe(
        &mut self,
        destination: &Destination,
        response: Response,
        now: DateTime<Utc>,
    ) -> chrono::Duration {
        let before = self.0.get(destination).copied();
        match response {
            Response { accepted: 0, refused: 0, .. } => {}
            Response { accepted, refused: 0, drained } => {
                if let Some(limit) = before {
                    let window = limit.window.max(accepted) * 2;
                    if drained || window >= FULL_WINDOW {
                        self.0.remove(destination);
                    } else {
                        self.limit(destination, Limit { window, failures: 0, paused_until: None });
                    }
                }
            }
            Response { accepted: 0, .. } => {
                let failures = before.map_or(0, |limit| limit.failures);
                let wait =
                    (INITIAL_WAIT * 2_i32.pow(failures.min(MAX_DOUBLINGS))).min(MAX_TICKET_WAIT);
                let failures = (failures + 1).min(MAX_DOUBLINGS);
                let paused_until = Some(now + wait.min(MAX_DESTINATION_PAUSE));
                self.limit(destination, Limit { window: 1, failures, paused_until });
                return wait;
            }
            Response { accepted, .. } => {
                let window = accepted.min(FULL_WINDOW);
                self.limit(destination, Limit { window, failures: 0, paused_until: None });
            }
        }
        INITIAL_WAIT
    }

    /// Forgets the destinations without tickets, by `has_tickets`: they cannot be probed, here or in another
    /// publishing process.
    pub fn retain(&mut self, has_tickets: impl Fn(&Destination) -> bool) {
        self.0.retain(|destination, _| has_tickets(destination));
    }

    /// Records a refusal of a ticket from outside the relay: the relay's next round probes the destination. The
    /// relay's own findings stay.
    pub fn suspect(&mut self, destination: &Destination) {
        if !self.is_limited(destination) {
            self.limit(destination, Limit { window: 1, failures: 0, paused_until: None });
        }
    }

    fn limit(&mut self, destination: &Destination, limit: Limit) {
        if self.0.len() >= MAX_LIMITED_DESTINATIONS && !self.0.contains_key(destination) {
            let freest = self.0.iter().max_by_key(|(_, limit)| limit.window);
            if let Some(freest) = freest.map(|(destination, _)| destination.clone()) {
                self.0.remove(&freest);
            }
        }
        self.0.insert(destination.clone(), limit);
    }
}

/// Divides `total` among destinations, none of which gets more than its window: in equal parts, with unused parts
/// going to the others. Fewer than `total` only where the windows add up to less.
pub fn shares(total: usize, windows: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; windows.len()];
    let mut smallest_first: Vec<usize> = (0..windows.len()).collect();
    smallest_first.sort_by_key(|&place| windows[place]);
    let mut left = total;
    for (done, place) in smallest_first.into_iter().enumerate() {
        let part = left.div_ceil(windows.len() - done);
        shares[place] = part.min(windows[place]);
        left -= shares[place];
    }
    shares
}

#[cfg(test)]
mod tests;
