//! Handles messages that open no attempt: tickets by the table of unopened tickets, foreign tasks, and
//! unreadable messages.

mod adoption;

use std::sync::Arc;
use std::time::Duration;

use sexton_broker::{Delivery, Publication, publications};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::job::MAX_TASK_TYPE_BYTES;
use sexton_model::open::{OpenDecision, UNOFFERED_RETRY_DELAY};
use sexton_model::ticket::truncate;
use sexton_service::{clock, fault};
use sexton_store::parked_messages;

use super::Slot;
use super::delivery_state::{DeliveryState, Failure, WriteEnd};

/// The reason for parking a ticket whose execution does not exist.
const NO_ROW: &str = "no execution has this id: restore the database that has it, then move the \
                      message back to its queue, or delete the message";

impl Slot {
    pub(super) async fn answer(
        &mut self,
        delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        answer: OpenDecision,
        delivery_state: DeliveryState,
    ) {
        tracing::debug!(
            execution.id = %id,
            attempt.number = attempt.get(),
            ticket.answer = ?answer,
            "a ticket opened nothing"
        );
        match answer {
            OpenDecision::AlreadyOpened
            | OpenDecision::Stale
            | OpenDecision::Run
            | OpenDecision::Retry => {}
            OpenDecision::Future => tracing::warn!(
                execution.id = %id,
                attempt.number = attempt.get(),
                "a ticket is ahead of its row; was the database restored from a backup? The row \
                 decides, the ticket is dropped"
            ),
            OpenDecision::Wait(rest) => {
                let (namespace, pool) = (&self.context.namespace, &self.pool);
                let copy =
                    publications::delay_early_ticket(namespace, pool, rest, &delivery, id, attempt);
                return self
                    .defer_ticket(
                        delivery,
                        copy,
                        DeferredTicket { id, attempt, rest, parked: None },
                        delivery_state,
                    )
                    .await;
            }
            OpenDecision::UnknownExecution => {
                return self.park(delivery, NO_ROW).await;
            }
            OpenDecision::Repark => {
                let reason = self.not_offered(&delivery);
                let now = clock::now();
                let copy =
                    publications::park_copy(&self.context.namespace, &delivery, &reason, now);
                let ticket = DeferredTicket {
                    id,
                    attempt,
                    rest: UNOFFERED_RETRY_DELAY,
                    parked: Some(reason),
                };
                return self.defer_ticket(delivery, copy, ticket, delivery_state).await;
            }
            OpenDecision::Unoffered => {
                let reason = self.not_offered(&delivery);
                return self
                    .fail_execution(
                        delivery,
                        id,
                        attempt,
                        "unknown_task_type",
                        &reason,
                        delivery_state,
                    )
                    .await;
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

    /// Fails an execution whose ticket cannot be opened; the relay publishes the parked ticket.
    pub(super) async fn fail_execution(
        &mut self,
        delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        class: &str,
        reason: &str,
        mut delivery_state: DeliveryState,
    ) {
        let context = Arc::clone(&self.context);
        let fail = || async {
            let failing =
                parked_messages::fail_unopened(&context.store, id, attempt, class, reason, None);
            let failed = context.gate.run_delivery_statement(failing).await;
            failed.map_err(|error| Failure::of(&error, "an execution could not be failed yet"))
        };
        match self.write(delivery, &mut delivery_state, fail).await {
            WriteEnd::Answered(delivery, failed) => {
                if failed {
                    context.gate.record_open_written();
                    fault::point("worker.gave_up");
                    context.parked_log.record(id);
                }
                let _ = delivery.ack().await;
            }
            WriteEnd::Refused(delivery, _) => {
                self.return_at_deadline(delivery, &delivery_state).await;
            }
            WriteEnd::Released => {}
        }
    }

    /// Publishes a copy of a ticket that cannot be opened here or yet. If its queue refuses the copy, the
    /// ticket becomes unpublished in its row, and the relay publishes it later.
    async fn defer_ticket(
        &mut self,
        delivery: Delivery,
        copy: Publication,
        ticket: DeferredTicket,
        mut delivery_state: DeliveryState,
    ) {
        let DeferredTicket { id, attempt, rest, parked } = ticket;
        if self.context.publish(copy).await.is_ok() {
            self.ack_original(delivery, parked.as_deref()).await;
            return;
        }
        let context = Arc::clone(&self.context);
        let hand_back = || async {
            let handing_back =
                parked_messages::return_ticket(&context.store, id, attempt, rest, None);
            let handed_back = context.gate.run_delivery_statement(handing_back).await;
            handed_back
                .map_err(|error| Failure::of(&error, "a ticket could not be handed back yet"))
        };
        match self.write(delivery, &mut delivery_state, hand_back).await {
            // Otherwise the row has changed, or its ticket was already unpublished.
            WriteEnd::Answered(delivery, handed_back) => {
                if handed_back {
                    fault::point("worker.handed_back");
                }
                let _ = delivery.ack().await;
            }
            WriteEnd::Refused(delivery, _) => {
                self.return_at_deadline(delivery, &delivery_state).await;
            }
            WriteEnd::Released => {}
        }
    }

    pub(super) async fn park(&mut self, delivery: Delivery, reason: &str) {
        let now = clock::now();
        let copy = publications::park_copy(&self.context.namespace, &delivery, reason, now);
        self.publish_copy(delivery, copy, Some(reason)).await;
    }
}

/// A ticket that must wait.
struct DeferredTicket {
    id: ExecutionId,
    attempt: AttemptNumber,
    rest: Duration,
    /// The reason for the failed queue, if the ticket goes there.
    parked: Option<String>,
}

/// Returns the task type of a ticket, even if a tool has dropped its properties.
fn task_type(delivery: &Delivery) -> String {
    let in_body = || {
        let body: serde_json::Value = serde_json::from_slice(&delivery.body).ok()?;
        body.get("type")?.as_str().map(|text| truncate(text, MAX_TASK_TYPE_BYTES).to_owned())
    };
    delivery.properties.kind.clone().or_else(in_body).unwrap_or_else(|| "(unnamed)".to_owned())
}
