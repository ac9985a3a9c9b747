//! Moments on this host. The time for which the host was suspended lies between them like any other.
//!
//! The clock of [`tokio::time::Instant`] stands still on Linux while the host is suspended, but the other side of a lock goes
//! on. So leases are judged by these; an `Instant` only says for how long to sleep.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// On Linux the monotonic clock stands still with a suspended host, and this one does not.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A moment, as the time since the clock's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(CLOCK);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(time.tv_sec.unsigned_abs(), nanos))
    }

    /// The time from `earlier` to this; zero if that is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_at_least_as_fast_as_the_one_that_stands_still() {
        let (moment, instant) = (Moment::now(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let passed = instant.elapsed();
        assert!(Moment::now().since(moment) >= passed);
        assert_eq!(moment.since(moment + passed), Duration::ZERO);
    }
}
