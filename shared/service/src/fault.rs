//! Fault points: places between two effects at which a test kills the process.
//!
//! [`POINTS`] lists them. Without the feature `fault-points` (which only the test build turns on) [`point`] does
//! nothing and `FAULT_POINT` is ignored. With it, that environment variable names the place, as `worker.opened` or,
//! to let it pass twice first, `worker.opened:3`. The process then kills itself with SIGKILL, so that no clean-up
//! runs. With `FAULT_ACTION=stop` it stops itself with SIGSTOP instead, and continues at SIGCONT.
//!
//! A point is passed only with an object of its step: an execution, a message, a job. A round that found nothing
//! passes none, so a process that dies at a point dies in the middle of something.

mod points;

#[cfg(feature = "fault-points")]
mod armed;

use std::time::Duration;

pub use points::{POINTS, Point, Reruns};

/// Dies here if a test demands it.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub const fn point(_name: &str) {}

/// Dies here if a test demands it.
///
/// # Panics
///
/// If the name is not in [`POINTS`].
#[cfg(feature = "fault-points")]
pub fn point(name: &str) {
    armed::point(name);
}

/// Reads `FAULT_POINT`; for the beginning of a program.
///
/// # Errors
///
/// An unknown point: a message with the known ones. Never without the feature.
#[cfg(not(feature = "fault-points"))]
pub const fn arm() -> Result<(), String> {
    Ok(())
}

/// Reads `FAULT_POINT`; for the beginning of a program.
///
/// # Errors
///
/// An unknown point: a message with the known ones. Never without the feature.
#[cfg(feature = "fault-points")]
pub fn arm() -> Result<(), String> {
    armed::arm()
}

/// Returns `usual`, a time that is too long for tests.
#[cfg(not(feature = "fault-points"))]
pub const fn test_override(usual: Duration, _variable: &str) -> Duration {
    usual
}

/// Returns `usual`, a time that is too long for tests, or the milliseconds in the environment.
#[cfg(feature = "fault-points")]
pub fn test_override(usual: Duration, variable: &str) -> Duration {
    let milliseconds = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    milliseconds.map_or(usual, Duration::from_millis)
}
