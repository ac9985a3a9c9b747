//! Pauses between attempts to get back to the broker.
//!
//! The only file that uses the crate `backoff`, which is no longer maintained; its one default that
//! matters here, giving up after 15 minutes, is switched off.

use std::time::Duration;

use backoff::backoff::Backoff as _;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};

/// The shortest pause, before jitter.
const INITIAL_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause, before jitter (a half more at most): a broker that answers again has its
/// consumers back within five seconds.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// An endless series of growing pauses, with jitter so that replicas do not reconnect in step.
#[derive(Debug)]
pub(crate) struct ReconnectPauses {
    series: ExponentialBackoff,
}

impl ReconnectPauses {
    pub(crate) fn new() -> Self {
        let series = ExponentialBackoffBuilder::new()
            .with_initial_interval(INITIAL_PAUSE)
            .with_max_interval(MAX_PAUSE)
            .with_multiplier(2.0)
            .with_randomization_factor(0.5)
            .with_max_elapsed_time(None)
            .build();
        Self { series }
    }

    /// Returns the next pause.
    pub(crate) fn next(&mut self) -> Duration {
        self.series.next_backoff().unwrap_or(MAX_PAUSE)
    }

    /// Starts over, after a success that lasted.
    pub(crate) fn reset(&mut self) {
        self.series.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_never_end() {
        let mut pauses = ReconnectPauses::new();
        let longest_with_jitter = MAX_PAUSE.mul_f64(1.5) + Duration::from_millis(1);
        let first = pauses.next();
        assert!(
            first >= INITIAL_PAUSE / 2
                && first <= INITIAL_PAUSE.mul_f64(1.5) + Duration::from_millis(1)
        );
        for _ in 0..100_000 {
            assert!(pauses.next() <= longest_with_jitter);
        }
        assert!(pauses.next() >= MAX_PAUSE / 2);
        pauses.reset();
        assert!(pauses.next() <= INITIAL_PAUSE * 2);
    }
}
