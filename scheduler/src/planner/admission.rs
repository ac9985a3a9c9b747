//! Admits waiters whose jobs have become free.
//!
//! It is a part of the planner's round. Nothing notifies the planner when an attempt ends (a notification for
//! each settlement would cost more than it saves), so the planner polls, and only while there are waiters:
//! every 250 ms, or less often if the query itself is slow, so that it takes at most a twentieth of the time. A
//! waiter is therefore admitted at most that long after its job became free, and is then published like a
//! claim. Without waiters of its own, a replica finds those of others with the planner's poll, after 5 s at
//! most; the replica that claimed one polls often from then on, and a manual trigger or an enqueue wakes every planner.
//! An execution that is enqueued for later waits from then on, and the planner sleeps no longer than until then.
//!
//! **Crashes.** Before the commit: the waiters still wait, for any planner. After it: rows with unpublished
//! tickets, for any relay.

use std::time::Duration;

use sexton_service::fault;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, waiters};
use tokio::time::Instant;

use crate::background_loop::{LoopError, QUERY_TIMEOUT};
use crate::publish::dispatch::Dispatch;

/// The most jobs of which one round admits a waiter.
const MAX_BATCH_JOBS: i64 = 500;
/// Pause between two queries while there are waiters.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The pause is at least this many times as long as the query took.
const MIN_IDLE_RATIO: u32 = 20;

/// The part of a planner that admits waiters.
#[derive(Debug)]
pub(crate) struct Admissions {
    store: Store,
    dispatch: Dispatch,
}

/// What a round found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Round {
    /// Waiters that were admitted.
    pub(crate) admitted: usize,
    /// Jobs with waiters at the time of the query.
    jobs: u64,
    /// How long the query took.
    elapsed: Duration,
    /// How long until the next execution that was enqueued for later waits.
    next: Option<Duration>,
}

impl Round {
    /// Returns whether there were waiters.
    pub(crate) const fn has_waiters(self) -> bool {
        self.jobs > 0
    }

    /// Returns the longest that the planner may sleep. `more`: the planner has made waiters since.
    pub(crate) fn pause(self, more: bool) -> Duration {
        let poll = POLL_INTERVAL.max(self.elapsed * MIN_IDLE_RATIO);
        if self.jobs > 0 || more {
            return poll;
        }
        self.next.map_or(Duration::MAX, |next| next.max(self.elapsed * MIN_IDLE_RATIO))
    }
}

impl Admissions {
    pub(crate) const fn new(store: Store, dispatch: Dispatch) -> Self {
        Self { store, dispatch }
    }

    /// Reads the waiters once, and admits those whose job is free.
    pub(crate) async fn admit_waiters(&self, now: Now) -> Result<Round, LoopError> {
        let started = Instant::now();
        let waiting =
            with_timeout(QUERY_TIMEOUT, waiters::find_waiting(&self.store, MAX_BATCH_JOBS, now))
                .await?;
        let round = Round {
            admitted: 0,
            jobs: waiting.jobs,
            elapsed: started.elapsed(),
            next: waiting.next,
        };
        if waiting.free.is_empty() {
            return Ok(round);
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
        // Tickets that the publishing task refuses are left to the relay.
        self.dispatch.offer(tickets);
        Ok(Round { admitted, ..round })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_looked_at_often_but_never_for_more_than_a_twentieth_of_the_time() {
        let ms = Duration::from_millis;
        let round = |jobs, elapsed| Round { admitted: 0, jobs, elapsed, next: None };
        assert_eq!(round(0, ms(3)).pause(false), Duration::MAX);
        assert_eq!(round(0, ms(3)).pause(true), ms(250));
        assert_eq!(round(2, ms(3)).pause(false), ms(250));
        assert_eq!(round(2, ms(100)).pause(false), ms(2_000));
        let later = |elapsed, next| Round { next: Some(next), ..round(0, elapsed) };
        assert_eq!(later(ms(3), ms(700)).pause(false), ms(700));
        assert_eq!(later(ms(3), ms(7)).pause(false), ms(60));
    }
}
