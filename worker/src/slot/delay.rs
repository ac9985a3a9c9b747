//! Handles messages whose target queue refuses them: a slot must not wait for a queue.
//!
//! The copy is confirmed before the original is acknowledged, so a crash in between leaves two copies, never none.

use std::time::Duration;

use sexton_broker::{Delivery, Publication, publications};
use sexton_service::fault;
use tokio::time::{Instant, sleep};

use super::{RETRY_PAUSE, Slot};

/// How long a message stays in a delay queue.
const DELAY: Duration = Duration::from_secs(30);
/// Pause before a message goes to the tail of its own queue, which may deliver it again at once.
const TAIL_PAUSE: Duration = Duration::from_millis(100);

impl Slot {
    /// Publishes a copy and acknowledges the original; delays the original if the copy's queue refuses the
    /// copy. `parked`: the reason for parking, if the message is parked.
    pub(super) async fn publish_copy(
        &mut self,
        delivery: Delivery,
        copy: Publication,
        parked: Option<&str>,
    ) {
        match self.context.publish(copy).await {
            Ok(()) => self.ack_original(delivery, parked).await,
            Err(_) => self.delay_delivery(delivery).await,
        }
    }

    /// Acknowledges the original of a confirmed copy.
    pub(super) async fn ack_original(&mut self, delivery: Delivery, parked: Option<&str>) {
        fault::point("worker.moved");
        if let Some(reason) = parked {
            tracing::error!(
                message.id = delivery.properties.message_id,
                queue.name = self.consumer.queue(),
                "parked a message as it is: {reason}"
            );
        }
        let _ = delivery.ack().await;
    }

    /// Moves a delivery, unchanged, into a delay queue, or else to the tail of its own queue. If every queue
    /// refuses it, the slot retries, and returns the delivery before the broker would take the consumer for
    /// dead: a broker whose queues all refuse messages has no new work for the slot either.
    pub(super) async fn delay_delivery(&mut self, delivery: Delivery) {
        let end = Instant::now() + self.context.ack_deadline;
        let (namespace, pool) = (self.context.namespace.clone(), self.pool.clone());
        let delay = fault::test_override(DELAY, "SET_ASIDE_MS");
        loop {
            let aside = publications::delay_copy(&namespace, &pool, delay, &delivery);
            let mut done = self.context.publish(aside).await.is_ok();
            if !done {
                sleep(TAIL_PAUSE).await;
                let tail = publications::requeue_copy(&namespace, &pool, &delivery);
                done = self.context.publish(tail).await.is_ok();
            }
            if done {
                fault::point("worker.set_aside");
                let _ = delivery.ack().await;
                return;
            }
            self.consumer.suspend().await;
            tokio::select! {
                () = sleep(RETRY_PAUSE) => {}
                () = self.context.soft.cancelled() => {}
            }
            if self.context.soft.is_cancelled() || Instant::now() >= end {
                let _ = delivery.nack_requeue().await;
                return;
            }
        }
    }
}
