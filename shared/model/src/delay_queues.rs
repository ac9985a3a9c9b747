//! The choice of a delay queue: any waiting time from a fixed set of queues.
//!
//! A delay queue releases messages in order of arrival only, so each has one fixed length. A ticket with another
//! waiting time passes through several: the longest queue that fits into the remaining time, again and again, and at
//! last one that is a little too long, with an expiration of its own. That last delay may be prolonged by messages
//! ahead of it, but never beyond the queue's length, which is chosen so that this costs at most the slack.
//!
//! This module does not decide whether a ticket is due: the row and the database's clock decide that, and a ticket
//! that comes back early gets another delay.

use std::time::Duration;

/// The lengths of the delay queues in milliseconds: 1 s, 5 s, 15 s, 30 s, 1 min, 2 min, 5 min,
/// 15 min, 1 h, 6 h.
pub const DELAY_QUEUES_MS: [u64; 10] =
    [1_000, 5_000, 15_000, 30_000, 60_000, 120_000, 300_000, 900_000, 3_600_000, 21_600_000];

/// Being late by this much is never worth another delay.
const MIN_SLACK_MS: u64 = 1_000;

/// The next queue of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextQueue {
    /// The main queue, because it is due.
    Main,
    /// The delay queue of `delay_ms`.
    Delay {
        /// One of [`DELAY_QUEUES_MS`].
        delay_ms: u64,
        /// The message's own, shorter waiting time in milliseconds, if the queue is longer than the remaining time.
        expiration_ms: Option<u64>,
    },
}

/// Returns how late a ticket may come because of the delay queues: 10 % of the whole delay, at least one second.
pub fn slack(delay: Duration) -> Duration {
    Duration::from_millis(slack_ms(millis_up(delay)))
}

/// Chooses the next queue of a ticket that has to wait for `remaining` out of a whole `delay`.
///
/// The last delay ends between zero and [`slack`] after the ticket is due (plus the broker's own time), every other
/// one before. Fractions of a millisecond are rounded up, so that the last delay does not end too early.
pub fn next_queue(remaining: Duration, delay: Duration) -> NextQueue {
    let remaining_ms = millis_up(remaining);
    if remaining_ms == 0 {
        return NextQueue::Main;
    }
    let latest_ms = remaining_ms.saturating_add(slack_ms(millis_up(delay)));
    let at_least = DELAY_QUEUES_MS.into_iter().find(|&delay_ms| delay_ms >= remaining_ms);
    if let Some(delay_ms) = at_least.filter(|&delay_ms| delay_ms <= latest_ms) {
        let expiration_ms = (remaining_ms < delay_ms).then_some(remaining_ms);
        return NextQueue::Delay { delay_ms, expiration_ms };
    }
    // The slack of a second always admits the smallest queue, so one fits here.
    let fitting = DELAY_QUEUES_MS.into_iter().rev().find(|&delay_ms| delay_ms <= remaining_ms);
    NextQueue::Delay { delay_ms: fitting.unwrap_or(DELAY_QUEUES_MS[0]), expiration_ms: None }
}

fn slack_ms(delay_ms: u64) -> u64 {
    (delay_ms / 10).max(MIN_SLACK_MS)
}

fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn step(delay_ms: u64, expiration_ms: Option<u64>) -> NextQueue {
        NextQueue::Delay { delay_ms, expiration_ms }
    }

    #[test]
    fn the_delay_follows_from_the_remaining_time_and_the_slack() {
        let table = [
            (0, 30_000, NextQueue::Main),
            (1, 30_000, step(1_000, Some(1))),
            (1_000, 1_000, step(1_000, None)),
            (4_000, 4_000, step(5_000, Some(4_000))),
            (3_999, 3_999, step(1_000, None)),
            // A delay of 30 s with jitter: a longer queue exceeds its slack, a shorter one fits.
            (30_000, 30_000, step(30_000, None)),
            (28_000, 28_000, step(30_000, Some(28_000))),
            (33_000, 33_000, step(30_000, None)),
            (3_000, 33_000, step(5_000, Some(3_000))),
            // The slack counts from the whole delay, not from the remaining time.
            (50_000, 100_000, step(60_000, Some(50_000))),
            (50_000, 50_000, step(30_000, None)),
            (DAY_MS, DAY_MS, step(21_600_000, None)),
        ];
        for (remaining, delay, expected) in table {
            assert_eq!(next_queue(ms(remaining), ms(delay)), expected, "{remaining} of {delay}");
        }
    }

    #[test]
    fn a_fraction_of_a_millisecond_still_waits() {
        assert_eq!(next_queue(Duration::from_nanos(1), ms(0)), step(1_000, Some(1)));
        assert!(matches!(next_queue(Duration::MAX, Duration::MAX), NextQueue::Delay { .. }));
    }

    /// Walks a ticket through its delays; `held_up` (0 to 1000 permille) says how long messages ahead prolong each
    /// last delay. Returns when it arrived and after how many delays.
    fn walk(delay_ms: u64, held_up: u64) -> (u64, u64) {
        let (mut now_ms, mut delays) = (0, 0);
        loop {
            match next_queue(ms(delay_ms.saturating_sub(now_ms)), ms(delay_ms)) {
                NextQueue::Main => return (now_ms, delays),
                NextQueue::Delay { delay_ms, expiration_ms } => {
                    let earliest = expiration_ms.unwrap_or(delay_ms);
                    now_ms += earliest + (delay_ms - earliest) * held_up / 1_000;
                    delays += 1;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_ticket_arrives_within_the_slack_and_never_early(
            delay_ms in prop_oneof![1..10_000_u64, 1..400_000_u64, 1..(8 * DAY_MS)],
            held_up in 0..=1_000_u64,
        ) {
            let (arrived_ms, delays) = walk(delay_ms, held_up);
            prop_assert!(arrived_ms >= delay_ms, "{} ms early", delay_ms - arrived_ms);
            prop_assert!(ms(arrived_ms - delay_ms) <= slack(ms(delay_ms)));
            // For each delay queue at most (next delay / this delay) passes, and whole six hours.
            prop_assert!(delays <= 22 + delay_ms / 21_600_000, "{delays} delays for {delay_ms} ms");
        }

        #[test]
        fn a_delay_before_the_last_never_passes_the_due_instant(
            delay_ms in 1..(2 * DAY_MS), part in 1..=1_000_u64,
        ) {
            let remaining_ms = (delay_ms * part / 1_000).max(1);
            match next_queue(ms(remaining_ms), ms(delay_ms)) {
                NextQueue::Main => prop_assert!(false, "sent on while {remaining_ms} ms remain"),
                NextQueue::Delay { delay_ms, expiration_ms: None } => prop_assert!(delay_ms <= remaining_ms),
                NextQueue::Delay { delay_ms, expiration_ms: Some(own_ms) } => {
                    prop_assert_eq!(own_ms, remaining_ms);
                    prop_assert!(own_ms < delay_ms);
                }
            }
        }
    }

    #[test]
    fn delays_from_seconds_to_hours_take_few_hops_on_average() {
        let delays: u64 = (1..=3_600).map(|delay_s| walk(delay_s * 1_000, 0).1).sum();
        assert!(delays <= 3_600 * 4, "{} delays on average", delays / 3_600);
    }
}
