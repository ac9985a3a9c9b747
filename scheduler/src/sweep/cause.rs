//! Whether there is cause for a pass over the failed queue. Pure.
//!
//! A pass takes and puts back every message, so it is made only when the numbers do not fit: each
//! failed row whose ticket was published has one message, and beside those there are as many
//! messages as the last pass kept without a row. Requeues, discards, hand moves, purges and parking
//! by the broker all change one number and not the other. Two of them can cancel each other out,
//! so a queue that is not empty is also looked through once an hour.

use std::time::Duration;

use tokio::time::Instant;

/// Between two passes over a queue that is not empty, at most.
pub(crate) const AT_LEAST_EVERY: Duration = Duration::from_hours(1);

/// What is remembered between passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastPass {
    /// When it ended, or when this process began.
    pub(crate) at: Instant,
    /// How many more messages there are than published failed rows when all is well.
    pub(crate) surplus: i64,
    /// Whether it saw the whole queue.
    pub(crate) complete: bool,
}

/// Whether to make a pass now. `ready` counts messages, `published` failed rows whose ticket is in
/// the queue by the rows; after the time `every` a queue that is not empty is cause enough.
pub(crate) fn is_cause(
    ready: u64,
    published: u64,
    last: LastPass,
    every: Duration,
    now: Instant,
) -> bool {
    let surplus = ready as i64 - published as i64;
    let long_ago = now.saturating_duration_since(last.at) >= every;
    surplus != last.surplus || (long_ago && ready > 0)
}

/// Whether a mark that was carried out, and is not known to be gone, is cause for another pass: at once after a pass
/// that broke off or another process's, but after one that ended without having seen a queue that is too long
/// only when a pass is due anyway.
pub(crate) fn is_cause_once_more(last: LastPass, every: Duration, now: Instant) -> bool {
    last.complete || now.saturating_duration_since(last.at) >= every
}

/// Passes that broke off one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Failures {
    count: u32,
    until: Option<Instant>,
}

impl Failures {
    /// After the first; twice as long after each further one.
    const FIRST: Duration = Duration::from_secs(15);
    /// Doublings, to four minutes.
    const DOUBLINGS: u32 = 4;

    /// Another pass broke off.
    pub(crate) fn one_more(&mut self, now: Instant) {
        self.until = Some(now + Self::FIRST * 2_u32.pow(self.count));
        self.count = (self.count + 1).min(Self::DOUBLINGS);
    }

    /// Whether the next pass has to wait still.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_made_when_numbers_do_not_fit_and_once_an_hour() {
        let start = Instant::now();
        let last = LastPass { at: start, surplus: 0, complete: true };
        let soon = start + Duration::from_mins(1);
        let is_cause =
            |ready, published, last, now| is_cause(ready, published, last, AT_LEAST_EVERY, now);
        assert!(!is_cause(7, 7, last, soon));
        assert!(is_cause(8, 7, last, soon), "a copy by hand");
        assert!(is_cause(7, 6, last, soon), "a requeue");
        assert!(is_cause(0, 7, last, soon), "a wiped broker");
        assert!(!is_cause(9, 7, LastPass { surplus: 2, ..last }, soon), "two foreign messages");
        let later = start + AT_LEAST_EVERY;
        assert!(is_cause(7, 7, last, later));
        assert!(!is_cause(0, 0, last, later), "nothing to look through");
    }

    #[test]
    fn of_a_queue_too_long_for_one_pass_none_is_made_for_what_is_never_known() {
        let start = Instant::now();
        let whole = LastPass { at: start, surplus: 0, complete: true };
        let part = LastPass { complete: false, ..whole };
        let again = |last, after| is_cause_once_more(last, AT_LEAST_EVERY, start + after);
        assert!(again(whole, Duration::ZERO), "the pass that took it was another's, or broke off");
        assert!(!again(part, Duration::from_mins(59)));
        assert!(again(part, AT_LEAST_EVERY));
    }

    #[test]
    fn after_failures_the_next_pass_waits_longer_and_longer_up_to_four_minutes() {
        let mut failures = Failures::default();
        let now = Instant::now();
        assert!(!failures.rests(now));
        for seconds in [15, 30, 60, 120, 240, 240] {
            failures.one_more(now);
            assert!(failures.rests(now + Duration::from_secs(seconds - 1)));
            assert!(!failures.rests(now + Duration::from_secs(seconds)));
        }
    }
}
