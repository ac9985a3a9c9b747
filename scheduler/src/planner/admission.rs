//! Admission: lets waiters go whose jobs have become free.
//!
//! A part of the planner's round. Nobody tells when an attempt ends (a notification for each settlement
//! would cost more than all of them save), so whoever looks, looks often, and only while somebody waits:
//! every 250 ms, or less often where the look itself takes long, so that it never takes more than a
//! twentieth of the time. A waiter is therefore let go at most so long after its job became free, and
//! is then published like a claim. While nobody waits, other replicas' waiters are found with the
//! planner's poll, after 5 s at most; the replica that claimed one looks often from then on, and a
//! person who asks for an execution wakes every planner.
//!
//! **Crashes.** Before the commit: the waiters wait still, for any planner. After it: rows that owe
//! their ticket, for any relay.

use std::time::Duration;

use sexton_service::fault;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, waiters};
use tokio::time::Instant;

use crate::background_loop::{LoopError, QUERY_TIMEOUT};
use crate::publish::dispatch::Dispatch;

/// Jobs that one round admits a waiter of.
const MAX_BATCH_JOBS: i64 = 500;
/// Between two looks while somebody waits.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// So many times as long as a look takes nobody looks, at least.
const MIN_IDLE_RATIO: u32 = 20;

/// The part of a planner that admits.
#[derive(Debug)]
pub(crate) struct Admissions {
    store: Store,
    dispatch: Dispatch,
}

/// What a round found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Round {
    /// Waiters that were let go.
    pub(crate) admitted: usize,
    /// Jobs that had waiters when it looked.
    jobs: u64,
    /// How long it looked.
    elapsed: Duration,
}

impl Round {
    /// Whether anybody waited.
    pub(crate) const fn has_waiters(self) -> bool {
        self.jobs > 0
    }

    /// The longest that the planner may sleep. `more`: it has made waiters since.
    pub(crate) fn pause(self, more: bool) -> Duration {
        if self.jobs == 0 && !more {
            Duration::MAX
        } else {
            POLL_INTERVAL.max(self.elapsed * MIN_IDLE_RATIO)
        }
    }
}

impl Admissions {
    pub(crate) const fn new(store: Store, dispatch: Dispatch) -> Self {
        Self { store, dispatch }
    }

    /// Looks once, and lets go what may go.
    pub(crate) async fn admit_waiters(&self, now: Now) -> Result<Round, LoopError> {
        let started = Instant::now();
        let waiting =
            with_timeout(QUERY_TIMEOUT, waiters::find_waiting(&self.store, MAX_BATCH_JOBS)).await?;
        let found = Round { admitted: 0, jobs: waiting.jobs, elapsed: started.elapsed() };
        if waiting.free.is_empty() {
            return Ok(found);
        }
        let admission =
            with_timeout(QUERY_TIMEOUT, waiters::admit(&self.store, &waiting.free, now)).await?;
        let admitted = admission.admitted();
        if admitted > 0 {
            fault::point("scheduler.admitting");
        }
        let tickets = with_timeout(QUERY_TIMEOUT, admission.commit()).await?;
        if admitted > 0 {
            fault::point("scheduler.admitted");
            tracing::debug!(executions.admitted = admitted, "{admitted} waited for their jobs");
        }
        // Refused, they are left to the relay.
        self.dispatch.offer(tickets);
        Ok(Round { admitted, ..found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_looked_at_often_but_never_for_more_than_a_twentieth_of_the_time() {
        let ms = Duration::from_millis;
        let found = |jobs, elapsed| Round { admitted: 0, jobs, elapsed };
        assert_eq!(found(0, ms(3)).pause(false), Duration::MAX);
        assert_eq!(found(0, ms(3)).pause(true), ms(250));
        assert_eq!(found(2, ms(3)).pause(false), ms(250));
        assert_eq!(found(2, ms(100)).pause(false), ms(2_000));
    }
}
