//! What is said about an outage: its beginning, a line a minute, its end.
//!
//! A broker that is away for ten minutes makes about a dozen log lines, however often it is tried.

use std::time::{Duration, Instant};

use sexton_model::log_throttle::LogThrottle;

/// Remembers whether something is down and when that was last said.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    since: Instant,
    throttle: LogThrottle,
}

/// Whether a failure is worth a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogDecision {
    /// The first failure after all was well.
    First,
    /// It has been down for so long.
    Still(Duration),
    /// It was said less than a minute ago.
    Nothing,
}

impl Outage {
    /// Notes a failure.
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

    /// Notes a success; says how long it was down, if it was.
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
