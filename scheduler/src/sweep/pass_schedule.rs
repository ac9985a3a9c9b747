//! Decides whether a pass over the failed queue is due. Pure.
//!
//! A pass takes and puts back every message, so it is made only when the numbers do not fit: each failed row
//! whose ticket was published has one message, and beside those there are as many messages as the last pass
//! kept without a row. Requeues, discards, manual moves, purges and parking by the broker all change one number
//! and not the other. Two such changes can cancel each other out, so a pass over a queue that is not empty is
//! also made once an hour.
//!
//! **Missing messages**: each is the only portable copy of a failed execution, so a pass is due at once.
//!
//! **Surplus messages** are mostly the remains of requeues and discards. They do no harm, and an operator who
//! requeues one by one from a long queue should not wait each time beside a pass over all of it. So, as with
//! the vacuum of a table, a pass is due when it pays: when a certain part of the messages is surplus, or when
//! there has been a surplus for a time that grows with the queue's length.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time between two passes over a queue that is not empty.
pub(crate) const MAX_PASS_INTERVAL: Duration = Duration::from_hours(1);
/// A pass is due at once when one of this many messages is surplus.
const SURPLUS_RATIO: u64 = 16;
/// Times the length of the queue: how long a smaller surplus may wait. A pass takes half a millisecond for each
/// message on a small machine, and so a twentieth of the time.
const WAIT_PER_MESSAGE: Duration = Duration::from_millis(10);
/// A wait up to this length is skipped: checks are not more frequent.
const NEGLIGIBLE_WAIT: Duration = Duration::from_secs(30);

/// What is remembered between passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastPass {
    /// When the last pass ended, or when this process began.
    pub(crate) ended_at: Instant,
    /// The normal difference between the messages and the published failed rows.
    pub(crate) surplus: i64,
    /// Since when there is a surplus beyond that, while there is one.
    pub(crate) too_many_since: Option<Instant>,
}

impl LastPass {
    /// Creates the state at the end of a pass, or at the start of this process.
    pub(crate) const fn new(ended_at: Instant, surplus: i64) -> Self {
        Self { ended_at, surplus, too_many_since: None }
    }

    /// Returns whether a pass is due. `ready` counts messages, `published` the failed rows whose ticket should
    /// be in the queue; after `max_interval` a pass is due if the queue is not empty.
    pub(crate) fn is_pass_due(
        &mut self,
        ready: u64,
        published: u64,
        max_interval: Duration,
        now: Instant,
    ) -> bool {
        let too_many = ready as i64 - published as i64 - self.surplus;
        let long_ago = now.saturating_duration_since(self.ended_at) >= max_interval;
        if too_many <= 0 {
            self.too_many_since = None;
            return too_many < 0 || (long_ago && ready > 0);
        }
        let since = *self.too_many_since.get_or_insert(now);
        let wait = WAIT_PER_MESSAGE
            .saturating_mul(u32::try_from(ready).unwrap_or(u32::MAX))
            .min(max_interval);
        long_ago && ready > 0
            || wait <= NEGLIGIBLE_WAIT
            || too_many.unsigned_abs().saturating_mul(SURPLUS_RATIO) >= ready
            || now.saturating_duration_since(since) >= wait
    }
}

/// Counts passes that failed in succession.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Backoff {
    count: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// The delay after the first failure; doubled after each further one.
    const FIRST_DELAY: Duration = Duration::from_secs(15);
    /// The most doublings: up to four minutes.
    const MAX_DOUBLINGS: u32 = 4;

    /// Records that a pass failed.
    pub(crate) fn record_failure(&mut self, now: Instant) {
        self.until = Some(now + Self::FIRST_DELAY * 2_u32.pow(self.count));
        self.count = (self.count + 1).min(Self::MAX_DOUBLINGS);
    }

    /// Returns whether the next pass still has to wait.
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pass_due(ready: u64, published: u64, mut last: LastPass, now: Instant) -> bool {
        last.is_pass_due(ready, published, MAX_PASS_INTERVAL, now)
    }

    #[test]
    fn a_pass_is_made_when_numbers_do_not_fit_and_once_an_hour() {
        let start = Instant::now();
        let last = LastPass::new(start, 0);
        let soon = start + Duration::from_mins(1);
        assert!(!is_pass_due(7, 7, last, soon));
        assert!(is_pass_due(8, 7, last, soon), "a copy by hand");
        assert!(is_pass_due(7, 6, last, soon), "a requeue");
        assert!(is_pass_due(0, 7, last, soon), "a wiped broker");
        assert!(!is_pass_due(9, 7, LastPass::new(start, 2), soon), "two foreign messages");
        let later = start + MAX_PASS_INTERVAL;
        assert!(is_pass_due(7, 7, last, later));
        assert!(!is_pass_due(0, 0, last, later), "nothing to look through");
    }

    #[test]
    fn a_long_queue_is_gone_through_when_it_is_worth_it() {
        let start = Instant::now();
        let last = LastPass::new(start, 0);
        assert!(is_pass_due(3_000, 2_999, last, start), "a pass of seconds");
        assert!(!is_pass_due(100_000, 99_999, last, start), "a requeue");
        assert!(is_pass_due(100_000, 93_750, last, start), "one of sixteen");
        assert!(!is_pass_due(100_000, 93_751, last, start));
        assert!(is_pass_due(99_999, 100_000, last, start), "one is missing");
    }

    #[test]
    fn a_message_too_many_waits_for_a_time_that_grows_with_the_queue_and_no_longer_than_an_hour() {
        let start = Instant::now();
        let far = start + Duration::from_hours(9);
        for (ready, wait) in [(3_001, 30_010), (100_000, 1_000_000), (10_000_000, 3_600_000)] {
            let wait = Duration::from_millis(wait);
            let mut last = LastPass::new(far, 0);
            let mut at = |now| last.is_pass_due(ready, ready - 1, MAX_PASS_INTERVAL, now);
            assert!(!at(start), "{ready}");
            assert!(!at(start + wait - Duration::from_millis(1)), "{ready}");
            assert!(at(start + wait), "{ready}");
        }
        let mut last = LastPass::new(far, 0);
        let mut at = |published, now| last.is_pass_due(4_000, published, MAX_PASS_INTERVAL, now);
        assert!(!at(3_999, start));
        assert!(!at(4_000, start + Duration::from_secs(39)), "the surplus is gone");
        assert!(!at(3_999, start + Duration::from_secs(41)), "and another has not waited");
    }

    #[test]
    fn after_failures_the_next_pass_waits_longer_and_longer_up_to_four_minutes() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        assert!(!backoff.is_active(now));
        for seconds in [15, 30, 60, 120, 240, 240] {
            backoff.record_failure(now);
            assert!(backoff.is_active(now + Duration::from_secs(seconds - 1)));
            assert!(!backoff.is_active(now + Duration::from_secs(seconds)));
        }
    }
}
