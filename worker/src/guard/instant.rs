//! Instants of the host's monotonic clock, comparable between processes.
//!
//! A lease's end must mean the same moment to the worker and to the guard, and neither a wall clock (it can be
//! set) nor [`std::time::Instant`] (it cannot be sent) serves. `CLOCK_MONOTONIC` counts from the boot for every
//! process of a host alike. It stops while the host is suspended, so a host that sleeps past a lease is the one
//! case in which a task outlives it.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// An instant of the host's `CLOCK_MONOTONIC`, in nanoseconds since its start.
///
/// Valid on one host and one boot only; never store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostInstant(u64);

impl HostInstant {
    /// Returns the present instant.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        Self(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }

    /// Creates the instant `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for HostInstant {
    type Output = Self;

    /// Adds a time; saturates at the end of the clock, 584 years after the boot.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}
