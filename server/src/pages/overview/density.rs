//! Keeps the count of the day's firings for a while, since it costs more than the rest of the page and changes slowly.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_operations::error::OperationError;
use sexton_operations::jobs::density::{self, FiringDay};
use sexton_store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Age from which a new count is made.
const MAX_AGE: Duration = Duration::from_mins(2);
/// Age from which it is not shown any more: half of its day would be over before people notice.
const MAX_SHOWN_AGE: Duration = Duration::from_hours(1);
/// After a count that failed, how long none is tried in the background.
const PAUSE: Duration = Duration::from_secs(30);

/// A count.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) day: Arc<FiringDay>,
    /// For which time.
    pub(super) at: DateTime<Utc>,
    made: Instant,
}

/// The last count. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct DensityCache {
    last: Arc<RwLock<Option<Counted>>>,
    /// Held by the one who makes a count; when that failed last.
    making: Arc<Mutex<Option<Instant>>>,
}

impl Counted {
    /// Whether a newer one is made by now.
    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() >= MAX_AGE
    }
}

impl DensityCache {
    /// Returns the last count. Where it is old a new one is made meanwhile, by one visitor's request for all, and nobody waits for it; only
    /// where there is none yet everybody waits for the first.
    pub(super) async fn get(
        &self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<Counted, OperationError> {
        let store = store.clone();
        self.get_by(now, move || async move { density::count(&store, now).await }).await
    }

    async fn get_by<C, F>(&self, now: DateTime<Utc>, count: C) -> Result<Counted, OperationError>
    where
        C: FnOnce() -> F,
        F: Future<Output = Result<FiringDay, OperationError>> + Send + 'static,
    {
        let Some(last) = self.last() else {
            let _making = self.making.lock().await;
            return match self.last() {
                Some(made) => Ok(made),
                None => Ok(self.keep(count().await?, now)),
            };
        };
        if last.is_old()
            && let Ok(mut making) = Arc::clone(&self.making).try_lock_owned()
            && making.is_none_or(|failed| failed.elapsed() >= PAUSE)
        {
            let (cache, counting) = (self.clone(), count());
            tokio::spawn(async move {
                match counting.await {
                    Ok(day) => {
                        *making = None;
                        cache.keep(day, now);
                    }
                    // A later visitor tries it again.
                    Err(error) => {
                        *making = Some(Instant::now());
                        tracing::warn!("the firings of the next day could not be counted: {error}");
                    }
                }
            });
        }
        Ok(last)
    }

    fn last(&self) -> Option<Counted> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        last.filter(|last| last.made.elapsed() < MAX_SHOWN_AGE)
    }

    fn keep(&self, day: FiringDay, at: DateTime<Utc>) -> Counted {
        let counted = Counted { day: Arc::new(day), at, made: Instant::now() };
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(counted.clone());
        counted
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;
    use tokio::task::yield_now;
    use tokio::time::{advance, timeout};

    use super::*;

    /// Counts that end when the test lets them.
    struct Counts {
        cache: DensityCache,
        begun: Arc<AtomicUsize>,
        ends: Arc<Semaphore>,
    }

    impl Counts {
        fn new() -> Self {
            let (begun, ends) = (Arc::default(), Arc::new(Semaphore::new(0)));
            Self { cache: DensityCache::default(), begun, ends }
        }

        /// A visit at a second, whose count would fail or not.
        async fn visit(&self, second: i64, is_failing: bool) -> Result<i64, OperationError> {
            let (begun, ends) = (Arc::clone(&self.begun), Arc::clone(&self.ends));
            let now = DateTime::from_timestamp(second, 0).unwrap();
            let count = move || async move {
                begun.fetch_add(1, Ordering::SeqCst);
                ends.acquire().await.unwrap().forget();
                let failure = || OperationError::Failed("no".to_owned());
                if is_failing { Err(failure()) } else { Ok(FiringDay::empty(now)) }
            };
            let shown = timeout(MAX_AGE, self.cache.get_by(now, count)).await;
            shown.expect("nobody waits so long").map(|counted| counted.at.timestamp())
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }

        /// Lets a count end, and its maker leave.
        async fn end_one(&self) {
            self.ends.add_permits(1);
            while self.cache.making.try_lock().is_err() || self.ends.available_permits() > 0 {
                yield_now().await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_visitors_wait_and_later_the_old_count_is_shown_while_one_is_made() {
        let counts = Counts::new();
        let first = join_all((0..5).map(|_| counts.visit(1, false)));
        let (first, ()) = tokio::join!(first, async { counts.ends.add_permits(1) });
        assert!(first.iter().all(|shown| matches!(shown, Ok(1))), "{first:?}");
        assert_eq!(counts.begun(), 1);
        advance(MAX_AGE / 2).await;
        assert_eq!((counts.visit(2, false).await.unwrap(), counts.begun()), (1, 1));
        advance(MAX_AGE / 2).await;
        // The new count does not end before these visits.
        for _ in 0..5 {
            assert_eq!(counts.visit(3, false).await.unwrap(), 1);
            yield_now().await;
        }
        assert_eq!(counts.begun(), 2, "one maker at a time");
        counts.end_one().await;
        assert_eq!((counts.visit(4, false).await.unwrap(), counts.begun()), (3, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_that_fails_leaves_the_old_one_and_is_tried_again() {
        let counts = Counts::new();
        let (first, ()) = tokio::join!(counts.visit(1, true), async { counts.ends.add_permits(1) });
        first.unwrap_err();
        let (next, ()) = tokio::join!(counts.visit(2, false), async { counts.ends.add_permits(1) });
        assert_eq!(next.unwrap(), 2);
        advance(MAX_AGE).await;
        assert_eq!(counts.visit(3, true).await.unwrap(), 2);
        counts.end_one().await;
        assert_eq!((counts.visit(4, false).await.unwrap(), counts.begun()), (2, 3), "not at once");
        advance(PAUSE).await;
        assert_eq!(counts.visit(5, false).await.unwrap(), 2);
        counts.end_one().await;
        assert_eq!((counts.visit(6, false).await.unwrap(), counts.begun()), (5, 4));
        // Nobody looked for so long that it would be of a time that is over.
        advance(MAX_SHOWN_AGE).await;
        let (last, ()) = tokio::join!(counts.visit(7, false), async { counts.ends.add_permits(1) });
        assert_eq!((last.unwrap(), counts.begun()), (7, 5));
    }
}
