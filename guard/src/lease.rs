//! How long a lock is certain, by this process's monotonic clock.
//!
//! A lock that lives elsewhere is certain for a fixed time after each proof of it. The time counts from before the proof was
//! requested: by the other side's clock it began later. No two clocks are compared, only how long they take, and the
//! margins are more than two working clocks differ by within a lease. The clock does not count the time for which the host was suspended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time for which a lock is certain. Clones share it: who renews it, and who holds the lock.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    certain_for: Duration,
    proven_at: Arc<Mutex<Instant>>,
}

impl Lease {
    /// A lock that was proven by a request which was sent at `sent_at`, and that is certain for `certain_for`.
    pub(crate) fn new(sent_at: Instant, certain_for: Duration) -> Self {
        Self { certain_for, proven_at: Arc::new(Mutex::new(sent_at)) }
    }

    /// Prolongs it by the answer to a request that was sent at `sent_at`.
    pub(crate) fn renew(&self, sent_at: Instant) {
        let mut proven_at = self.proven_at.lock().unwrap_or_else(PoisonError::into_inner);
        *proven_at = proven_at.max(sent_at);
    }

    /// When a part of it has passed.
    pub(crate) fn after(&self, part: Duration) -> Instant {
        *self.proven_at.lock().unwrap_or_else(PoisonError::into_inner) + part
    }

    /// When it ends unless it is renewed.
    pub(crate) fn end(&self) -> Instant {
        self.after(self.certain_for)
    }

    /// Whether it has ended. A process that was frozen finds this before anybody has signalled it.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_the_request_and_never_goes_back() {
        let sent = Instant::now();
        let second = Duration::from_secs(1);
        let lease = Lease::new(sent + second, 6 * second);
        let held = lease.clone();
        assert_eq!(held.end(), sent + 7 * second);
        lease.renew(sent);
        assert_eq!(held.end(), sent + 7 * second, "an older answer that comes late");
        lease.renew(sent + 2 * second);
        assert_eq!((held.end(), held.after(second)), (sent + 8 * second, sent + 3 * second));
        assert!(!held.is_over());
        assert!(Lease::new(sent, Duration::ZERO).is_over());
    }
}
