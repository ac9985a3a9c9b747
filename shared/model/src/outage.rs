//! Decides which log lines an outage gets: its beginning, a line a minute while it lasts, and its end.
//!
//! However often a server is tried, an outage of ten minutes gets about a dozen lines. The interval lasts across
//! outages: a server that comes and goes each second is logged once a minute, too.

use std::time::{Duration, Instant};

use crate::log_throttle::LogThrottle;

/// Remembers whether something is down, since when, and when that was last logged.
#[derive(Debug, Default)]
pub struct Outage {
    since: Option<Instant>,
    failures: u64,
    is_logged: bool,
    throttle: LogThrottle,
}

/// The log line for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureLine {
    /// The outage began.
    Began,
    /// The outage continues.
    Continues {
        /// Since the first failure.
        lasting: Duration,
        /// Failures so far.
        failures: u64,
    },
}

/// An outage that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastOutage {
    /// From the first failure to the recovery.
    pub lasted: Duration,
    /// Failures in all.
    pub failures: u64,
    /// Whether a failure was logged, so that the recovery is worth a line.
    pub is_logged: bool,
}

impl Outage {
    /// Records a failed try; returns the line to log, if one is due.
    pub fn record_failure(&mut self, now: Instant) -> Option<FailureLine> {
        let since = *self.since.get_or_insert(now);
        self.failures += 1;
        if !self.throttle.permits(now) {
            return None;
        }
        self.is_logged = true;
        Some(match self.failures {
            1 => FailureLine::Began,
            failures => {
                FailureLine::Continues { lasting: now.saturating_duration_since(since), failures }
            }
        })
    }

    /// Records a successful try; returns the outage that it ends, if there was one.
    pub fn record_recovery(&mut self, now: Instant) -> Option<PastOutage> {
        let since = self.since.take()?;
        Some(PastOutage {
            lasted: now.saturating_duration_since(since),
            failures: std::mem::take(&mut self.failures),
            is_logged: std::mem::take(&mut self.is_logged),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn an_outage_is_logged_when_it_begins_and_then_once_a_minute_until_it_is_over() {
        let start = Instant::now();
        let mut outage = Outage::default();
        assert_eq!(outage.record_recovery(start), None);
        let lines: Vec<_> = (0..=130)
            .filter_map(|second| {
                outage.record_failure(start + seconds(second)).map(|line| (second, line))
            })
            .collect();
        let continues =
            |lasting, failures| FailureLine::Continues { lasting: seconds(lasting), failures };
        assert_eq!(
            lines,
            [(0, FailureLine::Began), (60, continues(60, 61)), (120, continues(120, 121))]
        );
        let past = PastOutage { lasted: seconds(131), failures: 131, is_logged: true };
        assert_eq!(outage.record_recovery(start + seconds(131)), Some(past));
        assert_eq!(outage.record_recovery(start + seconds(132)), None);
    }

    #[test]
    fn a_server_that_comes_and_goes_is_logged_once_a_minute() {
        let start = Instant::now();
        let mut outage = Outage::default();
        let mut lines = 0;
        for second in 0..600 {
            lines += usize::from(outage.record_failure(start + seconds(second)).is_some());
            let past = outage.record_recovery(start + seconds(second)).unwrap();
            lines += usize::from(past.is_logged);
        }
        assert_eq!(lines, 20);
    }

    #[test]
    fn a_second_outage_within_the_minute_is_logged_when_the_minute_is_over() {
        let start = Instant::now();
        let mut outage = Outage::default();
        assert_eq!(outage.record_failure(start), Some(FailureLine::Began));
        assert!(outage.record_recovery(start + seconds(1)).is_some());
        assert_eq!(outage.record_failure(start + seconds(30)), None);
        let line = outage.record_failure(start + seconds(60));
        assert_eq!(line, Some(FailureLine::Continues { lasting: seconds(30), failures: 2 }));
        assert!(outage.record_recovery(start + seconds(61)).unwrap().is_logged);
    }
}
