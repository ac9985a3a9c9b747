//! A slot takes one ticket at a time and handles it by the protocol.
//!
//! The order is always: the row, then the message that follows, then the ack. A slot returns a ticket to its
//! queue only if it could not be checked (shutdown, database down).

mod delay;
mod delivery_state;
mod unopened_ticket;

use std::sync::Arc;
use std::time::Duration;

use sexton_broker::frame_filter::PropertiesFlaw;
use sexton_broker::{Delivery, SlotConsumer};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::open::{OpenDecision, STALE_REASON};
use sexton_model::pool::PoolName;
use sexton_model::ticket::{Envelope, IncomingMessage, read_message};
use sexton_service::fault;
use sexton_store::lease::Renewal;
use sexton_store::open::{OpenRequest, Opened};
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

use crate::attempt::{self, AttemptSpan, held};
use crate::consumer_liveness::SlotStatus;
use crate::context::Context;
use crate::executor::HostInstant;
use crate::gate::{Admission, TrialPermit};
use crate::write_batcher::{Opening, WriteError};

use self::delivery_state::{DeliveryState, Failure, WriteEnd};

/// Pause between two tries of an operation that failed for a reason outside the ticket.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A slot keeps a ticket that is due within this time, and opens it again then. A firing is claimed a few milliseconds
/// before it is due, so its ticket may come that much too early.
const EARLY_HOLD: Duration = Duration::from_millis(20);

/// The error class of an execution that the database refuses to open.
const UNOPENABLE_CLASS: &str = "unopenable";

/// One slot: a channel, a consumer and a place for one task.
pub(crate) struct Slot {
    context: Arc<Context>,
    consumer: SlotConsumer,
    pool: PoolName,
    status: SlotStatus,
}

impl Slot {
    pub(crate) fn new(context: Arc<Context>, consumer: SlotConsumer, pool: PoolName) -> Self {
        let status = SlotStatus::of(&consumer, &pool);
        Self { context, consumer, pool, status }
    }

    /// Returns the slot's status, which the liveness check reads.
    pub(crate) fn slot_status(&self) -> SlotStatus {
        self.status.clone()
    }

