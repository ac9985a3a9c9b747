//! Decides which log lines an outage gets: its beginning, a line a minute, its end.
//!
//! A broker that is unreachable for ten minutes makes about a dozen log lines, however often it is tried.

use std::time::{Duration, Instant};

use sexton_model::log_throttle::LogThrottle;

/// Remembers whether the broker is down and when that was last logged.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    since: Instant,
    throttle: LogThrottle,
}

/// The log line for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogDecision {
    /// The first failure after a success.
    First,
    /// It has been down for this long.
    Still(Duration),
    /// No line, because the last one is less than a minute old.
    Nothing,
}

impl Outage {
    /// Records a failure.
    pub(crate) fn record_failure(&mut self, now: Instant) -> LogDecision {
        match &mut self.down {
            None => {
                let down = self.down.insert(Down { since: now, throttle: LogThrottle::default() });
                down.throttle.permits(now);
                LogDecision::First
            }
            Some(down) if down.throttle.permits(now) => {
                LogDecision::Still(now.duration_since(down.since))
            }
            Some(_) => LogDecision::Nothing,
        }
    }

    /// Records a success; returns how long the outage lasted, if there was one.
    pub(crate) fn record_recovery(&mut self, now: Instant) -> Option<Duration> {
        self.down.take().map(|down| now.duration_since(down.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_then_once_a_minute_and_when_it_is_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut outage = Outage::default();
        assert_eq!(outage.record_recovery(at(0)), None);
        assert_eq!(outage.record_failure(at(0)), LogDecision::First);
        let lines =
            (1..=600).filter(|&s| outage.record_failure(at(s)) != LogDecision::Nothing).count();
        assert_eq!(lines, 10);
        assert_eq!(outage.record_failure(at(660)), LogDecision::Still(Duration::from_mins(11)));
        assert_eq!(outage.record_recovery(at(661)), Some(Duration::from_secs(661)));
        assert_eq!(outage.record_failure(at(662)), LogDecision::First);
    }
}
