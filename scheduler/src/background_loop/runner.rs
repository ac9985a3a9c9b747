//! Runs a loop: waits for the timer, a notification or the shutdown, and handles errors.
//!
//! No failure ends a loop: [`Reachability`] logs an outage of the database, the link one of the broker, and the
//! runner any other error once a minute; the next round starts from the database's state.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sexton_engine::jitter::jittered;
use sexton_engine::start_up::is_outage;
use sexton_model::log_throttle::LogThrottle;
use sexton_service::health::{Heartbeat, Liveness};
use sexton_service::metrics::table;
use sexton_service::reachability::Reachability;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{BackgroundLoop, LoopError, Pause};

/// The longest pause, so that `/livez` can distinguish a pausing loop from one that hangs.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// The pause after a failure, before jitter.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The runtime's timer is late by less than this.
const TIMER_RESOLUTION: Duration = Duration::from_millis(2);

/// Time limit of a round that is running at the soft stop. Only an unanswered query needs longer, and then the
/// round leaves what a crash would.
const LAST_ROUND_TIMEOUT: Duration = Duration::from_secs(10);

/// What a loop needs to run.
#[derive(Clone, Debug)]
pub struct LoopContext {
    /// Cancelled when the database is reachable and its schema fits.
    pub started: CancellationToken,
    /// Cancelled when no further round may begin.
    pub soft: CancellationToken,
    /// Cancelled when a running round must end.
    pub hard: CancellationToken,
    /// The liveness of the loops, for `/livez`.
    pub liveness: Liveness,
    /// The state of the database, shared by all loops.
    pub database: Reachability,
}

/// Runs `background_loop` until the shutdown. `wakeup` ends a pause; if it arrives during a round, another
/// follows at once.
pub async fn run<S: BackgroundLoop>(
    background_loop: S,
    wakeup: Arc<Notify>,
    context: LoopContext,
) -> Result<(), Infallible> {
    tokio::select! {
        () = context.soft.cancelled() => return Ok(()),
        () = context.started.cancelled() => {}
    }
    let heartbeat = context.liveness.register(S::NAME, S::ROUND_TIMEOUT + 2 * MAX_PAUSE);
    let log_throttle = LogThrottle::default();
    while !context.soft.is_cancelled() {
        heartbeat.beat();
        let began = Instant::now();
        let round = tokio::select! {
            () = context.last_round_timeout() => break,
            round = run_round(&background_loop, &heartbeat) => round,
        };
        table::LOOP_ROUND.observe([S::NAME], began.elapsed());
        let outcome = round.unwrap_or(Err(LoopError::RoundTimedOut(S::ROUND_TIMEOUT)));
        let pause = context.report_outcome(
            S::NAME,
            outcome.map(|report| background_loop.pause(&report)),
            &log_throttle,
        );
        tokio::select! {
            () = context.soft.cancelled() => break,
            () = pause_between_rounds(pause, &wakeup) => {}
        }
    }
    Ok(())
}

/// Runs one round; `None`: it has made no progress within its time limit, and is dropped.
async fn run_round<S: BackgroundLoop>(
    background_loop: &S,
    heartbeat: &Heartbeat,
) -> Option<Result<S::Report, LoopError>> {
    let mut round = pin!(background_loop.run_once(None));
    let mut done = background_loop.progress();
    loop {
        if let Ok(outcome) = timeout(S::ROUND_TIMEOUT, &mut round).await {
            return Some(outcome);
        }
        let before = std::mem::replace(&mut done, background_loop.progress());
        if done == before {
            return None;
        }
        heartbeat.beat();
    }
}

async fn pause_between_rounds(pause: Pause, wakeup: &Notify) {
    match pause {
        Pause::Exactly(time) => sleep(time.min(MAX_PAUSE)).await,
        Pause::AtMost(time) => tokio::select! {
            () = wakeup.notified() => {}
            () = sleep(time.min(MAX_PAUSE)) => {}
        },
        Pause::Due(time) => tokio::select! {
            () = wakeup.notified() => {}
            () = sleep_precisely(time.min(MAX_PAUSE)) => {}
        },
    }
}

/// Sleeps as precisely as the system's clock. The runtime's timer counts whole milliseconds and rounds up, so a
/// thread sleeps the last of them. If the future is dropped, that thread sleeps on to their end.
async fn sleep_precisely(time: Duration) {
    let end = Instant::now() + time;
    if let Some(whole) = time.checked_sub(TIMER_RESOLUTION) {
        sleep(whole).await;
    }
    let remaining = end.saturating_duration_since(Instant::now());
    if !remaining.is_zero() && spawn_blocking(move || std::thread::sleep(remaining)).await.is_err()
    {
        sleep(remaining).await;
    }
}

