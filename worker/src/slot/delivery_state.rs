//! Decides how long a slot holds a delivery whose write (such as an open) the database refuses.
//!
//! While the database is unreachable, another worker may reach it: the delivery returns to its queue, and the
//! slot cancels its consumer until a write succeeds, so each outage counts once towards the queue's delivery
//! limit. A database that takes other writes and refuses only this one would refuse it again within
//! milliseconds, over and over: the delivery is delayed, which counts nothing.
//!
//! If other tickets' opens are written while this one is refused, the cause is this delivery, and the other
//! slots need not stop. A refusal that may pass delays the delivery at once; a permanent one is given up after
//! a few tries.

use std::time::Duration;

use sexton_broker::Delivery;
use sexton_store::StoreError;
use tokio::time::{Instant, sleep, sleep_until};

use super::{RETRY_PAUSE, Slot};
use crate::gate::TrialPermit;
use crate::write_batcher::WriteRefusal;

/// Refusals, caused by the delivery itself, after which it is given up.
const MAX_DELIVERY_REFUSALS: u32 = 3;

/// Why a delivery's write failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The answer is unknown, and the gate has closed.
    Unanswered,
    /// The server refused this delivery's write only.
    Refused(WriteRefusal),
}

impl Failure {
    /// Makes it of a statement's error; `action` is what could not be done yet.
    pub(super) fn of(error: &StoreError, action: &str) -> Self {
        tracing::debug!("{action}: {error}");
        if error.may_be_of_one_row() {
            Self::Refused(WriteRefusal::of(error))
        } else {
            Self::Unanswered
        }
    }
}

/// How the tries of a delivery's write end.
#[derive(Debug)]
pub(super) enum WriteEnd<T> {
    /// The database has answered.
    Answered(Delivery, T),
    /// The server refuses this delivery and no other, permanently; the text is its reason.
    Refused(Delivery, String),
    /// The slot no longer holds the delivery.
    Released,
}

/// What the slot does after a failure.
#[derive(Debug)]
enum NextStep {
    /// Try the write again.
    Retry(Delivery),
    /// Give up: the server refuses this delivery and no other, permanently.
    GiveUp(Delivery, String),
    /// The slot no longer holds the delivery.
    Released,
}

/// The cause that a failure points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FailureCause {
    /// The database, as far as is known.
    Database,
    /// The delivery: other writes succeeded meanwhile.
    Delivery,
    /// The delivery, and more tries will not help.
    GiveUp,
}

/// A delivery that the slot holds, with the failures so far.
#[derive(Debug)]
pub(super) struct DeliveryState {
    end: Instant,
    trial: Option<TrialPermit>,
    failures: u32,
    /// The number of opens that this worker had written at the first failure.
    written: Option<u64>,
}

impl DeliveryState {
    fn new(lease: Duration, trial: Option<TrialPermit>) -> Self {
        Self { end: Instant::now() + lease, trial, failures: 0, written: None }
    }

    /// The deadline of each statement for the delivery.
    pub(super) fn until(&self) -> Instant {
        self.end
    }

    /// Classifies one more failure, when `written` opens have been written in all.
    fn classify_failure(&mut self, failure: &Failure, written: u64) -> FailureCause {
        self.failures = self.failures.saturating_add(1);
        if written <= *self.written.get_or_insert(written) {
            return FailureCause::Database;
        }
        let stays = matches!(failure, Failure::Refused(refusal) if !refusal.transient);
        if stays && self.failures >= MAX_DELIVERY_REFUSALS {
            FailureCause::GiveUp
        } else {
            FailureCause::Delivery
        }
    }
}

impl Slot {
    pub(super) fn delivery_state(&self, trial: Option<TrialPermit>) -> DeliveryState {
        DeliveryState::new(self.context.writer.lease, trial)
    }

