//! How long a lock is certain, by this host's own clock.
//!
//! A lock that lives elsewhere is certain for a fixed time after each proof of it. The time counts from before the proof was
//! requested: by the other side's clock it began later. No two clocks are compared, only how long they take, and the
//! margins are more than two working clocks differ by within a lease. Time for which the host was suspended counts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::moment::Moment;

/// The time for which a lock is certain. Clones share it: who renews it, and who holds the lock.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    certain_for: Duration,
    proven_at: Arc<Mutex<Moment>>,
}

impl Lease {
    /// A lock that was proven by a request which was sent at `sent_at`, and that is certain for `certain_for`.
    pub(crate) fn new(sent_at: Moment, certain_for: Duration) -> Self {
        Self { certain_for, proven_at: Arc::new(Mutex::new(sent_at)) }
    }

    /// Prolongs it by the answer to a request that was sent at `sent_at`.
    pub(crate) fn renew(&self, sent_at: Moment) {
        let mut proven_at = self.proven_at.lock().unwrap_or_else(PoisonError::into_inner);
        *proven_at = sent_at.max(*proven_at);
    }

    fn moment_after(&self, part: Duration) -> Moment {
        *self.proven_at.lock().unwrap_or_else(PoisonError::into_inner) + part
    }

    /// Until when to sleep for a part of it to pass, unless the host is suspended meanwhile.
    pub(crate) fn after(&self, part: Duration) -> Instant {
        Instant::now() + self.moment_after(part).since(Moment::now())
    }

    /// When it ends unless it is renewed, in the same way.
    pub(crate) fn end(&self) -> Instant {
        self.after(self.certain_for)
    }

    /// Whether it has ended. A process that was frozen, or whose host was suspended, finds this before anybody has signalled it.
    pub(crate) fn is_over(&self) -> bool {
        Moment::now() >= self.moment_after(self.certain_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_the_request_and_never_goes_back() {
        let sent = Moment::now();
        let second = Duration::from_secs(1);
        let lease = Lease::new(sent + second, 6 * second);
        let held = lease.clone();
        let end = |lease: &Lease| lease.moment_after(lease.certain_for);
        assert_eq!(end(&held), sent + 7 * second);
        lease.renew(sent);
        assert_eq!(end(&held), sent + 7 * second, "an older answer that comes late");
        lease.renew(sent + 2 * second);
        assert_eq!((end(&held), held.moment_after(second)), (sent + 8 * second, sent + 3 * second));
        assert!(!held.is_over() && held.end() > Instant::now() + 6 * second);
        assert!(Lease::new(sent, Duration::ZERO).is_over());
        assert!(Lease::new(sent, Duration::ZERO).end() <= Instant::now());
    }
}