    /// Works until the soft stop (a running task runs to its end), or until the link is closed.
    pub(crate) async fn run(mut self) {
        let context = Arc::clone(&self.context);
        loop {
            let admission = if let Some(admission) = context.gate.admission(&self.pool) {
                admission
            } else {
                // While the gate is closed, unread tickets belong in the queue, where other workers can take
                // them.
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

    /// Opens a ticket and runs its attempt, or follows the table of unopened tickets.
    async fn open(
        &mut self,
        delivery: Delivery,
        id: ExecutionId,
        attempt: AttemptNumber,
        mut delivery_state: DeliveryState,
    ) {
        // Retries use the same ids, so that they find an open whose answer was lost.
        let request = OpenRequest { execution_id: id, attempt, token: Context::new_token() };
        let mut is_repeated = false;
        // Subscribed before the open: a cancel may arrive before the lease is renewed for the first time.
        let cancels = self.context.cancels.subscribe();
        let (context, until) = (Arc::clone(&self.context), delivery_state.until());
        let batcher = &context.write_batcher;
        let open = || {
            let mut sent = (!std::mem::replace(&mut is_repeated, true)).then(HostInstant::now);
            async move {
                loop {
                    return match timeout_at(until, batcher.open(request)).await {
                        Ok(Ok(Opening::Unopened(OpenDecision::Wait(rest))))
                            if rest <= EARLY_HOLD =>
                        {
                            tracing::debug!(execution.id = %id, "a ticket is kept: it is due in {rest:?}");
                            sleep(rest).await;
                            // This request has opened nothing.
                            sent = sent.map(|_| HostInstant::now());
                            continue;
                        }
                        Ok(Ok(opening)) => Ok(OpenEnd::Answered(opening, sent)),
                        Ok(Err(WriteError::Data(refused))) => Ok(OpenEnd::Unopenable(refused)),
                        Ok(Err(WriteError::Refused(refusal))) => Err(Failure::Refused(refusal)),
                        Ok(Err(WriteError::Unanswered)) => Err(Failure::Unanswered),
                        Err(_) => Ok(OpenEnd::Late),
                    };
                }
            }
        };
        let (delivery, refused) = match self.write(delivery, &mut delivery_state, open).await {
            WriteEnd::Answered(delivery, OpenEnd::Answered(Opening::Opened(opened), sent)) => {
                context.gate.record_open_written();
                drop(delivery_state);
                return self.start(delivery, &opened, sent, cancels).await;
            }
            WriteEnd::Answered(delivery, OpenEnd::Answered(Opening::Skipped, _)) => {
                context.gate.record_open_written();
                fault::point("worker.skipped");
                tracing::info!(
                    execution.id = %id,
                    execution.skip_reason = STALE_REASON,
                    "skipped execution {id}: it came later than its job wants it to be begun"
                );
                let _ = delivery.ack().await;
                return;
            }
            WriteEnd::Answered(delivery, OpenEnd::Answered(Opening::Unopened(answer), _)) => {
                return self.answer(delivery, id, attempt, answer, delivery_state).await;
            }
            WriteEnd::Answered(delivery, OpenEnd::Late) => {
                drop(delivery_state);
                let _ = delivery.nack_requeue().await;
                return;
            }
            WriteEnd::Answered(delivery, OpenEnd::Unopenable(refused))
            | WriteEnd::Refused(delivery, refused) => (delivery, refused),
            WriteEnd::Released => return,
        };
        let reason = unopenable(&refused);
        self.fail_execution(delivery, id, attempt, UNOPENABLE_CLASS, &reason, delivery_state).await;
    }

    /// Runs an opened attempt whose lease counts from about `sent`; `None`: an earlier try opened it.
    async fn start(
        &mut self,
        delivery: Delivery,
        opened: &Opened,
        sent: Option<HostInstant>,
        cancels: watch::Receiver<u64>,
    ) {
        let waited = |sent: HostInstant| HostInstant::now().saturating_duration_since(sent);
        // A lease that is not fresh is renewed first: this worker's clock must not end the task later than the
        // database's clock ends the lease, and a task whose open waited for a row lock should not begin with
        // half a lease.
        let fresh = sent.filter(|sent| waited(*sent) < opened.lease / 4);
        let sent = fresh.unwrap_or_else(HostInstant::now);
        if fresh.is_none() {
            let renewal = self.context.write_batcher.renew(held(opened), opened.lease).await;
            if !matches!(renewal, Ok(Renewal::Renewed { .. })) {
                // The attempt is lost, or may be; the process that ends it publishes the next ticket.
                let _ = delivery.ack().await;
                return;
            }
            fault::point("worker.renewed_first");
        }
        let context = Arc::clone(&self.context);
        let span = AttemptSpan::begin(&delivery, self.consumer.queue(), opened);
        let mut run = std::pin::pin!(attempt::run(&context, opened, sent, cancels, span));
        tokio::select! {
            () = &mut run => {
                fault::point("worker.marked");
                self.consumer.ack_batched(delivery).await;
                fault::point("worker.acked");
            }
            never = self.consumer.flush_acks_when_due() => match never {},
            () = tokio::time::sleep(context.ack_deadline) => {
                // The open has used up the ticket. If it stayed unacknowledged, the broker would take the slot
                // for dead; from here on the lease alone protects the attempt. The ack runs beside the attempt,
                // because renewals must not wait for the broker.
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

/// How the tries of an open end.
enum OpenEnd {
    /// With an answer; and with the instant before the open, if only one was sent.
    Answered(Opening, Option<HostInstant>),
    /// The database refuses a value of the ticket.
    Unopenable(String),
    /// Another transaction has locked the row, or the database does not answer, which the write batcher notices.
    Late,
}

fn unopenable(refused: &str) -> String {
    format!("the database refuses to open it: {refused}")
}
