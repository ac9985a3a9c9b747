//! Keeps a count for a while, since it costs more than the rest of the page, and open pages would repeat it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_operations::error::OperationError;
use sexton_operations::jobs::density::{self, FiringDay};
use sexton_operations::status;
use sexton_store::Store;
use sexton_store::status::DueExecutions;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long no count is tried after one that failed: it may have taken seconds, for which visitors would wait one after the other.
const PAUSE: Duration = Duration::from_secs(30);

/// How old a count may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ages {
    /// The age from which a new count is made.
    max: Duration,
    /// The age from which the count is not shown any more.
    max_shown: Duration,
}

/// The ages of a count of the firings of a day, which change slowly.
const OF_DENSITY: Ages = Ages { max: Duration::from_mins(2), max_shown: Duration::from_hours(1) };
/// The ages of a count of the executions that were due within an hour.
const OF_DUE: Ages = Ages { max: Duration::from_secs(15), max_shown: Duration::from_mins(2) };

/// A count.
#[derive(Clone, Debug)]
pub(super) struct Counted<T> {
    pub(super) value: Arc<T>,
    /// The time for which it was made.
    pub(super) at: DateTime<Utc>,
    made: Instant,
    max_age: Duration,
}

/// The last count. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CountCache<T> {
    /// What is counted, for the log.
    name: &'static str,
    ages: Ages,
    last: Arc<RwLock<Option<Counted<T>>>>,
    /// Held by the one who makes a count; the last failure, until a count is made.
    making: Arc<Mutex<Option<Failure>>>,
}

/// A count that failed.
#[derive(Clone, Debug)]
struct Failure {
    at: Instant,
    text: String,
}

impl Failure {
    fn of(error: &OperationError) -> Self {
        Self { at: Instant::now(), text: error.to_string() }
    }

    /// Whether no count is tried yet.
    fn is_recent(&self) -> bool {
        self.at.elapsed() < PAUSE
    }
}

impl<T> Counted<T> {
    /// Whether a newer one is made by now.
    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() >= self.max_age
    }
}

impl CountCache<FiringDay> {
    /// Makes the cache of the firings of the next day.
    pub(super) fn of_density() -> Self {
        Self::new("the firings of the next day", OF_DENSITY)
    }

    /// Returns the last count. Where it is old a new one is made meanwhile, by one visitor's request for all, and nobody waits for it; only
    /// where there is none yet everybody waits for the first. If that fails, all get its failure until the next one is tried.
    pub(super) async fn get(
        &self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<Counted<FiringDay>, OperationError> {
        let store = store.clone();
        self.get_by(now, move || async move { density::count(&store, now).await }).await
    }
}

impl CountCache<DueExecutions> {
    /// Makes the cache of the executions that were due within the last hour.
    pub(super) fn of_due() -> Self {
        Self::new("the executions of the last hour", OF_DUE)
    }

    /// Returns the last count, as that of the firings.
    pub(super) async fn get(
        &self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<Counted<DueExecutions>, OperationError> {
        let store = store.clone();
        self.get_by(now, move || async move { status::count_due_last_hour(&store).await }).await
    }
}

impl<T: Clone + Send + Sync + 'static> CountCache<T> {
    fn new(name: &'static str, ages: Ages) -> Self {
        Self { name, ages, last: Arc::default(), making: Arc::default() }
    }

    async fn get_by<C, F>(&self, now: DateTime<Utc>, count: C) -> Result<Counted<T>, OperationError>
    where
        C: FnOnce() -> F,
        F: Future<Output = Result<T, OperationError>> + Send + 'static,
    {
        let Some(last) = self.last() else {
            let mut making = self.making.lock().await;
            if let Some(made) = self.last() {
                return Ok(made);
            }
            if let Some(failure) = making.as_ref().filter(|failure| failure.is_recent()) {
                return Err(OperationError::Failed(failure.text.clone()));
            }
            return match count().await {
                Ok(value) => {
                    *making = None;
                    Ok(self.keep(value, now))
                }
                Err(error) => {
                    *making = Some(Failure::of(&error));
                    Err(error)
                }
            };
        };
        if last.is_old()
            && let Ok(mut making) = Arc::clone(&self.making).try_lock_owned()
            && making.as_ref().is_none_or(|failure| !failure.is_recent())
        {
            let (cache, counting) = (self.clone(), count());
            tokio::spawn(async move {
                match counting.await {
                    Ok(value) => {
                        *making = None;
                        cache.keep(value, now);
                    }
                    // A later visitor tries it again.
                    Err(error) => {
                        *making = Some(Failure::of(&error));
                        tracing::warn!("{} could not be counted: {error}", cache.name);
                    }
                }
            });
        }
        Ok(last)
    }

    fn last(&self) -> Option<Counted<T>> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        last.filter(|last| last.made.elapsed() < self.ages.max_shown)
    }

    fn keep(&self, value: T, at: DateTime<Utc>) -> Counted<T> {
        let (made, max_age) = (Instant::now(), self.ages.max);
        let counted = Counted { value: Arc::new(value), at, made, max_age };
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
        cache: CountCache<FiringDay>,
        begun: Arc<AtomicUsize>,
        ends: Arc<Semaphore>,
    }

    impl Counts {
        fn new() -> Self {
            let (begun, ends) = (Arc::default(), Arc::new(Semaphore::new(0)));
            Self { cache: CountCache::of_density(), begun, ends }
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
            let shown = timeout(OF_DENSITY.max, self.cache.get_by(now, count)).await;
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
        advance(OF_DENSITY.max / 2).await;
        assert_eq!((counts.visit(2, false).await.unwrap(), counts.begun()), (1, 1));
        advance(OF_DENSITY.max / 2).await;
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
    async fn visitors_who_wait_for_a_count_that_fails_all_get_its_failure() {
        let counts = Counts::new();
        let first = join_all((0..5).map(|_| counts.visit(1, true)));
        let (first, ()) = tokio::join!(first, async { counts.ends.add_permits(1) });
        assert_eq!(counts.begun(), 1, "one count for all");
        for shown in first {
            assert_eq!(shown.unwrap_err().to_string(), "no");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_that_fails_leaves_the_old_one_and_is_tried_again() {
        let counts = Counts::new();
        let (first, ()) = tokio::join!(counts.visit(1, true), async { counts.ends.add_permits(1) });
        first.unwrap_err();
        // Not at once, and nobody waits for it again.
        let errors = join_all((0..5).map(|_| counts.visit(1, false))).await;
        assert!(errors.iter().all(Result::is_err), "{errors:?}");
        assert_eq!(counts.begun(), 1);
        advance(PAUSE).await;
        let (next, ()) = tokio::join!(counts.visit(2, false), async { counts.ends.add_permits(1) });
        assert_eq!(next.unwrap(), 2);
        advance(OF_DENSITY.max).await;
        assert_eq!(counts.visit(3, true).await.unwrap(), 2);
        counts.end_one().await;
        assert_eq!((counts.visit(4, false).await.unwrap(), counts.begun()), (2, 3), "not at once");
        advance(PAUSE).await;
        assert_eq!(counts.visit(5, false).await.unwrap(), 2);
        counts.end_one().await;
        assert_eq!((counts.visit(6, false).await.unwrap(), counts.begun()), (5, 4));
        // Nobody looked for so long that it would be of a time that is over.
        advance(OF_DENSITY.max_shown).await;
        let (last, ()) = tokio::join!(counts.visit(7, false), async { counts.ends.add_permits(1) });
        assert_eq!((last.unwrap(), counts.begun()), (7, 5));
    }
}