    /// Tries a delivery's write until the database answers it, as long as the slot should hold the delivery.
    pub(super) async fn write<T, W>(
        &mut self,
        mut delivery: Delivery,
        delivery_state: &mut DeliveryState,
        mut write: impl FnMut() -> W,
    ) -> WriteEnd<T>
    where
        W: Future<Output = Result<T, Failure>>,
    {
        loop {
            let failure = match write().await {
                Ok(answer) => return WriteEnd::Answered(delivery, answer),
                Err(failure) => failure,
            };
            delivery = match self.handle_failure(delivery, delivery_state, failure).await {
                NextStep::Retry(same) => same,
                NextStep::GiveUp(same, reason) => return WriteEnd::Refused(same, reason),
                NextStep::Released => return WriteEnd::Released,
            };
        }
    }

    /// Handles a failed write: stops consuming, and waits until the write should be tried again.
    async fn handle_failure(
        &mut self,
        delivery: Delivery,
        delivery_state: &mut DeliveryState,
        failure: Failure,
    ) -> NextStep {
        let gate = self.context.gate.clone();
        // Another slot makes the next trial, with another ticket.
        delivery_state.trial = None;
        let classify_failure = delivery_state.classify_failure(&failure, gate.opens_written());
        if classify_failure == FailureCause::Database {
            gate.record_open_failed();
            if let Failure::Refused(refusal) = &failure {
                gate.record_failure(refusal);
            }
        }
        self.consumer.suspend().await;
        match (classify_failure, failure) {
            (FailureCause::GiveUp, Failure::Refused(refusal)) => {
                return NextStep::GiveUp(delivery, refusal.reason);
            }
            (FailureCause::Delivery, Failure::Refused(refusal)) if refusal.transient => {
                self.delay_delivery(delivery).await;
                return NextStep::Released;
            }
            (FailureCause::Delivery, Failure::Unanswered) if gate.accepts_writes() => {
                self.delay_delivery(delivery).await;
                return NextStep::Released;
            }
            _ => {}
        }
        let retry = async {
            gate.wait_for_retry().await;
            // A statement that fails repeatedly must not become a busy loop.
            sleep(RETRY_PAUSE).await;
        };
        tokio::select! {
            biased;
            () = self.context.soft.cancelled() => {
                let _ = delivery.nack_requeue().await;
            }
            () = sleep_until(delivery_state.end) => if gate.accepts_writes() {
                self.delay_delivery(delivery).await;
            } else {
                let _ = delivery.nack_requeue().await;
            },
            () = retry => return NextStep::Retry(delivery),
        }
        NextStep::Released
    }

    /// Returns a delivery at its deadline: the broker counts it, and parks it after a hundred returns.
    pub(super) async fn return_at_deadline(
        &mut self,
        delivery: Delivery,
        delivery_state: &DeliveryState,
    ) {
        tokio::select! {
            () = self.context.soft.cancelled() => {}
            () = sleep_until(delivery_state.end) => {}
        }
        let _ = delivery.nack_requeue().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(transient: bool) -> Failure {
        Failure::Refused(WriteRefusal { reason: "refused".to_owned(), transient })
    }

    #[tokio::test]
    async fn a_refusal_is_a_deliverys_own_once_others_were_written_after_its_first() {
        let delivery_state = || DeliveryState::new(Duration::from_secs(20), None);
        let mut alone = delivery_state();
        for _ in 0..10 {
            assert_eq!(alone.classify_failure(&refused(false), 7), FailureCause::Database);
        }
        assert_eq!(alone.classify_failure(&refused(false), 8), FailureCause::GiveUp);
        let mut among_others = delivery_state();
        let blamed =
            [7, 8, 9].map(|written| among_others.classify_failure(&refused(false), written));
        assert_eq!(blamed, [FailureCause::Database, FailureCause::Delivery, FailureCause::GiveUp]);
        for failure in [refused(true), Failure::Unanswered] {
            let mut passing = delivery_state();
            let blamed = [7, 8, 9].map(|written| passing.classify_failure(&failure, written));
            assert_eq!(
                blamed,
                [FailureCause::Database, FailureCause::Delivery, FailureCause::Delivery]
            );
        }
    }
}
