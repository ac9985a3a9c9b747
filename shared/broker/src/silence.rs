//! Queues that do not confirm, remembered so that they hold up no others.
//!
//! A quorum queue without a leader takes messages and confirms none. Each one that is sent there would hold
//! its channel for the whole limit of a confirm. So after the first, the next ones are answered at once
//! for a while; then one is let through, on a channel of its own and for a shorter time, to find out.
//!
//! A new connection starts afresh: what was silent may have been the connection.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Duration, Instant};

/// The most queues that are remembered; more are asked as if nothing had been.
const MOST: usize = 1_000;

/// What to do with a publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Nothing is known against its queue.
    Send,
    /// Its queue was silent a while ago: find out whether it still is.
    Probe,
    /// Its queue was silent just now.
    Refuse,
}

/// The queues of one connection that were silent.
#[derive(Debug, Default)]
pub(crate) struct Silence(Mutex<Queues>);

#[derive(Debug, Default)]
struct Queues {
    /// Of the connection.
    generation: u64,
    /// When each may be asked again.
    silent: BTreeMap<String, Instant>,
}

impl Silence {
    /// What to do with a publication for `queue`. Whoever is told to probe is the only one for `pause`.
    pub(crate) fn advice(
        &self,
        queue: &str,
        generation: u64,
        pause: Duration,
        now: Instant,
    ) -> Advice {
        let mut queues = self.of(generation);
        match queues.silent.get_mut(queue) {
            None => Advice::Send,
            Some(again) if *again <= now => {
                *again = now + pause;
                Advice::Probe
            }
            Some(_) => Advice::Refuse,
        }
    }

    /// `queue` did not confirm in time; it is left alone until `again`.
    pub(crate) fn fell(&self, queue: &str, generation: u64, again: Instant) {
        let mut queues = self.of(generation);
        if queues.silent.len() < MOST {
            queues.silent.insert(queue.to_owned(), again);
        }
    }

    /// `queue` has answered, whatever it was.
    pub(crate) fn ended(&self, queue: &str) {
        self.lock().silent.remove(queue);
    }

    fn of(&self, generation: u64) -> MutexGuard<'_, Queues> {
        let mut queues = self.lock();
        if queues.generation != generation {
            *queues = Queues { generation, silent: BTreeMap::new() };
        }
        queues
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing in here panics half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(30);

    #[test]
    fn a_silent_queue_is_asked_by_one_at_a_time_until_it_answers() {
        let (silence, now) = (Silence::default(), Instant::now());
        let advice = |queue, now| silence.advice(queue, 1, PAUSE, now);
        assert_eq!(advice("q", now), Advice::Send);
        silence.fell("q", 1, now + PAUSE);
        assert_eq!(advice("q", now), Advice::Refuse);
        assert_eq!(advice("other", now), Advice::Send);
        assert_eq!(advice("q", now + PAUSE), Advice::Probe);
        assert_eq!(advice("q", now + PAUSE), Advice::Refuse);
        assert_eq!(advice("q", now + 2 * PAUSE), Advice::Probe);
        silence.ended("q");
        assert_eq!(advice("q", now), Advice::Send);
    }

    #[test]
    fn nothing_is_held_against_a_queue_on_a_new_connection() {
        let (silence, now) = (Silence::default(), Instant::now());
        silence.fell("q", 1, now + PAUSE);
        assert_eq!(silence.advice("q", 2, PAUSE, now), Advice::Send);
    }
}
