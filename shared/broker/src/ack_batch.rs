//! Batches acknowledgements, which may come a little late.
//!
//! A ticket whose attempt has ended is spent: if it comes again, it opens nothing. So its acknowledgement may wait
//! for those of the next ones, and one `basic.ack` with `multiple` (AMQP 0-9-1, 1.8.3.13) covers all of them. It is
//! sent
//!
//! - after a quarter of the slot's prefetch, eight at most: with a prefetch below eight each message has its own, at
//!   once;
//! - before the slot waits for a message, and before it stops consuming;
//! - 50 ms after the first of them, while a task runs.
//!
//! `multiple` covers every earlier delivery on the channel. If the slot still holds one of them, or has dropped one
//! without an answer, which must come again, then each acknowledgement is for one message.
//!
//! **Crashes.** An unacknowledged message comes again, to any consumer, and opens nothing.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep_until};

use crate::delivery::Delivery;

/// Maximum number of messages in one acknowledgement.
const MAX_BATCH_ACKS: u16 = 8;
/// How long an acknowledgement may wait while a task runs.
const MAX_ACK_DELAY: Duration = Duration::from_millis(50);

/// The spent, unacknowledged deliveries of one slot, all of one channel.
pub(crate) struct AckBatch {
    /// The last of them, their number, and when the first came.
    waiting: Option<(Delivery, u16, Instant)>,
    /// An acknowledgement being sent. The next one must not overtake it: the broker closes the channel over one that
    /// arrives after another has covered its message.
    sending: Option<BoxFuture<'static, ()>>,
    max_acks: u16,
}

impl AckBatch {
    /// Makes the batch of a slot that holds up to `prefetch` messages.
    pub(crate) fn for_prefetch(prefetch: u16) -> Self {
        Self { waiting: None, sending: None, max_acks: (prefetch / 4).clamp(1, MAX_BATCH_ACKS) }
    }

    /// Returns whether no acknowledgement is left to send or being sent.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_none() && self.sending.is_none()
    }

    /// Acknowledges a delivery, now or with others.
    pub(crate) async fn add(&mut self, delivery: Delivery) {
        if self.max_acks == 1 || !delivery.is_next(usize::from(self.waiting.is_some())) {
            self.flush().await;
            let _ = delivery.ack().await;
            return;
        }
        let (count, since) = match self.waiting.take() {
            Some((covered, count, since)) => {
                covered.mark_covered();
                (count + 1, since)
            }
            None => (1, Instant::now()),
        };
        self.waiting = Some((delivery, count, since));
        if count >= self.max_acks {
            self.flush().await;
        }
    }

    /// Acknowledges all of them.
    ///
    /// Cancel-safe: after a drop in the middle, the acknowledgement is already handed over, or the next call sends
    /// it.
    pub(crate) async fn flush(&mut self) {
        self.finish_sending().await;
        if let Some((last, ..)) = self.waiting.take() {
            self.sending = Some(Box::pin(async move {
                let _ = last.ack_up_to().await;
            }));
            self.finish_sending().await;
        }
    }

    async fn finish_sending(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.await;
            self.sending = None;
        }
    }

    /// Acknowledges them in time, and never returns. Cancel-safe.
    pub(crate) async fn flush_acks_when_due(&mut self) -> Infallible {
        self.finish_sending().await;
        if let Some((_, _, since)) = &self.waiting {
            sleep_until(*since + MAX_ACK_DELAY).await;
            self.flush().await;
        }
        pending().await
    }
}
