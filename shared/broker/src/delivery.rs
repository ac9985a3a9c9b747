//! A message in the hands of a consumer, until it is acknowledged or given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::{Acker, Channel};
use tokio::time::timeout;

use crate::properties::{Properties, last_death};

/// A received message.
///
/// The broker considers it taken until [`Delivery::ack`] or [`Delivery::nack_requeue`]. Dropped without
/// either, it stays taken until its channel closes, and then comes again, to whomever.
#[derive(Debug)]
pub struct Delivery {
    /// The body, as it came.
    pub body: Vec<u8>,
    /// The allow-listed properties, fit for a copy.
    pub properties: Properties,
    /// Whether the broker has handed it out before. A hint only: the rows count attempts.
    pub redelivered: bool,
    /// Why the broker itself moved it here last (`delivery_limit`, `expired` …), if it did.
    pub last_death: Option<String>,
    /// Out of which queue the broker moved it then.
    pub last_death_queue: Option<String>,
    acker: Acker,
    ack_timeout: Duration,
    // An ack must go to the channel of the delivery: it stays open while a delivery needs it, even
    // if the slot has moved on to another.
    _channel: Channel,
    held: HeldGuard,
}

/// What became of an acknowledgement.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// It was written to the connection. The broker does not answer acks, so it may still be lost:
    /// the message then comes again.
    Written,
    /// The channel is gone: the message has gone back to its queue and comes again.
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

    /// Says that the message has been dealt with for good.
    pub async fn ack(mut self) -> AckOutcome {
        self.held.answered = true;
        outcome(&timeout(self.ack_timeout, self.acker.ack(BasicAckOptions::default())).await)
    }

    /// The same, of every message before it on its channel as well.
    pub(crate) async fn ack_up_to(self) -> AckOutcome {
        let Self { acker, ack_timeout, _channel, mut held, .. } = self;
        held.answered = true;
        drop(held);
        outcome(&timeout(ack_timeout, acker.ack(BasicAckOptions { multiple: true })).await)
    }

    /// It is acknowledged together with a later one.
    pub(crate) fn mark_covered(mut self) {
        self.held.answered = true;
    }

    /// Whether every message that its slot was handed before it has been answered; `mark_covered`: how many of those that it
    /// holds will be, together with this one.
    pub(crate) fn is_next(&self, covered: usize) -> bool {
        let held_deliveries = &self.held.held_deliveries;
        // In this order: a delivery leaves the count only after it has recorded whether it was answered.
        held_deliveries.held.load(Ordering::Acquire) == 1 + covered
            && !held_deliveries.any_unanswered.load(Ordering::Relaxed)
    }

    /// Gives the message back to its queue, for a message that was never begun.
    ///
    /// As a negative acknowledgement, never as a rejection: from RabbitMQ 4.3 on only the latter
    /// counts towards the delivery limit. Never an answer to a message that was looked at: it comes
    /// back at once.
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

/// What a slot holds.
#[derive(Debug, Default)]
pub(crate) struct HeldDeliveries {
    /// Deliveries that live.
    held: AtomicUsize,
    /// Whether any was dropped without an answer.
    any_unanswered: AtomicBool,
}

impl HeldDeliveries {
    /// How many messages the slot has in its hands.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// Counts a delivery as held while it lives, so that the watchdog does not take a slot with full
/// hands for one that is passed over.
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
