//! A monotonic clock, which tests can replace.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Measures elapsed time by a clock that cannot be set: the host's monotonic one, or a test's.
#[derive(Clone)]
pub struct Stopwatch(Arc<dyn Fn() -> Instant + Send + Sync>);

impl Stopwatch {
    /// Reads `clock`.
    pub fn new(clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    pub(crate) fn read(&self) -> Instant {
        (self.0)()
    }
}

impl fmt::Debug for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopwatch")
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self::new(Instant::now)
    }
}
