//! A slot's consumer: one channel, one queue, as long as the process runs.
//!
//! It survives everything that can happen to its channel: a lost connection, a channel closed by the broker, a
//! deleted queue, a delivery held for too long, and a queue that was deleted and created again, after which the
//! broker silently keeps a ghost of the consumer. For the last it checks, after a silence, whether the queue has
//! messages, and starts anew if so.
//!
//! It decides nothing about messages. Unacknowledged deliveries come again.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt};
use lapin::{Channel, Consumer};
use sexton_model::outage::{FailureLine, Outage};
use tokio::time::{Instant, sleep_until, timeout};

use crate::ack_batch::AckBatch;
use crate::attach::{attach, cancel};
use crate::consumer_status::ConsumerStatus;
use crate::delivery::{Delivery, HeldDeliveries};
use crate::inspect::{Depth, InspectError};
use crate::link::Link;
use crate::reconnect::ReconnectPauses;

/// Pause between two checks that find undelivered messages, before the second counts.
const RECHECK_DELAY: Duration = Duration::from_secs(1);

/// After a consumer that lasted this long, the next pause is short again.
const STABLE_AFTER: Duration = Duration::from_secs(5);

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Consumes one queue. A drop cancels its consumer; held deliveries can still be acknowledged, undelivered ones
/// return to the queue.
pub struct SlotConsumer {
    link: Link,
    queue: String,
    prefetch: u16,
    one_at_a_time: bool,
    phase: Phase,
    held_deliveries: Arc<HeldDeliveries>,
    ack_batch: AckBatch,
    pauses: ReconnectPauses,
    outage: Outage,
    consuming: ConsumerStatus,
}

enum Phase {
    /// No consumer, and none before the instant.
    Detached(Instant),
    /// Being set up. Kept across calls, so that a `select!` around `next` does not restart it.
    Attaching(Pending<Result<Attached, String>>),
    /// Consuming.
    Attached(Box<Attached>),
    /// Cancelled by [`SlotConsumer::suspend`]; deliveries of the channel may still be held.
    Suspended(u64, Channel),
}

struct Attached {
    generation: u64,
    channel: Channel,
    stream: Consumer,
    since: Instant,
    watchdog: Watchdog,
}

enum Watchdog {
    /// Checks the queue at the instant; whether it is the second check.
    Sleeping(Instant, bool),
    Checking(Pending<Result<Depth, InspectError>>, bool),
}

impl Watchdog {
    fn after(pause: Duration) -> Self {
        Self::Sleeping(Instant::now() + pause, false)
    }
}

enum ConsumerEvent {
    Delivered(Box<lapin::message::Delivery>),
    Ended(String),
    CheckDue(bool),
    Checked(Result<Depth, InspectError>, bool),
}

impl SlotConsumer {
    /// Makes a consumer of `queue` that holds at most `prefetch` (at least one) unacknowledged deliveries. Nothing
    /// happens before the first [`SlotConsumer::next`].
    pub fn new(link: &Link, queue: impl Into<String>, prefetch: u16) -> Self {
        Self {
            link: link.clone(),
            queue: queue.into(),
            prefetch: prefetch.max(1),
            one_at_a_time: false,
            phase: Phase::Detached(Instant::now()),
            held_deliveries: Arc::default(),
            ack_batch: AckBatch::for_prefetch(prefetch),
            pauses: ReconnectPauses::new(),
            outage: Outage::default(),
            consuming: ConsumerStatus::default(),
        }
    }

    /// Waits for the next message; `None` when the link is closed or has failed for good. Resumes consuming after
    /// [`SlotConsumer::suspend`].
    ///
    /// Cancel-safe: dropping the future loses no delivery.
    pub async fn next(&mut self) -> Option<Delivery> {
        loop {
            if !matches!(self.phase, Phase::Attached(_)) {
                // On the channel of their delivery.
                self.ack_batch.flush().await;
            }
            match &mut self.phase {
                Phase::Detached(not_before) => {
                    sleep_until(*not_before).await;
                    self.link.up().await?;
                    self.phase = Phase::Attaching(self.attach(None));
                }
                Phase::Suspended(generation, channel) => {
                    let reusable = Some((*generation, channel.clone()));
                    self.phase = Phase::Attaching(self.attach(reusable));
                }
                Phase::Attaching(attaching) => match attaching.await {
                    Ok(attached) => self.set_attached(attached),
                    Err(reason) => self.detach(&reason, false),
                },
                Phase::Attached(attached) => {
                    let generation = attached.generation;
                    match next_event_after_acks(attached, &mut self.ack_batch, &self.link).await {
                        ConsumerEvent::Delivered(raw) => {
                            self.pauses.reset();
                            attached.watchdog = Watchdog::after(idle_check_interval(&self.link));
                            let channel = attached.channel.clone();
                            let close = self.link.timeouts().close;
                            return Some(Delivery::new(
                                *raw,
                                channel,
                                &self.held_deliveries,
                                close,
                            ));
                        }
                        ConsumerEvent::Ended(reason) => {
                            let lost = self.link.generation() != generation;
                            self.detach(&reason, lost);
                        }
                        ConsumerEvent::CheckDue(second) => self.check_queue(second),
                        ConsumerEvent::Checked(depth, second) => self.handle_check(&depth, second),
                    }
                }
            }
        }
    }