impl LoopContext {
    async fn last_round_timeout(&self) {
        let last = async {
            self.soft.cancelled().await;
            sleep(LAST_ROUND_TIMEOUT).await;
        };
        tokio::select! {
            () = self.hard.cancelled() => {}
            () = last => {}
        }
    }

    fn report_outcome(
        &self,
        name: &'static str,
        outcome: Result<Pause, LoopError>,
        log_throttle: &LogThrottle,
    ) -> Pause {
        match outcome {
            Ok(pause) => {
                self.database.record_success();
                return pause;
            }
            Err(error) => self.report_error(name, &error, log_throttle),
        }
        Pause::Exactly(jittered(FAILURE_PAUSE))
    }

    fn report_error(&self, name: &'static str, error: &LoopError, log_throttle: &LogThrottle) {
        // The link logs and counts this, and the database was not queried.
        if matches!(error, LoopError::BrokerUnavailable | LoopError::Broker(_)) {
            return;
        }
        table::LOOP_ERRORS.add([name], 1);
        match error {
            LoopError::Store(error) if is_outage(error) => self.database.record_failure(error),
            error => {
                if log_throttle.permits(std::time::Instant::now()) {
                    tracing::error!(loop.name = name, "the {name} cannot do its work: {error}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use sexton_service::clock;
    use sexton_service::health::Readiness;
    use sexton_store::Now;

    use super::*;

    /// Waits for an answer that never arrives.
    struct Unanswered;

    impl BackgroundLoop for Unanswered {
        const NAME: &'static str = "unanswered";
        const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
        type Report = ();

        async fn run_once(&self, _: Now) -> Result<(), LoopError> {
            std::future::pending().await
        }

        fn pause(&self, (): &()) -> Pause {
            Pause::AtMost(Duration::ZERO)
        }
    }

    /// Does one piece of work each minute, until none is left.
    struct Piecewise {
        left: AtomicU64,
        ends: bool,
    }

    impl BackgroundLoop for Piecewise {
        const NAME: &'static str = "piecewise";
        const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
        type Report = ();

        async fn run_once(&self, _: Now) -> Result<(), LoopError> {
            while self.left.load(Ordering::Relaxed) > 0 {
                sleep(Duration::from_mins(1)).await;
                self.left.fetch_sub(1, Ordering::Relaxed);
            }
            if self.ends { Ok(()) } else { std::future::pending().await }
        }

        fn progress(&self) -> u64 {
            u64::MAX - self.left.load(Ordering::Relaxed)
        }

        fn pause(&self, (): &()) -> Pause {
            Pause::AtMost(Duration::ZERO)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_is_given_up_when_it_makes_no_progress_and_not_for_its_length() {
        let (liveness, began) = (Liveness::new(), Instant::now());
        let heartbeat = liveness.register("piecewise", 2 * Piecewise::ROUND_TIMEOUT);
        let background_loop = |ends| Piecewise { left: AtomicU64::new(60), ends };
        let round = run_round(&background_loop(true), &heartbeat).await;
        assert!(matches!(round, Some(Ok(()))));
        assert_eq!(began.elapsed(), Duration::from_hours(1));
        assert!(liveness.is_alive(), "it has sent heartbeats all the while");
        let began = Instant::now();
        assert!(run_round(&background_loop(false), &heartbeat).await.is_none());
        let took = began.elapsed();
        assert!(took <= Duration::from_hours(1) + 2 * Piecewise::ROUND_TIMEOUT, "{took:?}");
    }

    fn context() -> LoopContext {
        let condition = Readiness::new().condition("database", clock::now());
        LoopContext {
            started: CancellationToken::new(),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            liveness: Liveness::new(),
            database: Reachability::new(condition),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_that_is_not_answered_does_not_use_up_the_grace() {
        let context = context();
        context.started.cancel();
        let running = tokio::spawn(run(Unanswered, Arc::default(), context.clone()));
        sleep(Duration::from_secs(1)).await;
        let stopped = Instant::now();
        context.soft.cancel();
        running.await.unwrap().unwrap();
        assert_eq!(stopped.elapsed().as_secs(), LAST_ROUND_TIMEOUT.as_secs());
    }

    #[tokio::test]
    async fn a_sharp_rest_is_not_too_short_and_news_end_it() {
        let wakeup = Notify::new();
        let began = Instant::now();
        for time in [300, 2_500].map(Duration::from_micros) {
            pause_between_rounds(Pause::Due(time), &wakeup).await;
        }
        assert!(began.elapsed() >= Duration::from_micros(2_800));
        wakeup.notify_one();
        let long =
            timeout(MAX_PAUSE, pause_between_rounds(Pause::Due(Duration::from_hours(1)), &wakeup));
        long.await.unwrap();
        assert!(began.elapsed() < MAX_PAUSE / 2);
    }
}
