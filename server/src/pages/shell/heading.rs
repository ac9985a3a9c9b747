//! What every page shows of the present: the database's clock, and how many requests wait for approval.
//!
//! A page that is opened reads both. Open pages that fetch themselves again after a change share one reading, also where they are
//! different pages: five hundred cost the database what one costs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_store::approvals::WaitingRequests;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::problem::Problem;

/// Age from which a reading is shared no more, although nothing that pages follow has changed.
const MAX_AGE: Duration = Duration::from_millis(250);

/// The last reading for open pages. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedHeading(Arc<Mutex<Option<Arc<Reading>>>>);

#[derive(Debug)]
struct Reading {
    /// The number of changes that the database was known to have when it was begun.
    changes: u64,
    begun: Instant,
    answer: OnceCell<Result<WaitingRequests, Problem>>,
}

impl Reading {
    /// Returns whether a page takes it at `now` that fetches itself after so many changes. One that was begun before the last of them might
    /// lack it, and one that failed is only for those who waited for it.
    fn is_for(&self, changes: u64, now: Instant) -> bool {
        self.changes == changes
            && match self.answer.get() {
                None => true,
                Some(Ok(_)) => now.duration_since(self.begun) < MAX_AGE,
                Some(Err(_)) => false,
            }
    }
}

impl SharedHeading {
    /// Returns what `read` reads. An open page takes the last reading instead if it is of this moment, and one of them reads for all
    /// that wait. That of a page that is opened is theirs, too, so none goes back behind it.
    pub(super) async fn get<F>(
        &self,
        changes: u64,
        is_refresh: bool,
        read: impl FnOnce() -> F,
    ) -> Result<WaitingRequests, Problem>
    where
        F: Future<Output = Result<WaitingRequests, Problem>>,
    {
        // If the page that reads is given up, the next one that waits reads.
        self.begin(changes, Instant::now(), is_refresh).answer.get_or_init(read).await.clone()
    }

    fn begin(&self, changes: u64, now: Instant, is_refresh: bool) -> Arc<Reading> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |reading: &&Arc<Reading>| is_refresh && reading.is_for(changes, now);
        let shared = last.as_ref().filter(is_for).cloned();
        shared.unwrap_or_else(|| {
            let fresh = Reading { changes, begun: now, answer: OnceCell::new() };
            Arc::clone(last.insert(Arc::new(fresh)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use axum::http::StatusCode;
    use chrono::DateTime;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;
    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::problem::ProblemCode;

    /// Readings that are numbered, and end when the test lets them.
    struct Readings {
        heading: SharedHeading,
        begun: AtomicI64,
        ends: Semaphore,
    }

    impl Readings {
        /// Lets so many readings end.
        fn new(ends: usize) -> Self {
            let (begun, ends) = (AtomicI64::new(0), Semaphore::new(ends));
            Self { heading: SharedHeading::default(), begun, ends }
        }

        /// The number of the reading that a page gets; `None`: one that failed.
        async fn get(&self, changes: u64, is_failing: bool) -> Option<i64> {
            let read = || async {
                let count = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
                self.ends.acquire().await.unwrap().forget();
                if is_failing {
                    let status = StatusCode::SERVICE_UNAVAILABLE;
                    return Err(Problem::new(status, ProblemCode::Unavailable, "no"));
                }
                Ok(WaitingRequests { now: DateTime::UNIX_EPOCH, count })
            };
            self.heading.get(changes, true, read).await.ok().map(|waiting| waiting.count)
        }
    }

    #[test]
    fn a_reading_is_for_pages_after_the_same_changes_until_it_is_old_or_has_failed() {
        let begun = Instant::now();
        let reading = |answer| Reading { changes: 7, begun, answer: OnceCell::new_with(answer) };
        let waiting = WaitingRequests { now: DateTime::UNIX_EPOCH, count: 1 };
        let (making, made) = (reading(None), reading(Some(Ok(waiting))));
        for (at, is_shared) in
            [(begun, true), (begun + MAX_AGE / 2, true), (begun + MAX_AGE, false)]
        {
            assert_eq!(made.is_for(7, at), is_shared);
            assert!(making.is_for(7, at), "it is still being made");
            assert!(!made.is_for(8, at) && !making.is_for(8, at), "it might lack the change");
        }
        let problem = Problem::unauthenticated("no");
        assert!(!reading(Some(Err(problem))).is_for(7, begun));
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_follow_the_same_change_read_once() {
        let readings = Readings::new(usize::MAX >> 4);
        let all = join_all((0..500).map(|_| readings.get(1, false))).await;
        assert_eq!(all, [Some(1); 500]);
        assert_eq!(readings.get(2, false).await, Some(2), "another change");
        advance(MAX_AGE).await;
        assert_eq!(readings.get(2, false).await, Some(3), "it is old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_opened_reads_and_open_pages_have_no_less() {
        let heading = SharedHeading::default();
        let waiting = |count| WaitingRequests { now: DateTime::UNIX_EPOCH, count };
        let read = |count| async move { Ok::<_, Problem>(waiting(count)) };
        let share = async |count| heading.get(1, true, || read(count)).await.unwrap().count;
        assert_eq!((share(1).await, share(2).await), (1, 1));
        assert_eq!(heading.get(1, false, || read(3)).await.unwrap().count, 3);
        assert_eq!(share(4).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_for_those_who_waited_and_not_kept() {
        let readings = Readings::new(0);
        let all = join_all((0..5).map(|_| readings.get(1, true)));
        let (all, ()) = tokio::join!(all, async { readings.ends.add_permits(1) });
        assert_eq!(all, [None; 5]);
        assert_eq!(readings.begun.load(Ordering::SeqCst), 1, "nobody reads again for another");
        readings.ends.add_permits(1);
        assert_eq!(readings.get(1, false).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_page_that_reads_is_given_up_the_next_one_reads() {
        let readings = Readings::new(0);
        let given_up = timeout(MAX_AGE / 2, readings.get(1, false));
        let waiting = async {
            while readings.begun.load(Ordering::SeqCst) == 0 {
                yield_now().await;
            }
            let next = readings.get(1, false);
            let (next, ()) = tokio::join!(next, async {
                while readings.begun.load(Ordering::SeqCst) == 1 {
                    advance(MAX_AGE).await;
                }
                readings.ends.add_permits(1);
            });
            next
        };
        let (given_up, next) = tokio::join!(given_up, waiting);
        assert!(given_up.is_err());
        assert_eq!(next, Some(2));
    }
}
