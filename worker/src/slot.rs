//! A slot: takes one ticket at a time, and does with it what the protocol says.
//!
//! The order is always: row first, then what follows on the broker, then the ack. A ticket is never
//! given back as an answer; only one that could not be looked at (shutdown, database away) goes back
//! to its queue.

mod delay;
mod delivery_state;
mod unopened_ticket;

use std::sync::Arc;
use std::time::Duration;

use sexton_broker::frame_filter::PropertiesFlaw;
use sexton_broker::{Delivery, SlotConsumer};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::open::STALE_REASON;
use sexton_model::pool::PoolName;
use sexton_model::ticket::{Envelope, IncomingMessage, read_message};
use sexton_service::fault;
use sexton_store::lease::Renewal;
use sexton_store::open::{OpenRequest, Opened};
use tokio::sync::watch;
use tokio::time::timeout_at;

use crate::attempt::{self, held};
use crate::consumer_liveness::SlotStatus;
use crate::context::Context;
use crate::executor::HostInstant;
use crate::gate::{Admission, TrialPermit};
use crate::write_batcher::{Opening, WriteError};

use self::delivery_state::{DeliveryState, Failure, NextStep};

/// Between two tries of something that failed for no reason of the ticket's.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The class of an execution that the database refuses to open.
const UNOPENABLE_CLASS: &str = "unopenable";

/// One slot.
pub(crate) struct Slot {
    context: Arc<Context>,
    consumer: SlotConsumer,
    pool: PoolName,
    status: SlotStatus,
}

impl Slot {
    pub(crate) fn new(context: Arc<Context>, consumer: SlotConsumer, pool: PoolName) -> Self {
        let status = SlotStatus::of(&consumer);
        Self { context, consumer, pool, status }
    }

    /// What it is at, for the liveness.
    pub(crate) fn slot_status(&self) -> SlotStatus {
        self.status.clone()
    }

    /// Works until the soft stop (a running task to its end), or until the link is closed.
    pub(crate) async fn run(mut self) {
        let context = Arc::clone(&self.context);
        loop {
            let admission = if let Some(admission) = context.gate.admission(&self.pool) {
                admission
            } else {
                // Unread tickets are better off in the queue than in front of a closed gate.
                self.consumer.suspend().await;
                tokio::select! {
                    () = context.soft.cancelled() => break,
                    admission = context.gate.wait_for_admission(&self.pool) => admission,
                }
            };
            self.consumer.one_at_a_time(matches!(admission, Admission::Trial(_))).await;
            let delivery = tokio::select! {
                biased;
                () = context.soft.cancelled() => break,
                () = context.gate.wait_for_change(&admission) => continue,
                delivery = self.consumer.next() => delivery,
            };
            let Some(delivery) = delivery else { break };
            let trial = match admission {
                Admission::All => None,
                Admission::Trial(permit) => Some(permit),
            };
            self.take(delivery, trial).await;
        }
        self.consumer.suspend().await;
    }

    async fn take(&mut self, delivery: Delivery, trial: Option<TrialPermit>) {
        let _busy = self.status.busy();
        fault::point("worker.received");
        let delivery_state = self.delivery_state(trial);
        let incoming = read_message(Envelope {
            message_id: delivery.properties.message_id.as_deref(),
            attempt: delivery.properties.attempt,
            schema: delivery.properties.schema,
            flaw: delivery.properties.flaw.map(PropertiesFlaw::as_str),
            body: &delivery.body,
        });
        match incoming {
            IncomingMessage::Ticket { execution_id, attempt } => {
                self.open(delivery, execution_id, attempt, delivery_state).await;
            }
            IncomingMessage::Foreign(task) => {
                Box::pin(self.adopt(delivery, task, delivery_state)).await;
            }
            IncomingMessage::Unreadable { reason } => self.park(delivery, &reason).await,
        }
    }