    /// Stops consuming and returns deliveries that `next` has not yielded yet to the queue. When it returns, the
    /// broker delivers nothing more to this slot; a held delivery can still be acknowledged. The following `next`
    /// consumes again.
    ///
    /// Dropped in the middle, the channel is closed once no delivery is held, which returns the others.
    pub async fn suspend(&mut self) {
        self.ack_batch.flush().await;
        if let Phase::Attaching(attaching) = &mut self.phase {
            // A consumer that is being set up may exist before its future is dropped, on a channel that lives on:
            // wait for it, to cancel it properly.
            match attaching.await {
                Ok(attached) => self.set_attached(attached),
                Err(reason) => self.detach(&reason, false),
            }
        }
        self.consuming.set(false);
        let detached = Phase::Detached(Instant::now());
        match std::mem::replace(&mut self.phase, detached) {
            Phase::Attached(attached) => {
                let (generation, channel) = (attached.generation, attached.channel.clone());
                let close = self.link.timeouts().close;
                if timeout(close, cancel(attached.channel, attached.stream)).await == Ok(true) {
                    self.phase = Phase::Suspended(generation, channel);
                } else {
                    // An uncancelled consumer would go on receiving: only the end of the channel is certain.
                    let closing = channel.close(200, "slot suspended".into());
                    if !matches!(timeout(close, closing).await, Ok(Ok(()))) {
                        self.link.suspect(generation);
                    }
                }
            }
            suspended @ Phase::Suspended(..) => self.phase = suspended,
            Phase::Detached(_) | Phase::Attaching(_) => {}
        }
    }

    /// Limits the broker to one unanswered message at a time, or ends that. The consumer is set up anew if that
    /// changes anything.
    pub async fn one_at_a_time(&mut self, yes: bool) {
        let before = self.effective_prefetch();
        self.one_at_a_time = yes;
        if self.effective_prefetch() != before {
            self.suspend().await;
        }
    }

    fn effective_prefetch(&self) -> u16 {
        if self.one_at_a_time { 1 } else { self.prefetch }
    }

    /// Acknowledges a message of this slot that would have no effect if it came again: at once, or with following
    /// ones, when [`SlotConsumer::next`] has none at hand or by [`SlotConsumer::flush_acks_when_due`].
    pub async fn ack_batched(&mut self, delivery: Delivery) {
        self.ack_batch.add(delivery).await;
    }

    /// Sends the acknowledgements of [`Self::ack_batched`] within 50 ms, as long as it is polled. Cancel-safe.
    pub async fn flush_acks_when_due(&mut self) -> Infallible {
        self.ack_batch.flush_acks_when_due().await
    }

    /// Returns its consuming status.
    pub fn consuming(&self) -> ConsumerStatus {
        self.consuming.clone()
    }

