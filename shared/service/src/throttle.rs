//! A complaint is said at once, and then once a minute however often there is reason for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Remembers when something was last said.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Option<Instant>>);

impl Throttle {
    /// Whether to say it now; if so, the next minute is silent.
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
        let throttle = Throttle::default();
        let said = (0..=120)
            .filter(|&second| throttle.permits(start + Duration::from_secs(second)))
            .collect::<Vec<_>>();
        assert_eq!(said, [0, 60, 120]);
    }
}
