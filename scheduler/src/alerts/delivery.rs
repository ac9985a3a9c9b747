//! The notification sender: sends what is due to the channels.
//!
//! Any number of schedulers send side by side. A claim gives a channel to one of them for a minute, so one message is under way to
//! each channel, and the order of an incident's messages is kept. The claim is committed before anything is sent: a crash in
//! between leaves messages that are sent again when the minute is over, under the same ids.
//!
//! Channels are sent to at the same time, at most eight, so a receiver that hangs delays its channel alone. Of
//! the eight at most four are channels whose last message was not accepted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sexton_model::channel::ChannelKind;
use sexton_model::notification::{Digest, FAILURES_OF_A_FAILING_CHANNEL, retry_in};
use sexton_outbound::channel::Delivery;
use sexton_outbound::channel::send::{SendError, Sender};
use sexton_service::fault;
use sexton_service::metrics::table;
use sexton_store::alerts::claim::{Claim, ClaimFilter, Claimed, claim};
use sexton_store::alerts::outcome::{
    ChannelChange, Recorded, SendFailure, record_failure, record_sent,
};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::alerts::delivery_round::{self, Deliveries, run_round};
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The loop that sends notifications.
pub struct NotificationSender {
    store: Store,
    sender: Sender,
    stop: CancellationToken,
    settled: AtomicU64,
}

/// What a round did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryReport {
    /// Messages that were accepted; a digest or a batch is one.
    pub accepted: usize,
    /// Messages that were not.
    pub failed: usize,
    /// Notifications that were parked.
    pub parked: usize,
    /// Notifications that nobody needed any more.
    pub dropped: usize,
    /// Channels that began to fail or work again, in this order.
    pub changes: Vec<ChannelChange>,
}

/// What became of a claim.
pub(super) struct Settled {
    claim: Claim,
    sent: Result<(), SendError>,
    recorded: Result<Recorded, LoopError>,
}

impl NotificationSender {
    /// Creates the loop, whose first round runs at once. Once `stop` is cancelled, a round claims nothing more.
    pub const fn new(store: Store, sender: Sender, stop: CancellationToken) -> Self {
        Self { store, sender, stop, settled: AtomicU64::new(0) }
    }
}

impl Deliveries for NotificationSender {
    type Claim = Box<Claim>;
    type Settled = Settled;
    type Report = DeliveryReport;

    fn pass_claimed() {
        fault::point("scheduler.notification_claimed");
    }

    fn pass_recorded() {
        fault::point("scheduler.notification_recorded");
    }

    async fn claim(
        &self,
        filter: ClaimFilter<'_>,
        now: Now,
        report: &mut DeliveryReport,
    ) -> Result<delivery_round::Claimed<Box<Claim>>, LoopError> {
        let claiming = claim(&self.store, filter, Uuid::now_v7(), now);
        Ok(match with_timeout(QUERY_TIMEOUT, claiming).await? {
            Claimed::Nothing => delivery_round::Claimed::Nothing,
            Claimed::Delivery(claim) => delivery_round::Claimed::Delivery(claim),
            Claimed::Dropped(kind, count) => {
                table::NOTIFICATIONS.add([kind.as_str(), "dropped"], count as u64);
                report.dropped += count;
                delivery_round::Claimed::Dropped
            }
        })
    }

    fn destination(claim: &Box<Claim>) -> (String, bool) {
        (claim.channel.clone(), claim.failures > 0)
    }

    async fn deliver(&self, claim: Box<Claim>, now: Now) -> Settled {
        let sent = match &claim.settings {
            Ok(settings) => self.sender.send(settings, &delivery(&claim), claim.at).await,
            Err(error) => Err(SendError {
                message: format!("the channel's settings cannot be read: {error}"),
                is_refused: true,
                retry_after: None,
            }),
        };
        let recorded = match &sent {
            Ok(()) => {
                fault::point("scheduler.notification_accepted");
                with_timeout(QUERY_TIMEOUT, record_sent(&self.store, &claim, now)).await
            }
            Err(error) => {
                let failure = failure(&claim, error);
                with_timeout(QUERY_TIMEOUT, record_failure(&self.store, &claim, failure, now)).await
            }
        };
        self.settled.fetch_add(1, Ordering::Relaxed);
        Settled { claim: *claim, sent, recorded: recorded.map_err(LoopError::from) }
    }

    fn add(report: &mut DeliveryReport, settled: Settled) -> Result<(), LoopError> {
        report.add(settled)
    }
}

/// Returns what is sent for a claim.
fn delivery(claim: &Claim) -> Delivery {
    match (claim.digest, claim.messages.as_slice()) {
        (Some(id), messages) => Delivery::Digest(Digest::new(id, messages)),
        (None, [one]) if claim.kind != ChannelKind::Alertmanager => {
            Delivery::Single(Box::new(one.clone()))
        }
        (None, messages) => Delivery::Batch(messages.to_vec()),
    }
}

/// Decides how long a claim and its channel wait after a failure.
fn failure<'a>(claim: &Claim, error: &'a SendError) -> SendFailure<'a> {
    let (refused, after) = (error.is_refused, error.retry_after);
    let jitter = fastrand::f64();
    SendFailure {
        error: &error.message,
        retry_in: retry_in(claim.attempts, refused, after, jitter),
        channel_waits: retry_in(claim.failures + 1, false, after, jitter),
    }
}

fn log_change(change: &ChannelChange) {
    let ChannelChange { channel, error } = change;
    if let Some(error) = error {
        tracing::error!(
            channel.name = channel,
            "the channel {channel} accepts nothing: {error}; `sexton channels list` shows since when"
        );
    } else {
        tracing::info!(channel.name = channel, "the channel {channel} works again");
    }
}

impl DeliveryReport {
    fn add(&mut self, settled: Settled) -> Result<(), LoopError> {
        let Settled { claim, sent, recorded } = settled;
        let kind = claim.kind.as_str();
        match &sent {
            Ok(()) => self.accepted += 1,
            Err(error) => {
                self.failed += 1;
                table::NOTIFICATIONS.add([kind, "failed"], claim.messages.len() as u64);
                if claim.failures + 1 < FAILURES_OF_A_FAILING_CHANNEL {
                    let (channel, id) = (&claim.channel, claim.messages.first().map(|one| one.id));
                    tracing::warn!(
                        channel.name = channel,
                        notification.id = id.map(tracing::field::display),
                        "the channel {channel} did not accept a notification: {error}"
                    );
                }
            }
        }
        let Recorded { finished, change } = recorded?;
        if sent.is_ok() {
            table::NOTIFICATIONS.add([kind, "sent"], finished as u64);
        } else {
            self.parked += finished;
            table::NOTIFICATIONS.add([kind, "parked"], finished as u64);
        }
        if let Some(change) = change {
            log_change(&change);
            self.changes.push(change);
        }
        Ok(())
    }
}

impl BackgroundLoop for NotificationSender {
    const NAME: &'static str = "notification_sender";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = DeliveryReport;

    async fn run_once(&self, now: Now) -> Result<DeliveryReport, LoopError> {
        run_round(self, &self.stop, now).await
    }

    fn progress(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    fn pause(&self, _: &DeliveryReport) -> Pause {
        Pause::AtMost(POLL_INTERVAL)
    }
}
