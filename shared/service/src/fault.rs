//! Fault points: places between two effects at which a test lets the process die.
//!
//! [`POINTS`] lists them. Without the feature `fault-points` (which only the test build turns on)
//! [`point`] is nothing and `FAULT_POINT` means nothing. With it, that environment variable names the
//! place, as `worker.opened` or, to let it pass twice first, `worker.opened:3`. The process then
//! kills itself with SIGKILL, so that nothing gets the chance to tidy up. With `FAULT_ACTION=stop` it
//! stops itself with SIGSTOP instead, and continues at SIGCONT.
//!
//! A point is passed only with something inside the step that it is about: an execution, a message, a
//! job. A round that found nothing passes none, so a process that dies at a point dies in the middle of
//! something.

mod points;

#[cfg(feature = "fault-points")]
mod armed;

use std::time::Duration;

pub use points::{POINTS, Point, Reruns};

/// Dies here if a test says so.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub const fn point(_name: &str) {}

/// Dies here if a test says so.
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
/// There is no such point: what to say, with those there are. Never without the feature.
#[cfg(not(feature = "fault-points"))]
pub const fn arm() -> Result<(), String> {
    Ok(())
}

/// Reads `FAULT_POINT`; for the beginning of a program.
///
/// # Errors
///
/// There is no such point: what to say, with those there are. Never without the feature.
#[cfg(feature = "fault-points")]
pub fn arm() -> Result<(), String> {
    armed::arm()
}

/// A time that no test can wait for: `usual`.
#[cfg(not(feature = "fault-points"))]
pub const fn test_override(usual: Duration, _variable: &str) -> Duration {
    usual
}

/// A time that no test can wait for: `usual`, or the milliseconds that the environment says.
#[cfg(feature = "fault-points")]
pub fn test_override(usual: Duration, variable: &str) -> Duration {
    let said = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    said.map_or(usual, Duration::from_millis)
}
