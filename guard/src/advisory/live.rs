//! A session that holds the locks, and for how long they are certain.

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::session::Session;
use super::times;
use crate::lease::Lease;
use crate::moment::Moment;

/// A session that holds the locks.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: Session,
    pub(super) number: u64,
    pub(super) lease: Lease,
    pub(super) held: usize,
    pub(super) lost: CancellationToken,
    /// Fires it also when the actor ends in any other way.
    _lost_on_drop: DropGuard,
    /// Has a token for each lock whose work has not ended.
    pub(super) works: TaskTracker,
}

impl Live {
    pub(super) fn new(session: Session, number: u64, sent_at: Moment) -> Self {
        let lost = CancellationToken::new();
        Self {
            session,
            number,
            lease: Lease::new(sent_at, times::CERTAIN_FOR),
            held: 0,
            _lost_on_drop: lost.clone().drop_guard(),
            lost,
            works: TaskTracker::new(),
        }
    }

    /// Whether its locks count as lost.
    pub(super) fn is_expired(&self) -> bool {
        self.held > 0 && self.lease.is_over()
    }

    pub(super) fn next_ping(&self) -> Instant {
        let interval = if self.held > 0 { times::PING_INTERVAL } else { times::IDLE_PING_INTERVAL };
        self.lease.after(interval)
    }

    /// Until when a statement that is sent now has to be answered.
    pub(super) fn deadline(&self) -> Instant {
        let deadline = Instant::now() + times::STATEMENT_TIMEOUT;
        if self.held > 0 { deadline.min(self.lease.end()) } else { deadline }
    }
}
