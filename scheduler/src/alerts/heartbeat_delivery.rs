//! The heartbeat sender: sends heartbeats of jobs to outside watchers.
//!
//! Any number of schedulers send side by side, by the same rounds as notifications, but in a loop of its own:
//! neither waits for the other. A claim gives an address to one of them, with up to sixteen heartbeats of different jobs, which are
//! sent at the same time. It is committed before anything is sent: a crash in between leaves heartbeats that are sent again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use sexton_model::heartbeat::retry_in;
use sexton_model::notification::FAILURES_OF_A_FAILING_CHANNEL;
use sexton_outbound::channel::send::{SendError, Sender};
use sexton_service::fault;
use sexton_service::metrics::table;
use sexton_store::alerts::claim::ClaimFilter;
use sexton_store::heartbeats::claim::{ClaimedHeartbeat, ClaimedHeartbeats, HeartbeatClaim, claim};
use sexton_store::heartbeats::expire::{Expired, expire};
use sexton_store::heartbeats::outcome::{HeartbeatFailure, HeartbeatResults, record};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::alerts::delivery_round::{Claimed, Deliveries, run_round};
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often it looks for heartbeats that are too old, within a round as well.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(10);

/// The loop that sends heartbeats.
pub struct HeartbeatSender {
    store: Store,
    sender: Sender,
    stop: CancellationToken,
    settled: AtomicU64,
    expired_at: Mutex<Option<Instant>>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeartbeatReport {
    /// Heartbeats that were accepted.
    pub sent: usize,
    /// Heartbeats that were not, and are tried again.
    pub failed: usize,
    /// Heartbeats that nobody needs any more.
    pub dropped: usize,
}

/// What became of a claim.
pub(super) struct Settled {
    claim: HeartbeatClaim,
    results: HeartbeatResults,
    recorded: Result<(), LoopError>,
}

impl HeartbeatSender {
    /// Creates the loop, whose first round runs at once. Once `stop` is cancelled, a round claims nothing more.
    pub const fn new(store: Store, sender: Sender, stop: CancellationToken) -> Self {
        let (settled, expired_at) = (AtomicU64::new(0), Mutex::new(None));
        Self { store, sender, stop, settled, expired_at }
    }

    /// Returns whether a batch of what is too old is to be dropped: none was begun within the interval, or the last one was full.
    fn begin_expiry(&self) -> bool {
        let mut last = self.expired_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= EXPIRE_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    async fn send(&self, heartbeat: &ClaimedHeartbeat, claim: &HeartbeatClaim) -> Sent {
        match &heartbeat.settings {
            Ok(settings) => {
                self.sender.send_heartbeat(settings, &heartbeat.message, claim.at).await
            }
            Err(error) => Err(SendError {
                message: format!("the job's heartbeat cannot be read: {error}"),
                is_refused: true,
                retry_after: None,
            }),
        }
    }
}

type Sent = Result<(), SendError>;

/// Decides how long the heartbeats that were not accepted wait, and their address if it accepted none of them. An answer that refuses
/// one is about that one: the address works.
fn judge(claim: &HeartbeatClaim, sent: &[Sent]) -> HeartbeatResults {
    let mut results = HeartbeatResults::default();
    for (heartbeat, sent) in claim.heartbeats.iter().zip(sent) {
        match sent {
            Ok(()) => results.sent.push(heartbeat.id),
            Err(error) => {
                let (refused, after) = (error.is_refused, error.retry_after);
                results.failed.push(HeartbeatFailure {
                    id: heartbeat.id,
                    job: heartbeat.job,
                    error: error.message.clone(),
                    retry_in: retry_in(heartbeat.tries, refused, after, fastrand::f64()),
                });
            }
        }
    }
    let answers = sent.iter().any(|sent| sent.as_ref().err().is_none_or(|error| error.is_refused));
    if !answers && let Some(Err(error)) = sent.last() {
        let wait = retry_in(claim.failures + 1, false, error.retry_after, fastrand::f64());
        results.address_waits = Some((wait, error.message.clone()));
    }
    results
}

impl Deliveries for HeartbeatSender {
    type Claim = HeartbeatClaim;
    type Settled = Settled;
    type Report = HeartbeatReport;

