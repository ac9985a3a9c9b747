//! What a slot does with a message that opened nothing: the table of unopened tickets, tasks of other
//! systems, and messages that cannot be read.

mod foreign;

use sexton_broker::{Delivery, Publication, PublishError, outgoing};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::job::MAX_TASK_TYPE_BYTES;
use sexton_model::open::Answer;
use sexton_model::ticket::shorten;
use sexton_service::{clock, fault};
use sexton_store::parked;

use super::{PAUSE, Slot};

/// Of a ticket whose execution is not there.
const NO_ROW: &str = "no execution has this id: restore the database that has it, then move the \
                      message back to its queue, or delete the message";

impl Slot {
    pub(super) async fn answer(
        &mut self,
        delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        answer: Answer,
    ) {
        tracing::debug!(
            execution.id = %id,
            attempt.number = attempt.get(),
            ticket.answer = ?answer,
            "a ticket opened nothing"
        );
        match answer {
            Answer::Spent | Answer::Stale | Answer::Run | Answer::AskAgain => {}
            Answer::FromTheFuture => tracing::warn!(
                execution.id = %id,
                attempt.number = attempt.get(),
                "a ticket is ahead of its row; was the database restored from a backup? The row \
                 decides, the ticket is dropped"
            ),
            Answer::Wait(rest) => {
                let (namespace, pool) = (&self.context.namespace, &self.pool);
                let copy = outgoing::too_early(namespace, pool, rest, &delivery, id, attempt);
                return self.move_on(delivery, copy).await;
            }
            Answer::Unknown => {
                return self.park(delivery, NO_ROW).await;
            }
            Answer::ParkAgain => {
                let reason = self.not_offered(&delivery);
                return self.park(delivery, &reason).await;
            }
            Answer::NeverOffered => {
                let reason = self.not_offered(&delivery);
                return self.give_up(delivery, id, attempt, "unknown_task_type", &reason).await;
            }
        }
        let _ = delivery.ack().await;
    }

    fn not_offered(&self, delivery: &Delivery) -> String {
        format!(
            "no worker of pool {} offered the task type {}: add it to the catalogue that \
             WORKER_TASKS names, or correct the job, then requeue; {} offers {}",
            self.pool,
            task_type(delivery),
            self.context.writer.actor,
            self.context.writer.types().join(", ")
        )
    }

    /// Fails an execution whose ticket cannot be opened; its parked ticket is left to the relay.
    pub(super) async fn give_up(
        &mut self,
        delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        class: &str,
        reason: &str,
    ) {
        let patience = self.patience();
        loop {
            let store = self.context.store.clone();
            let failing = parked::fail_unopened(&store, id, attempt, class, reason, None);
            match self.context.gate.ask(failing).await {
                Ok(failed) => {
                    if failed {
                        fault::point("worker.gave_up");
                        self.context.notices.parked(id);
                    }
                    let _ = delivery.ack().await;
                    return;
                }
                Err(error) => tracing::debug!("an execution could not be failed yet: {error}"),
            }
            if !self.database_is_back(patience).await {
                let _ = delivery.give_back().await;
                return;
            }
        }
    }

    pub(super) async fn park(&mut self, delivery: Delivery, reason: &str) {
        tracing::error!(
            message.id = delivery.properties.message_id,
            queue.name = self.consumer.queue(),
            "parked a message as it is: {reason}"
        );
        let now = clock::now();
        let copy = outgoing::parked_as_it_is(&self.context.namespace, &delivery, reason, now);
        self.move_on(delivery, copy).await;
    }

    /// Publishes a copy and acknowledges the original, in this order: a crash in between leaves two
    /// copies, never none.
    async fn move_on(&mut self, delivery: Delivery, copy: Publication) {
        loop {
            match self.context.publisher.publish_one(copy.clone()).await {
                Ok(()) => {
                    fault::point("worker.moved");
                    let _ = delivery.ack().await;
                    return;
                }
                Err(error @ PublishError::TooLarge { .. }) => {
                    // Cannot be: the broker delivered it. Kept where it is rather than lost.
                    tracing::error!("a message cannot be copied: {error}");
                }
                Err(error) => tracing::debug!("a copy could not be published yet: {error}"),
            }
            self.consumer.suspend().await;
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = self.context.soft.cancelled() => {
                    let _ = delivery.give_back().await;
                    return;
                }
            }
        }
    }
}

/// The task type of a ticket; also of one whose properties a tool has dropped.
fn task_type(delivery: &Delivery) -> String {
    let in_body = || {
        let body: serde_json::Value = serde_json::from_slice(&delivery.body).ok()?;
        body.get("type")?.as_str().map(|text| shorten(text, MAX_TASK_TYPE_BYTES).to_owned())
    };
    delivery.properties.kind.clone().or_else(in_body).unwrap_or_else(|| "(unnamed)".to_owned())
}
