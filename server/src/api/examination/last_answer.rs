//! The last answer of an examination. One is made at a time: programs wait a few seconds for it, pages never do.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use crate::problem::{Problem, ProblemCode};

/// Time limit of an examination: less than that of a request, so that its answer is kept for the next one.
pub(super) const EXAMINATION_TIMEOUT: Duration = Duration::from_secs(55);
/// How long a request waits for an examination or a repair that is under way: while it waits, it takes one of the turns of all requests.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// What is known without an examination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Latest<T> {
    /// The last answer, and how long ago it was made.
    Made { answer: T, age: Duration },
    /// No answer is young enough, and the last examination failed for this reason.
    Failed(String),
    /// No examination has ended yet.
    Pending,
}

/// The last answer, and the turn of those who make one. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct LastAnswer<T> {
    ended: Arc<RwLock<Ended<T>>>,
    turn: Arc<Mutex<()>>,
}

/// How the last examinations ended.
#[derive(Debug)]
struct Ended<T> {
    answer: Option<(Instant, T)>,
    /// The failure of an examination after that answer.
    failure: Option<(Instant, String)>,
}

impl<T> Ended<T> {
    const fn none() -> Self {
        Self { answer: None, failure: None }
    }

    /// Returns when the last examination ended.
    fn at(&self) -> Option<Instant> {
        let failed = self.failure.as_ref().map(|(at, _)| *at);
        failed.or_else(|| self.answer.as_ref().map(|(at, _)| *at))
    }

    /// Returns whether the last examination ended at least `interval` ago.
    fn is_due(&self, interval: Duration, now: Instant) -> bool {
        self.at().is_none_or(|at| now.saturating_duration_since(at) >= interval)
    }
}

impl<T: Clone> Ended<T> {
    /// Returns the answer and its age if it is younger than `max_age`.
    fn answer(&self, max_age: Duration, now: Instant) -> Option<(T, Duration)> {
        let (at, answer) = self.answer.as_ref()?;
        let age = now.saturating_duration_since(*at);
        (age < max_age).then(|| (answer.clone(), age))
    }

    /// Returns what is known.
    fn latest(&self, max_age: Duration, now: Instant) -> Latest<T> {
        match (self.answer(max_age, now), &self.failure) {
            (Some((answer, age)), _) => Latest::Made { answer, age },
            (None, Some((_, reason))) => Latest::Failed(reason.clone()),
            (None, None) => Latest::Pending,
        }
    }
}

impl<T> LastAnswer<T> {
    pub(super) fn none() -> Self {
        Self { ended: Arc::new(RwLock::new(Ended::none())), turn: Arc::default() }
    }

    /// Waits for the end of what is under way, at most [`WAIT_TIMEOUT`]. Nobody makes an answer until the guard is dropped.
    pub(super) async fn take_turn(&self) -> Result<MutexGuard<'_, ()>, Problem> {
        let detail =
            "an examination or a repair of the platform is under way; send the request again";
        timeout(WAIT_TIMEOUT, self.turn.lock()).await.map_err(|_| Problem::unavailable(detail))
    }

    /// Keeps an answer. Only in one's turn, as all that changes it.
    pub(super) fn keep(&self, answer: T) {
        self.set(Ended { answer: Some((Instant::now(), answer)), failure: None });
    }

    /// Forgets what was found.
    pub(super) fn forget(&self) {
        self.set(Ended::none());
    }

    fn fail(&self, reason: &str) {
        let mut ended = self.ended.write().unwrap_or_else(PoisonError::into_inner);
        ended.failure = Some((Instant::now(), reason.to_owned()));
    }

    fn set(&self, ended: Ended<T>) {
        *self.ended.write().unwrap_or_else(PoisonError::into_inner) = ended;
    }

    fn read(&self) -> RwLockReadGuard<'_, Ended<T>> {
        self.ended.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> LastAnswer<T> {
    /// Returns the last answer if it is younger than `max_age`; otherwise that of `examine`, for which everybody waits a few seconds.
    pub(super) async fn get(
        &self,
        max_age: Duration,
        examine: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let _turn = self.take_turn().await?;
        let last = self.read().answer(max_age, Instant::now());
        match last {
            Some((answer, _)) => Ok(answer),
            None => self.make(examine).await,
        }
    }

    /// Returns what is known, without waiting.
    pub(super) fn latest(&self, max_age: Duration) -> Latest<T> {
        self.read().latest(max_age, Instant::now())
    }

    /// Keeps what `examine` returns. Only in one's turn.
    async fn make(&self, examine: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        let examined = timeout(EXAMINATION_TIMEOUT, examine).await;
        let answer = examined.unwrap_or_else(|_| {
            let detail = "the servers take more than 55 s to answer; `sexton doctor` says which";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooSlow, detail))
        });
        match &answer {
            Ok(answer) => self.keep(answer.clone()),
            Err(problem) => self.fail(&problem.detail),
        }
        answer
    }
}

