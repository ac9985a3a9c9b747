//! The function of a job, and what it gets.

use std::any::Any;
use std::fmt::{self, Display};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

/// What a job's function gets.
#[derive(Clone, Debug)]
pub struct Tick {
    job: Arc<str>,
    scheduled_for: DateTime<Utc>,
    stop: CancellationToken,
}

impl Tick {
    pub(super) const fn new(
        job: Arc<str>,
        scheduled_for: DateTime<Utc>,
        stop: CancellationToken,
    ) -> Self {
        Self { job, scheduled_for, stop }
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The instant for which this runs, which the schedule names: the same on every instance, and in every repetition.
    pub const fn scheduled_for(&self) -> DateTime<Utc> {
        self.scheduled_for
    }

    /// The signal to stop: the service shuts down, or the lock is lost. In the second case the function's future is dropped
    /// at once, so this is for what it has started elsewhere.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

/// The end of a work: nothing, or what went wrong.
type Ending = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A job's function.
#[derive(Clone)]
pub(super) struct Work(Arc<dyn Fn(Tick) -> Ending + Send + Sync>);

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Work {
    pub(super) fn new<F, T, E>(work: impl Fn(Tick) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        E: Display,
    {
        Self(Arc::new(move |tick| -> Ending {
            let work = work(tick);
            Box::pin(async move { work.await.map(drop).map_err(|error| error.to_string()) })
        }))
    }

    /// Runs the function; a panic is an error.
    pub(super) async fn run(&self, tick: Tick) -> Result<(), String> {
        let mut work = match catch_unwind(AssertUnwindSafe(|| (self.0)(tick))) {
            Ok(work) => work,
            Err(payload) => return Err(panic_text(&*payload)),
        };
        let ended = poll_fn(move |context| {
            // A future that has panicked is dropped, and nothing of it is used again.
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(outcome)) => Poll::Ready(outcome),
                Err(payload) => Poll::Ready(Err(panic_text(&*payload))),
            }
        });
        ended.await
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    format!("the function panicked: {}", text.unwrap_or("without a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick() -> Tick {
        Tick::new("a".into(), DateTime::UNIX_EPOCH, CancellationToken::new())
    }

    #[tokio::test]
    async fn errors_and_panics_are_texts() {
        let works = Work::new(async |_| Ok::<_, String>(7));
        assert_eq!(works.run(tick()).await, Ok(()));
        let fails = Work::new(async |tick: Tick| Err::<(), _>(format!("{} is closed", tick.job())));
        assert_eq!(fails.run(tick()).await, Err("a is closed".to_owned()));
        let panics = Work::new(async |_| -> Result<(), String> {
            tokio::task::yield_now().await;
            panic!("at {}", 5)
        });
        assert_eq!(panics.run(tick()).await, Err("the function panicked: at 5".to_owned()));
        let panics = Work::new(|_| -> std::future::Ready<Result<(), String>> { panic!("early") });
        assert_eq!(panics.run(tick()).await, Err("the function panicked: early".to_owned()));
    }
}
