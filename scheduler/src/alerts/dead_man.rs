//! The dead man's switch: pings an outside watcher while the platform is well.
//!
//! In each period one scheduler judges the platform, and pings unless something is wrong. The watcher raises the alarm when pings
//! stay away, so it also notices what nobody here can report: all schedulers dead, the network gone, the database away.
//!
//! The row `dead_man` says when the last ping was, and a lock lets one scheduler judge at a time. A scheduler that dies between its
//! ping and the record leaves one that is sent again at once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_broker::Link;
use sexton_model::dead_man::{PlatformSigns, problems};
use sexton_outbound::channel::send::Sender;
use sexton_outbound::http::Url;
use sexton_service::metrics::table;
use sexton_store::dead_man::{self, DeadMan};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The share of a period after which the next ping is due, so that a scheduler that looks a little early does not wait for a whole
/// further look.
const DUE_SHARE: f64 = 0.9;
/// How many times in each period a scheduler looks whether a ping is due.
const LOOKS: u32 = 8;
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The loop that pings. Without an address it does nothing.
pub struct DeadManSwitch {
    store: Store,
    link: Link,
    sender: Sender,
    target: Option<(Url, Duration)>,
    logged: Mutex<Option<String>>,
}

/// What a round did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum DeadManReport {
    /// No ping is due, or another scheduler judges.
    #[default]
    NotDue,
    /// The watcher accepted a ping.
    Pinged,
    /// No ping was sent, or none was accepted; why.
    Silent(String),
}

impl DeadManSwitch {
    /// Creates the loop, whose first round runs at once. `target` is the watcher's URL and the period.
    pub const fn new(
        store: Store,
        link: Link,
        sender: Sender,
        target: Option<(Url, Duration)>,
    ) -> Self {
        Self { store, link, sender, target, logged: Mutex::new(None) }
    }

    /// Judges the platform, pings, and returns what is wrong otherwise.
    async fn judge(
        &self,
        url: &Url,
        is_connected: bool,
        at: DateTime<Utc>,
        now: Now,
    ) -> Result<Option<String>, LoopError> {
        let reading = with_timeout(QUERY_TIMEOUT, dead_man::read_signs(&self.store, now));
        let signs = PlatformSigns { is_connected, ..reading.await? };
        let problems = problems(&signs);
        if !problems.is_empty() {
            return Ok(Some(problems.join("; ")));
        }
        let pinged = self.sender.ping(url, at).await;
        Ok(pinged.err().map(|error| format!("the watcher did not accept the ping: {error}")))
    }

    /// Logs a problem once, and its end.
    fn log(&self, problem: Option<&str>) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        match (logged.is_some(), problem) {
            (false, Some(problem)) => tracing::error!(
                "the dead man's switch does not ping: {problem}; the watcher will raise an alarm"
            ),
            (true, None) => tracing::info!("the dead man's switch pings again"),
            _ => {}
        }
        *logged = problem.map(str::to_owned);
    }
}

/// Returns whether a ping is due: none was accepted within a period, and there was no judgement within the look interval. A scheduler
/// that cannot ping, since it is cut off from RabbitMQ, waits longer: its judgements are no reason for another one to wait.
fn is_due(row: &DeadMan, period: Duration, is_connected: bool) -> bool {
    let pause = if is_connected { look_interval(period) } else { period };
    let older = |at: Option<DateTime<Utc>>, age: Duration| {
        let age = TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX);
        // An instant that is to come was written by a clock that was put back.
        at.is_none_or(|at| row.now - at >= age || at > row.now)
    };
    older(row.pinged_at, period.mul_f64(DUE_SHARE))
        && (row.problem.is_none() || older(row.tried_at, pause.mul_f64(DUE_SHARE)))
}

/// Returns how often a scheduler looks whether a ping is due.
fn look_interval(period: Duration) -> Duration {
    (period / LOOKS).min(MAX_LOOK_INTERVAL)
}

impl BackgroundLoop for DeadManSwitch {
    const NAME: &'static str = "dead_man";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = DeadManReport;

    async fn run_once(&self, now: Now) -> Result<DeadManReport, LoopError> {
        let Some((url, period)) = &self.target else { return Ok(DeadManReport::NotDue) };
        let locking = ExclusiveLock::try_acquire(&self.store, ExclusiveTask::DeadMan, now);
        let Some(lock) = with_timeout(QUERY_TIMEOUT, locking).await? else {
            return Ok(DeadManReport::NotDue);
        };
        let row = with_timeout(QUERY_TIMEOUT, dead_man::read(&self.store, now)).await?;
        let mut report = DeadManReport::NotDue;
        let is_connected = self.link.is_up();
        if is_due(&row, *period, is_connected) {
            let problem = self.judge(url, is_connected, row.now, now).await?;
            let recording = dead_man::record(&self.store, problem.as_deref(), now);
            with_timeout(QUERY_TIMEOUT, recording).await?;
            self.log(problem.as_deref());
            report = problem.map_or(DeadManReport::Pinged, DeadManReport::Silent);
        }
        with_timeout(QUERY_TIMEOUT, lock.release()).await?;
        let pinged_at = if report == DeadManReport::Pinged { Some(row.now) } else { row.pinged_at };
        if let Some(at) = pinged_at {
            table::DEADMAN_LAST_PING.set(vec![([], at.timestamp_millis() as f64 / 1_000.0)]);
        }
        Ok(report)
    }

    fn pause(&self, _: &DeadManReport) -> Pause {
        let period = self.target.as_ref().map(|(_, period)| *period);
        Pause::AtMost(period.map_or(Duration::from_mins(10), look_interval))
    }
}
