//! Throttles repeated log lines: at once, and then once a minute.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines of the same kind.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Remembers when a kind of line was last logged. Threads may share it.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<Option<Instant>>);

impl LogThrottle {
    /// Returns whether to log the line at `now`; if so, no further one is permitted for a minute.
    pub fn permits(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let permitted = last.is_none_or(|last| now.saturating_duration_since(last) >= LOG_INTERVAL);
        if permitted {
            *last = Some(now);
        }
        permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_said_at_once_and_then_once_a_minute() {
        let start = Instant::now();
        let throttle = LogThrottle::default();
        let logged = (0..=120)
            .filter(|&second| throttle.permits(start + Duration::from_secs(second)))
            .collect::<Vec<_>>();
        assert_eq!(logged, [0, 60, 120]);
    }
}
