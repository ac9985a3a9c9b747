//! Remembers queues that do not confirm, so that they delay no others.
//!
//! A quorum queue without a leader accepts messages and confirms none. Each message to it would occupy its channel
//! for the whole confirm timeout. So after the first, publications for it fail at once for a while; then one is let
//! through as a probe, on a separate channel and with a shorter timeout.
//!
//! If nothing else was published meanwhile, the broker itself may have been silent. Then publications for the queue
//! use the separate channel, and none fails, until one is answered: so a silent queue delays the others once, whether
//! or not they had messages the first time.
//!
//! A new connection starts afresh, because the old one may have been the silent part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Duration, Instant};

/// Maximum number of queues that the breaker remembers; it treats further ones as healthy.
const MAX_TRACKED_QUEUES: usize = 1_000;

/// The route of a publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// Its queue is healthy.
    Send,
    /// Its queue or the broker was silent: send it on the separate channel, where it delays no other queue.
    SendSeparately,
    /// Its queue was silent a while ago: probe it.
    Probe,
    /// Its queue is silent: fail at once.
    Reject,
}

/// The silent queues of one connection.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker(Mutex<Queues>);

#[derive(Debug, Default)]
struct Queues {
    /// The connection's generation.
    generation: u64,
    /// When the next probe of each is due.
    silent: BTreeMap<String, Instant>,
    /// Queues that did not confirm while nothing else was published.
    suspected: BTreeSet<String>,
    /// When the last confirm came.
    last_confirm: Option<Instant>,
}

impl CircuitBreaker {
    /// Returns the route of a publication for `queue`. At most one caller in each `pause` probes.
    pub(crate) fn route(
        &self,
        queue: &str,
        generation: u64,
        pause: Duration,
        now: Instant,
    ) -> Route {
        let Some(mut queues) = self.of(generation) else { return Route::Send };
        let is_suspected = queues.suspected.contains(queue);
        match queues.silent.get_mut(queue) {
            None if is_suspected => Route::SendSeparately,
            None => Route::Send,
            Some(retry_at) if *retry_at <= now => {
                *retry_at = now + pause;
                Route::Probe
            }
            Some(_) => Route::Reject,
        }
    }

    /// Records a confirm at `now`.
    pub(crate) fn record_confirm(&self, generation: u64, now: Instant) {
        if let Some(mut queues) = self.of(generation) {
            queues.last_confirm = Some(now);
        }
    }

    /// Records that `queue` has not confirmed since `since`; it is avoided until `retry_at`. If no other queue
    /// confirmed either, the broker or the connection may be silent instead.
    pub(crate) fn record_timeout(
        &self,
        queue: &str,
        generation: u64,
        since: Instant,
        retry_at: Instant,
    ) {
        let Some(mut queues) = self.of(generation) else { return };
        let others_confirm = queues.last_confirm.is_some_and(|last_confirm| last_confirm >= since);
        let known = queues.silent.contains_key(queue);
        if known || (others_confirm && queues.silent.len() < MAX_TRACKED_QUEUES) {
            queues.suspected.remove(queue);
            queues.silent.insert(queue.to_owned(), retry_at);
        } else if !others_confirm && queues.suspected.len() < MAX_TRACKED_QUEUES {
            queues.suspected.insert(queue.to_owned());
        }
    }

    /// Returns whether `queue` has not confirmed while others did.
    pub(crate) fn is_open(&self, queue: &str, generation: u64) -> bool {
        self.of(generation).is_some_and(|queues| queues.silent.contains_key(queue))
    }

    /// Records that `queue` has answered, with any answer.
    pub(crate) fn reset(&self, queue: &str, generation: u64) {
        if let Some(mut queues) = self.of(generation) {
            queues.silent.remove(queue);
            queues.suspected.remove(queue);
        }
    }

    /// Returns the record of a connection; `None`: a newer one exists.
    fn of(&self, generation: u64) -> Option<MutexGuard<'_, Queues>> {
        // No code panics while it holds the lock.
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.generation < generation {
            *queues = Queues { generation, ..Queues::default() };
        }
        (queues.generation == generation).then_some(queues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(30);

    #[test]
    fn a_silent_queue_is_asked_by_one_at_a_time_until_it_answers() {
        let (silence, now) = (CircuitBreaker::default(), Instant::now());
        let route = |queue, now| silence.route(queue, 1, PAUSE, now);
        assert_eq!(route("q", now), Route::Send);
        silence.record_confirm(1, now);
        silence.record_timeout("q", 1, now, now + PAUSE);
        assert_eq!(route("q", now), Route::Reject);
        assert_eq!(route("other", now), Route::Send);
        assert_eq!(route("q", now + PAUSE), Route::Probe);
        assert_eq!(route("q", now + PAUSE), Route::Reject);
        // Silent again, though no other queue confirmed meanwhile.
        silence.record_timeout("q", 1, now + PAUSE, now + 3 * PAUSE);
        assert_eq!(route("q", now + 2 * PAUSE), Route::Reject);
        assert_eq!(route("q", now + 3 * PAUSE), Route::Probe);
        silence.reset("q", 1);
        assert_eq!(route("q", now), Route::Send);
    }

    #[test]
    fn a_broker_that_is_silent_altogether_is_held_against_no_queue() {
        let (silence, now) = (CircuitBreaker::default(), Instant::now());
        let route = |now| silence.route("q", 1, PAUSE, now);
        silence.record_confirm(1, now);
        silence.record_timeout("q", 1, now + PAUSE, now + 2 * PAUSE);
        assert_eq!(route(now), Route::SendSeparately, "it is sent, but holds up no other");
        silence.reset("q", 1);
        assert_eq!(route(now), Route::Send);
    }

    #[test]
    fn a_queue_that_is_silent_again_while_others_speak_is_found_out() {
        let (silence, now) = (CircuitBreaker::default(), Instant::now());
        silence.record_timeout("q", 1, now, now + PAUSE);
        silence.record_confirm(1, now + PAUSE);
        silence.record_timeout("q", 1, now + PAUSE, now + 3 * PAUSE);
        assert_eq!(silence.route("q", 1, PAUSE, now + 2 * PAUSE), Route::Reject);
    }

    #[test]
    fn nothing_is_held_against_a_queue_on_a_new_connection_nor_by_an_old_one() {
        let (silence, now) = (CircuitBreaker::default(), Instant::now());
        silence.record_confirm(1, now);
        silence.record_timeout("q", 1, now, now + PAUSE);
        assert_eq!(silence.route("q", 2, PAUSE, now), Route::Send);
        silence.record_confirm(1, now);
        silence.record_timeout("q", 1, now, now + PAUSE);
        assert_eq!(silence.route("q", 2, PAUSE, now), Route::Send);
    }
}
