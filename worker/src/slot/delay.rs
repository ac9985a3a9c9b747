//! What a slot does with a message whose queue does not take it: a slot must not wait for a queue.
//!
//! The copy is confirmed before the original is acknowledged, so a crash in between leaves two copies, never none.

use std::time::Duration;

use sexton_broker::{Delivery, Publication, publications};
use sexton_service::fault;
use tokio::time::{Instant, sleep};

use super::{RETRY_PAUSE, Slot};

/// How long a message that was set aside stays away.
const DELAY: Duration = Duration::from_secs(30);
/// Before a message goes to the tail of its own queue, from where it may come back at once.
const TAIL_PAUSE: Duration = Duration::from_millis(100);

impl Slot {
    /// Publishes a copy and acknowledges the original; sets the original aside if the copy's queue does not take it.
    /// `parked`: why it is parked, if it is.
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

    /// The copy is in its queue.
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

    /// Puts a delivery, as it came, into a delay queue, or else at the tail of its own queue. If no queue takes it,
    /// the slot goes on trying and gives the delivery back before the broker would take the
    /// consumer for dead: a broker none of whose queues takes anything has no new work for the slot either.
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