    /// Opens a ticket and runs its attempt, or does what the table of unopened tickets says.
    async fn open(
        &mut self,
        mut delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        mut delivery_state: DeliveryState,
    ) {
        // The same whenever it is asked again: an open whose answer was lost may have been written.
        let request = OpenRequest { execution_id: id, attempt, token: Context::new_token() };
        let mut is_repeated = false;
        // From before the open: a cancel may come before anybody keeps the attempt.
        let cancels = self.context.cancels.subscribe();
        loop {
            let sent = HostInstant::now();
            let opening =
                timeout_at(delivery_state.until(), self.context.write_batcher.open(request)).await;
            let Ok(opening) = opening else {
                // Somebody has its row locked, or the database is silent, which the journal notices.
                drop(delivery_state);
                let _ = delivery.nack_requeue().await;
                return;
            };
            let failure = match opening {
                Ok(Opening::Opened(opened)) => {
                    self.context.gate.record_open_written();
                    drop(delivery_state);
                    let sent = if is_repeated { None } else { Some(sent) };
                    return self.start(delivery, &opened, sent, cancels).await;
                }
                Ok(Opening::Skipped) => {
                    self.context.gate.record_open_written();
                    fault::point("worker.skipped");
                    tracing::info!(
                        execution.id = %id,
                        execution.skip_reason = STALE_REASON,
                        "skipped execution {id}: it came later than its job wants it to be begun"
                    );
                    let _ = delivery.ack().await;
                    return;
                }
                Ok(Opening::Unopened(answer)) => {
                    return self.answer(delivery, id, attempt, answer, delivery_state).await;
                }
                Err(WriteError::Data(refused)) => {
                    let reason = unopenable(&refused);
                    return self
                        .fail_execution(
                            delivery,
                            id,
                            attempt,
                            UNOPENABLE_CLASS,
                            &reason,
                            delivery_state,
                        )
                        .await;
                }
                Err(WriteError::Unanswered) => Failure::Unanswered,
                Err(WriteError::Refused(refusal)) => Failure::Refused(refusal),
            };
            is_repeated = true;
            delivery = match self.handle_failure(delivery, &mut delivery_state, failure).await {
                NextStep::Retry(same) => same,
                NextStep::GiveUp(same, refused) => {
                    let reason = unopenable(&refused);
                    return self
                        .fail_execution(
                            same,
                            id,
                            attempt,
                            UNOPENABLE_CLASS,
                            &reason,
                            delivery_state,
                        )
                        .await;
                }
                NextStep::Released => return,
            };
        }
    }

    /// Runs an opened attempt whose lease counts from about `sent`; `None`: from some earlier asking.
    async fn start(
        &mut self,
        delivery: Delivery,
        opened: &Opened,
        sent: Option<HostInstant>,
        cancels: watch::Receiver<u64>,
    ) {
        let waited = |sent: HostInstant| HostInstant::now().saturating_duration_since(sent);
        // A lease that is not fresh is renewed first: the task's end by the clock of this worker
        // must not be later than the lease's end by that of the database, and a task that waited for
        // its row's lock should not begin with half a lease.
        let fresh = sent.filter(|sent| waited(*sent) < opened.lease / 4);
        let sent = fresh.unwrap_or_else(HostInstant::now);
        if fresh.is_none() {
            let renewal = self.context.write_batcher.renew(held(opened), opened.lease).await;
            if !matches!(renewal, Ok(Renewal::Renewed { .. })) {
                // Not ours any more, or not known to be: whoever ends the attempt goes on.
                let _ = delivery.ack().await;
                return;
            }
            fault::point("worker.renewed_first");
        }
        let context = Arc::clone(&self.context);
        let mut run = std::pin::pin!(attempt::run(&context, opened, sent, cancels));
        tokio::select! {
            () = &mut run => {
                fault::point("worker.marked");
                self.consumer.ack_batched(delivery).await;
                fault::point("worker.acked");
            }
            never = self.consumer.flush_acks_when_due() => match never {},
            () = tokio::time::sleep(context.ack_deadline) => {
                // The ticket is spent since the open. Held any longer, the broker would take the
                // slot for dead; from here on the lease alone keeps the attempt. The attempt goes on
                // meanwhile: its renewals must not wait for the broker.
                let release = async {
                    self.consumer.suspend().await;
                    let _ = delivery.ack().await;
                    fault::point("worker.let_go");
                };
                tokio::join!(run, release);
            }
        }
    }
}

fn unopenable(refused: &str) -> String {
    format!("the database refuses to open it: {refused}")
}