impl<T: Clone + Send + Sync + 'static> LastAnswer<T> {
    /// Makes an answer in the background, unless the last examination ended less than `interval` ago or one is under way.
    pub(super) fn renew<F>(&self, interval: Duration, examine: impl FnOnce() -> F)
    where
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() else { return };
        let is_due = self.read().is_due(interval, Instant::now());
        if !is_due {
            return;
        }
        let (last, examining) = (self.clone(), examine());
        tokio::spawn(async move {
            let made = last.make(examining).await;
            drop(turn);
            if let Err(problem) = made {
                tracing::warn!("the platform could not be examined: {}", problem.detail);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    const INTERVAL: Duration = Duration::from_mins(1);
    const MAX_AGE: Duration = Duration::from_mins(5);

    #[test]
    fn the_last_answer_is_known_until_it_is_old_and_a_failure_only_then() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut ended = Ended::none();
        assert_eq!(ended.latest(MAX_AGE, at(0)), Latest::<u8>::Pending);
        assert!(ended.is_due(INTERVAL, at(0)));
        ended.failure = Some((at(0), "no".to_owned()));
        assert_eq!(ended.latest(MAX_AGE, at(1)), Latest::Failed("no".to_owned()));
        // Not at once again, although nothing is known.
        assert!(!ended.is_due(INTERVAL, at(59)));
        assert!(ended.is_due(INTERVAL, at(60)));
        let mut ended = Ended { answer: Some((at(60), 7)), failure: None };
        let made = |seconds| Latest::Made { answer: 7, age: Duration::from_secs(seconds) };
        assert_eq!(ended.latest(MAX_AGE, at(60)), made(0));
        assert!(!ended.is_due(INTERVAL, at(119)));
        assert!(ended.is_due(INTERVAL, at(120)));
        ended.failure = Some((at(130), "no".to_owned()));
        assert_eq!(ended.latest(MAX_AGE, at(359)), made(299));
        assert!(!ended.is_due(INTERVAL, at(189)));
        assert!(ended.is_due(INTERVAL, at(190)));
        assert_eq!(ended.latest(MAX_AGE, at(360)), Latest::Failed("no".to_owned()));
        // A clock that another thread read a moment before the end.
        assert_eq!(ended.latest(MAX_AGE, at(59)), made(0));
    }

    #[tokio::test(start_paused = true)]
    async fn pages_wait_for_nothing_and_one_examination_is_made_at_a_time() {
        let last = LastAnswer::none();
        let (begun, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let visit = || {
            last.renew(INTERVAL, || {
                let (begun, ends) = (Arc::clone(&begun), Arc::clone(&ends));
                async move {
                    let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                    ends.acquire().await.unwrap().forget();
                    Ok(number)
                }
            });
            last.latest(MAX_AGE)
        };
        let end_one = async || {
            ends.add_permits(1);
            while last.turn.try_lock().is_err() {
                yield_now().await;
            }
        };
        for _ in 0..5 {
            assert_eq!(visit(), Latest::Pending);
            yield_now().await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        end_one().await;
        let made = |answer, age| Latest::Made { answer, age };
        assert_eq!(visit(), made(1, Duration::ZERO));
        advance(INTERVAL).await;
        for _ in 0..5 {
            assert_eq!(visit(), made(1, INTERVAL));
            yield_now().await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 2);
        end_one().await;
        assert_eq!(visit(), made(2, Duration::ZERO));
        // One that does not end is given up, and a program need not wait for it any more.
        advance(MAX_AGE).await;
        assert_eq!(visit(), Latest::Pending);
        while begun.load(Ordering::SeqCst) < 3 {
            yield_now().await;
        }
        advance(EXAMINATION_TIMEOUT + Duration::from_secs(1)).await;
        while last.turn.try_lock().is_err() {
            yield_now().await;
        }
        assert!(matches!(visit(), Latest::Failed(reason) if reason.contains("55 s")));
        assert_eq!(last.get(INTERVAL, async { Ok(9) }).await.unwrap(), 9);
        assert_eq!(visit(), made(9, Duration::ZERO));
    }
}
