//! Runs work beside the signal that its lock was lost.

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio_util::sync::CancellationToken;

use crate::held::{End, Held};

/// What became of work that needs a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the work may not have run, or not alone"]
pub enum Run<T> {
    /// The work ended, and the lock was held from its beginning to its end.
    Done(T),
    /// Another holder has the lock, in this process or elsewhere, or has taken the tick. The work did not begin.
    Busy,
    /// The lock was lost while the work ran, so the work was dropped where it waited. Another instance may take the lock
    /// from now on.
    Lost,
    /// The work ended, but whether the lock was held to its end is unknown: the release found it lost, or was not answered.
    /// Another instance may have run beside it.
    Uncertain(T),
}

impl<T> Run<T> {
    /// The work's answer, if it ended.
    pub fn answer(self) -> Option<T> {
        match self {
            Self::Done(answer) | Self::Uncertain(answer) => Some(answer),
            Self::Busy | Self::Lost => None,
        }
    }
}

/// Runs `work` under a lock, and releases it afterwards.
///
/// If the lock is lost the work's future is dropped first, and only then the lock. So is it if this future is dropped, or the
/// work panics: `work` is declared behind `held`. What the work has started elsewhere (tasks, threads, processes) ends only if
/// it follows the token that it got.
pub(crate) async fn run<T, F>(
    held: Held,
    work: impl FnOnce(CancellationToken) -> F,
    end_of: impl FnOnce(&T) -> End,
) -> Run<T>
where
    F: Future<Output = T>,
{
    let lost = held.lost().clone();
    let ended = {
        let mut work = pin!(work(lost.clone()));
        let mut cancelled = pin!(lost.cancelled());
        poll_fn(|context| {
            // Before each step of the work: one that was frozen takes none when it wakes.
            if held.is_lost() || cancelled.as_mut().poll(context).is_ready() {
                lost.cancel();
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    };
    let Some(answer) = ended else {
        // The answer would be that it is lost.
        let _ = held.release_after(End::Cancelled("the lock was lost".to_owned())).await;
        return Run::Lost;
    };
    let end = end_of(&answer);
    match held.release_after(end).await {
        Ok(()) => Run::Done(answer),
        Err(error) => {
            tracing::warn!(%error, "work ended under a lock that may have been lost: {error}");
            Run::Uncertain(answer)
        }
    }
}

/// The end of work that answers with a result.
pub(crate) fn end_of_result<T, E: Display>(result: &Result<T, E>) -> End {
    match result {
        Ok(_) => End::Succeeded,
        Err(error) => End::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::error::ReleaseError;
    use crate::held::{Release, Releasing};
    use crate::lease::Lease;
    use crate::moment::Moment;

    type Events = Arc<Mutex<Vec<&'static str>>>;

    /// A lock that writes down when it is released, and that has been lost before if so set.
    #[derive(Debug)]
    struct Recorded {
        events: Events,
        is_lost: bool,
    }

    impl Release for Recorded {
        fn release(self: Box<Self>, end: End) -> Releasing {
            self.events.lock().unwrap().push(end.outcome());
            let answer = if self.is_lost { Err(ReleaseError::Lost) } else { Ok(()) };
            Box::pin(async move { answer })
        }
    }

    impl Drop for Recorded {
        fn drop(&mut self) {
            self.events.lock().unwrap().push("lock dropped");
        }
    }

    struct WorkState(Events);

    impl Drop for WorkState {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("work dropped");
        }
    }

    fn held(is_lost: bool) -> (Held, Events) {
        let events = Events::default();
        let lock = Recorded { events: Arc::clone(&events), is_lost };
        let lease = Lease::new(Moment::now(), Duration::from_hours(1));
        (Held::new(CancellationToken::new(), lease, Box::new(lock)), events)
    }

    fn hanging(events: &Events) -> impl Future<Output = Result<(), &'static str>> + use<> {
        let state = WorkState(Arc::clone(events));
        async move {
            let _state = state;
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_loss_ends_the_work_before_the_lock() {
        let (held, events) = held(true);
        let lost = held.lost().clone();
        let work = hanging(&events);
        let running = run(held, |_| work, end_of_result);
        tokio::pin!(running);
        tokio::select! {
            biased;
            _ = &mut running => panic!("it hangs"),
            () = std::future::ready(()) => lost.cancel(),
        }
        assert_eq!(running.await, Run::Lost);
        assert_eq!(*events.lock().unwrap(), ["work dropped", "cancelled", "lock dropped"]);
    }

    /// As in a process that was frozen: nobody has run to signal the loss.
    #[tokio::test]
    async fn work_takes_no_step_when_its_lease_is_over() {
        let events = Events::default();
        let lock = Recorded { events: Arc::clone(&events), is_lost: true };
        let lease = Lease::new(Moment::now(), Duration::ZERO);
        let held = Held::new(CancellationToken::new(), lease, Box::new(lock));
        let work = async { panic!("the work takes a step") };
        assert_eq!(run(held, |_| work, |(): &()| End::Succeeded).await, Run::Lost);
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_ends_the_work_before_the_lock() {
        let (held, events) = held(false);
        let work = hanging(&events);
        {
            let running = run(held, |_| work, end_of_result);
            tokio::pin!(running);
            tokio::select! {
                biased;
                _ = &mut running => panic!("it hangs"),
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(*events.lock().unwrap(), ["work dropped", "lock dropped"]);
    }

    #[tokio::test]
    async fn a_panic_ends_the_work_before_the_lock() {
        let (held, events) = held(false);
        let state = WorkState(Arc::clone(&events));
        let work = async move {
            let _state = state;
            panic!("a mistake of the work")
        };
        let run = tokio::spawn(run(held, |_| work, |(): &()| End::Succeeded)).await;
        assert!(run.unwrap_err().is_panic());
        assert_eq!(*events.lock().unwrap(), ["work dropped", "lock dropped"]);
    }

    #[tokio::test]
    async fn what_the_release_finds_is_in_the_answer() {
        let (held_to_the_end, events) = held(false);
        let run_one =
            run(held_to_the_end, |_| async { Err::<(), _>("it is closed") }, end_of_result);
        assert_eq!(run_one.await, Run::Done(Err("it is closed")));
        assert_eq!(events.lock().unwrap()[0], "failed");
        let (lost_before, _) = held(true);
        assert_eq!(run(lost_before, |_| async { 7 }, |_| End::Succeeded).await, Run::Uncertain(7));
    }
}