    fn pass_claimed() {
        fault::point("scheduler.heartbeat_claimed");
    }

    fn pass_recorded() {
        fault::point("scheduler.heartbeat_recorded");
    }

    async fn tidy(&self, now: Now, report: &mut HeartbeatReport) -> Result<(), LoopError> {
        if !self.begin_expiry() {
            return Ok(());
        }
        let Expired { dropped, more } =
            with_timeout(QUERY_TIMEOUT, expire(&self.store, now)).await?;
        if more {
            *self.expired_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        table::HEARTBEATS.add(["dropped"], dropped as u64);
        report.dropped += dropped;
        Ok(())
    }

    async fn claim(
        &self,
        filter: ClaimFilter<'_>,
        now: Now,
        report: &mut HeartbeatReport,
    ) -> Result<Claimed<HeartbeatClaim>, LoopError> {
        let claiming = claim(&self.store, filter, now);
        let (claimed, dropped) = match with_timeout(QUERY_TIMEOUT, claiming).await? {
            ClaimedHeartbeats::Nothing => (Claimed::Nothing, 0),
            ClaimedHeartbeats::Dropped(dropped) => (Claimed::Dropped, dropped),
            ClaimedHeartbeats::Delivery(claim) => {
                let dropped = claim.dropped;
                (Claimed::Delivery(claim), dropped)
            }
        };
        table::HEARTBEATS.add(["dropped"], dropped as u64);
        report.dropped += dropped;
        Ok(claimed)
    }

    fn destination(claim: &HeartbeatClaim) -> (String, bool) {
        (claim.address.clone(), claim.failures > 0)
    }

    async fn deliver(&self, claim: HeartbeatClaim, now: Now) -> Settled {
        let sent = join_all(claim.heartbeats.iter().map(|one| self.send(one, &claim))).await;
        let results = judge(&claim, &sent);
        if !results.sent.is_empty() {
            fault::point("scheduler.heartbeat_accepted");
        }
        let recording = record(&self.store, &claim, &results, now);
        let recorded = with_timeout(QUERY_TIMEOUT, recording).await;
        self.settled.fetch_add(1, Ordering::Relaxed);
        Settled { claim, results, recorded: recorded.map_err(LoopError::from) }
    }

    fn add(report: &mut HeartbeatReport, settled: Settled) -> Result<(), LoopError> {
        let Settled { claim, results, recorded } = settled;
        report.sent += results.sent.len();
        report.failed += results.failed.len();
        table::HEARTBEATS.add(["sent"], results.sent.len() as u64);
        table::HEARTBEATS.add(["failed"], results.failed.len() as u64);
        for failure in &results.failed {
            let found = claim.heartbeats.iter().find(|one| one.id == failure.id);
            // Later failures are in the incident.
            let Some(heartbeat) = found.filter(|one| one.tries == FAILURES_OF_A_FAILING_CHANNEL)
            else {
                continue;
            };
            let (job, error) = (&heartbeat.message.job, &failure.error);
            tracing::warn!(
                job.name = job,
                "a heartbeat of {job} does not arrive: {error}; it is tried for an hour"
            );
        }
        recorded
    }
}

impl BackgroundLoop for HeartbeatSender {
    const NAME: &'static str = "heartbeat_sender";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = HeartbeatReport;

    async fn run_once(&self, now: Now) -> Result<HeartbeatReport, LoopError> {
        run_round(self, &self.stop, now).await
    }

    fn progress(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    fn pause(&self, _: &HeartbeatReport) -> Pause {
        Pause::AtMost(POLL_INTERVAL)
    }
}
