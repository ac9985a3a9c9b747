//! When a notification that was not accepted is tried again, and when it is given up.

use std::time::Duration;

/// How long a notification is tried, from its first try on.
pub const GIVE_UP_AFTER: Duration = Duration::from_hours(72);
/// The longest wait that a receiver's `Retry-After` causes.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// Failures in a row after which a channel is regarded as failing.
pub const FAILURES_OF_A_FAILING_CHANNEL: i32 = 3;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_hours(1);
/// The shortest wait after an answer that says that the same request cannot succeed.
const AFTER_REFUSAL: Duration = Duration::from_mins(5);

/// Returns the wait after this many failures, before jitter: 10 s, then twice as long each time, up to an hour.
pub fn backoff(failures: i32) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1).clamp(0, 20)).unwrap_or(0);
    FIRST.saturating_mul(1 << doublings).min(LONGEST)
}

/// Returns the wait before a notification's next try. `jitter` is between 0 and 1, and changes the wait by up to a quarter to
/// either side; `after` is what the receiver said.
pub fn retry_in(attempts: i32, is_refused: bool, after: Option<Duration>, jitter: f64) -> Duration {
    let least = if is_refused { AFTER_REFUSAL } else { Duration::ZERO };
    let wait = backoff(attempts).max(least).mul_f64(0.75 + 0.5 * jitter.clamp(0.0, 1.0));
    wait.max(after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        let waits: Vec<u64> = (0..12).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [10, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]);
        assert_eq!(backoff(i32::MAX), LONGEST);
    }

    #[test]
    fn jitter_refusals_and_the_receivers_word_change_the_wait() {
        let wait = |refused, after, jitter| retry_in(1, refused, after, jitter).as_millis();
        assert_eq!((wait(false, None, 0.0), wait(false, None, 1.0)), (7_500, 12_500));
        assert_eq!(wait(true, None, 0.5), 300_000);
        assert_eq!(wait(false, Some(Duration::from_mins(2)), 0.5), 120_000);
        assert_eq!(wait(false, Some(Duration::from_secs(2)), 0.5), 10_000);
        assert_eq!(wait(false, Some(Duration::from_hours(9)), 0.5), 3_600_000);
    }
}