    /// Returns the queue that it consumes.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    fn attach(&self, reusable: Option<(u64, Channel)>) -> Pending<Result<Attached, String>> {
        let (link, queue, prefetch) =
            (self.link.clone(), self.queue.clone(), self.effective_prefetch());
        Box::pin(async move {
            let step = link.timeouts().step;
            let attaching = attach(&link, &queue, prefetch, reusable);
            let (generation, channel, stream) =
                timeout(step * 2, attaching).await.unwrap_or_else(|_| {
                    // A late consumer on a kept channel would be a ghost that this slot has made itself.
                    link.suspect(link.generation());
                    Err("the broker does not set up a consumer".to_owned())
                })?;
            let watchdog = Watchdog::after(idle_check_interval(&link));
            Ok(Attached { generation, channel, stream, since: Instant::now(), watchdog })
        })
    }

    fn set_attached(&mut self, attached: Attached) {
        // Each outage is logged from its beginning: the pauses between consumers already limit the lines.
        let now = Instant::now().into_std();
        if let Some(past) = std::mem::take(&mut self.outage).record_recovery(now) {
            let (queue, down_s) = (&self.queue, past.lasted.as_secs_f64());
            tracing::info!(queue.name = queue, down_s, "consuming again");
        }
        self.phase = Phase::Attached(Box::new(attached));
        self.consuming.set(true);
    }

    /// Drops the consumer. The link logs an end that comes with the connection's.
    fn detach(&mut self, reason: &str, with_connection: bool) {
        let now = Instant::now();
        if let Phase::Attached(attached) = &self.phase
            && now.duration_since(attached.since) >= STABLE_AFTER
        {
            self.pauses.reset();
        }
        let pause = if with_connection { Duration::ZERO } else { self.pauses.next() };
        self.consuming.set(false);
        self.phase = Phase::Detached(now + pause);
        if with_connection || !self.link.is_up() {
            return;
        }
        let queue = &self.queue;
        match self.outage.record_failure(now.into_std()) {
            Some(FailureLine::Began) => {
                tracing::warn!(queue.name = queue, "the consumer has ended: {reason}; rebuilding");
            }
            Some(FailureLine::Continues { lasting, .. }) => {
                let down_s = lasting.as_secs();
                tracing::warn!(queue.name = queue, down_s, "still not consuming: {reason}");
            }
            None => {}
        }
    }

    /// Checks the queue's depth, unless the slot is full: then silence is natural.
    fn check_queue(&mut self, second: bool) {
        let full = self.held_deliveries.held() >= usize::from(self.effective_prefetch());
        let Phase::Attached(attached) = &mut self.phase else { return };
        attached.watchdog = if full {
            Watchdog::after(idle_check_interval(&self.link))
        } else {
            let (link, queue) = (self.link.clone(), self.queue.clone());
            Watchdog::Checking(Box::pin(async move { link.depth(&queue).await }), second)
        };
    }

    fn handle_check(&mut self, depth: &Result<Depth, InspectError>, second: bool) {
        let Phase::Attached(attached) = &mut self.phase else { return };
        let pause = match depth {
            Ok(Depth { ready: 0, .. }) | Err(InspectError::Unavailable(_)) => {
                idle_check_interval(&self.link)
            }
            // The message may be on its way here, or to another slot.
            Ok(_) if !second => {
                attached.watchdog = Watchdog::Sleeping(Instant::now() + RECHECK_DELAY, true);
                return;
            }
            Ok(Depth { ready, .. }) => {
                self.detach(&format!("{ready} messages are waiting and none is delivered"), false);
                return;
            }
            Err(InspectError::Missing(_)) => {
                self.detach("the queue has disappeared", false);
                return;
            }
        };
        attached.watchdog = Watchdog::after(pause);
    }
}

impl Drop for SlotConsumer {
    fn drop(&mut self) {
        self.consuming.set(false);
    }
}

impl std::fmt::Debug for SlotConsumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlotConsumer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

fn idle_check_interval(link: &Link) -> Duration {
    link.timeouts().idle_check
}

/// Waits for the next event of a consumer. Unless one is ready, spent deliveries are acknowledged first.
async fn next_event_after_acks(
    attached: &mut Attached,
    ack_batch: &mut AckBatch,
    link: &Link,
) -> ConsumerEvent {
    if !ack_batch.is_empty() {
        if let Some(at_hand) = next_event(attached, link).now_or_never() {
            return at_hand;
        }
        ack_batch.flush().await;
    }
    next_event(attached, link).await
}

/// Waits for the next event of a consumer. Cancel-safe.
async fn next_event(attached: &mut Attached, link: &Link) -> ConsumerEvent {
    let watchdog = async {
        match &mut attached.watchdog {
            Watchdog::Sleeping(until, second) => {
                sleep_until(*until).await;
                ConsumerEvent::CheckDue(*second)
            }
            Watchdog::Checking(check, second) => ConsumerEvent::Checked(check.await, *second),
        }
    };
    let generation = attached.generation;
    let mut state = link.state();
    tokio::select! {
        biased;
        item = attached.stream.next() => match item {
            Some(Ok(raw)) => ConsumerEvent::Delivered(Box::new(raw)),
            Some(Err(error)) => ConsumerEvent::Ended(error.to_string()),
            None => ConsumerEvent::Ended("the broker has cancelled it".to_owned()),
        },
        _ = state.wait_for(|_| link.generation() != generation) => {
            ConsumerEvent::Ended("the connection is gone".to_owned())
        }
        event = watchdog => event,
    }
}
