//! For how long a slot holds a delivery while the database does not take the write that it needs: a lease.
//!
//! While the database is out of reach, another worker may be better off: the delivery goes back to its queue, and
//! consumption is cancelled until a write succeeds, so each outage counts once towards the queue's delivery limit. A
//! database that takes other writes and refuses this one would be found again within milliseconds, over and over: the
//! delivery is set aside, which counts nothing.
//!
//! If opens of other tickets are written while this one is refused, the refusal is its own, and no reason to stop
//! the other slots. One that can pass is set aside at once; one that cannot is given up after a few tries.

use std::time::Duration;

use sexton_broker::Delivery;
use sexton_store::StoreError;
use tokio::time::{Instant, sleep, sleep_until};

use super::{PAUSE, Slot};
use crate::gate::TrialPermit;
use crate::journal::Refusal;

/// Refusals after which a delivery whose own they are is given up.
const MAX_OWN_REFUSALS: u32 = 3;

/// Why the write for a delivery was not written.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// Nothing is known, and the gate has closed.
    Unanswered,
    /// The server refused it, for this delivery alone.
    Refused(Refusal),
}

impl Failure {
    pub(super) fn of(error: &StoreError) -> Self {
        if error.may_be_of_one_row() { Self::Refused(Refusal::of(error)) } else { Self::Unanswered }
    }
}

/// What is to be done after a failure.
#[derive(Debug)]
pub(super) enum After {
    /// The write should be tried again.
    Retry(Delivery),
    /// The server refuses this delivery and no other, for a reason that does not pass.
    Hopeless(Delivery, String),
    /// The delivery is out of the slot's hands.
    Gone,
}

/// What a failure says of its delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blame {
    /// The database's, as far as is known.
    Database,
    /// The delivery's: others were written meanwhile.
    Own,
    /// The delivery's, and no more tries will help.
    Hopeless,
}

/// A delivery in hand.
#[derive(Debug)]
pub(super) struct Hold {
    end: Instant,
    trial: Option<TrialPermit>,
    failures: u32,
    /// The opens that this worker had written at the first failure.
    written: Option<u64>,
}

impl Hold {
    fn new(lease: Duration, trial: Option<TrialPermit>) -> Self {
        Self { end: Instant::now() + lease, trial, failures: 0, written: None }
    }

    /// The longest that a statement for it may take.
    pub(super) fn until(&self) -> Instant {
        self.end
    }

    /// Judges one more failure, when `written` opens have been written in all.
    fn blame(&mut self, failure: &Failure, written: u64) -> Blame {
        self.failures = self.failures.saturating_add(1);
        if written <= *self.written.get_or_insert(written) {
            return Blame::Database;
        }
        let stays = matches!(failure, Failure::Refused(refusal) if !refusal.transient);
        if stays && self.failures >= MAX_OWN_REFUSALS { Blame::Hopeless } else { Blame::Own }
    }
}

impl Slot {
    pub(super) fn hold(&self, trial: Option<TrialPermit>) -> Hold {
        Hold::new(self.context.writer.lease, trial)
    }

    /// The write for a delivery failed: stops consuming, and waits until the write should be tried again.
    pub(super) async fn after_failure(
        &mut self,
        delivery: Delivery,
        hold: &mut Hold,
        failure: Failure,
    ) -> After {
        let gate = self.context.gate.clone();
        // The next trial is another slot's, with another ticket.
        hold.trial = None;
        let blame = hold.blame(&failure, gate.written());
        if blame == Blame::Database {
            gate.open_failed();
            if let Failure::Refused(refusal) = &failure {
                gate.failed(refusal);
            }
        }
        self.consumer.suspend().await;
        match (blame, failure) {
            (Blame::Hopeless, Failure::Refused(refusal)) => {
                return After::Hopeless(delivery, refusal.reason);
            }
            (Blame::Own, Failure::Refused(refusal)) if refusal.transient => {
                self.set_aside(delivery).await;
                return After::Gone;
            }
            (Blame::Own, Failure::Unanswered) if gate.takes_probes() => {
                self.set_aside(delivery).await;
                return After::Gone;
            }
            _ => {}
        }
        let retry = async {
            gate.retries().await;
            // A statement that fails again and again must not be hot.
            sleep(PAUSE).await;
        };
        tokio::select! {
            biased;
            () = self.context.soft.cancelled() => {
                let _ = delivery.nack_requeue().await;
            }
            () = sleep_until(hold.end) => if gate.takes_probes() {
                self.set_aside(delivery).await;
            } else {
                let _ = delivery.nack_requeue().await;
            },
            () = retry => return After::Retry(delivery),
        }
        After::Gone
    }

    /// Gives a delivery back when its time is over: the broker counts it, and parks it after a hundred.
    pub(super) async fn give_back_later(&mut self, delivery: Delivery, hold: &Hold) {
        tokio::select! {
            () = self.context.soft.cancelled() => {}
            () = sleep_until(hold.end) => {}
        }
        let _ = delivery.nack_requeue().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(transient: bool) -> Failure {
        Failure::Refused(Refusal { reason: "refused".to_owned(), transient })
    }

    #[tokio::test]
    async fn a_refusal_is_a_deliverys_own_once_others_were_written_after_its_first() {
        let hold = || Hold::new(Duration::from_secs(20), None);
        let mut alone = hold();
        for _ in 0..10 {
            assert_eq!(alone.blame(&refused(false), 7), Blame::Database);
        }
        assert_eq!(alone.blame(&refused(false), 8), Blame::Hopeless);
        let mut among_others = hold();
        let blamed = [7, 8, 9].map(|written| among_others.blame(&refused(false), written));
        assert_eq!(blamed, [Blame::Database, Blame::Own, Blame::Hopeless]);
        for failure in [refused(true), Failure::Unanswered] {
            let mut passing = hold();
            let blamed = [7, 8, 9].map(|written| passing.blame(&failure, written));
            assert_eq!(blamed, [Blame::Database, Blame::Own, Blame::Own]);
        }
    }
}
