//! A message held by a consumer, until it is acknowledged or returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::{Acker, Channel};
use tokio::time::timeout;

use crate::properties::{Properties, last_death};

/// A received message.
///
/// The broker considers it delivered until [`Delivery::ack`] or [`Delivery::nack_requeue`]. Dropped without either,
/// it stays delivered until its channel closes, and then comes again, to any consumer.
#[derive(Debug)]
pub struct Delivery {
    /// The body, as it came.
    pub body: Vec<u8>,
    /// The allow-listed properties, safe to copy.
    pub properties: Properties,
    /// Whether the broker has delivered it before. A hint only: the rows count attempts.
    pub redelivered: bool,
    /// The reason with which the broker dead-lettered it last (`delivery_limit`, `expired` …), if it did.
    pub last_death: Option<String>,
    /// The queue out of which the broker moved it then.
    pub last_death_queue: Option<String>,
    acker: Acker,
    ack_timeout: Duration,
    // An ack must use the channel of the delivery: the handle keeps it open, even if the slot has moved on to
    // another.
    _channel: Channel,
    held: HeldGuard,
}

/// The result of an acknowledgement.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// The client wrote it to the connection. The broker does not answer acks, so it may still be lost: the message
    /// then comes again.
    Written,
    /// The channel is closed: the message is in its queue again.
    ChannelGone,
}

impl Delivery {
    pub(crate) fn new(
        raw: lapin::message::Delivery,
        channel: Channel,
        held_deliveries: &Arc<HeldDeliveries>,
        ack_timeout: Duration,
    ) -> Self {
        let (last_death, last_death_queue) = last_death(&raw.properties).unzip();
        Self {
            properties: Properties::read(&raw.properties),
            last_death,
            last_death_queue,
            body: raw.data,
            redelivered: raw.redelivered,
            acker: raw.acker,
            ack_timeout,
            _channel: channel,
            held: HeldGuard::new(held_deliveries),
        }
    }

    /// Acknowledges the message.
    pub async fn ack(mut self) -> AckOutcome {
        self.held.answered = true;
        outcome(&timeout(self.ack_timeout, self.acker.ack(BasicAckOptions::default())).await)
    }

    /// Acknowledges the message and every earlier one on its channel.
    pub(crate) async fn ack_up_to(self) -> AckOutcome {
        let Self { acker, ack_timeout, _channel, mut held, .. } = self;
        held.answered = true;
        drop(held);
        outcome(&timeout(ack_timeout, acker.ack(BasicAckOptions { multiple: true })).await)
    }

    /// Marks it as acknowledged together with a later one.
    pub(crate) fn mark_covered(mut self) {
        self.held.answered = true;
    }

    /// Returns whether every earlier message of its slot has been answered; `covered`: how many of those that it
    /// holds will be, together with this one.
    pub(crate) fn is_next(&self, covered: usize) -> bool {
        let held_deliveries = &self.held.held_deliveries;
        // In this order: a delivery leaves the count only after it has recorded whether it was answered.
        held_deliveries.held.load(Ordering::Acquire) == 1 + covered
            && !held_deliveries.any_unanswered.load(Ordering::Relaxed)
    }

    /// Returns the message to its queue, for a message that was never begun.
    ///
    /// As a negative acknowledgement, never as a rejection: from RabbitMQ 4.3 on only the latter counts towards the
    /// delivery limit. Never for a message that was processed: it comes back at once.
    pub async fn nack_requeue(mut self) -> AckOutcome {
        self.held.answered = true;
        outcome(&timeout(self.ack_timeout, return_to_queue(&self.acker)).await)
    }
}

pub(crate) async fn return_to_queue(acker: &Acker) -> lapin::Result<bool> {
    acker.nack(BasicNackOptions { requeue: true, ..Default::default() }).await
}

fn outcome<E>(answer: &Result<lapin::Result<bool>, E>) -> AckOutcome {
    match answer {
        Ok(Ok(true)) => AckOutcome::Written,
        Ok(Ok(false) | Err(_)) | Err(_) => AckOutcome::ChannelGone,
    }
}

/// The deliveries of a slot.
#[derive(Debug, Default)]
pub(crate) struct HeldDeliveries {
    /// Number of live deliveries.
    held: AtomicUsize,
    /// Whether any was dropped without an answer.
    any_unanswered: AtomicBool,
}

impl HeldDeliveries {
    /// Returns how many messages the slot holds.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// Counts a delivery as held while it lives, so that the watchdog does not take a full slot for a ghost consumer.
#[derive(Debug)]
struct HeldGuard {
    held_deliveries: Arc<HeldDeliveries>,
    answered: bool,
}

impl HeldGuard {
    fn new(held_deliveries: &Arc<HeldDeliveries>) -> Self {
        held_deliveries.held.fetch_add(1, Ordering::Relaxed);
        Self { held_deliveries: Arc::clone(held_deliveries), answered: false }
    }
}

impl Drop for HeldGuard {
    fn drop(&mut self) {
        if !self.answered {
            self.held_deliveries.any_unanswered.store(true, Ordering::Relaxed);
        }
        self.held_deliveries.held.fetch_sub(1, Ordering::Release);
    }
}
