//! For how long a slot holds a delivery while the database does not take the write that it needs.
//!
//! While the database is out of reach, another worker may be better off: the delivery goes back to its queue after a
//! lease, and consumption is cancelled until a write succeeds, so each outage counts once towards the queue's
//! delivery limit. A database that takes other writes and refuses this one would be found again within
//! milliseconds, over and over. So one slot of each pool keeps its delivery until shortly before the broker would
//! take the consumer for dead, and tries it after each probe; the others set theirs aside, which counts nothing.

use std::time::Duration;

use sexton_broker::Delivery;
use tokio::time::{Instant, sleep, sleep_until};

use super::{PAUSE, Slot};
use crate::gate::TrialPermit;

/// A delivery in hand.
#[derive(Debug)]
pub(super) struct Hold {
    /// For a database that is out of reach, and for all slots of a pool but one.
    lease_end: Instant,
    /// For the slot that tries.
    trial_end: Instant,
    trial: Option<TrialPermit>,
}

impl Hold {
    fn new(lease: Duration, ack_deadline: Duration, trial: Option<TrialPermit>) -> Self {
        if let Some(permit) = &trial {
            permit.has_ticket();
        }
        let now = Instant::now();
        Self { lease_end: now + lease, trial_end: now + ack_deadline, trial }
    }

    /// The longest that a statement for it may take.
    pub(super) fn until(&self) -> Instant {
        if self.trial.is_some() { self.trial_end.max(self.lease_end) } else { self.lease_end }
    }
}

impl Slot {
    pub(super) fn hold(&self, trial: Option<TrialPermit>) -> Hold {
        Hold::new(self.context.writer.lease, self.context.ack_deadline, trial)
    }

    /// The write for a delivery failed: stops consuming, and returns the delivery when the write should be tried
    /// again. `None`: it was not worth waiting for any longer, and the delivery is out of this slot's hands.
    pub(super) async fn retry_after_failure(
        &mut self,
        delivery: Delivery,
        hold: &mut Hold,
    ) -> Option<Delivery> {
        self.context.gate.open_failed();
        self.consumer.suspend().await;
        if hold.trial.is_none() {
            hold.trial = self.context.gate.permit(&self.pool);
            if let Some(permit) = &hold.trial {
                permit.has_ticket();
            }
        }
        let gate = self.context.gate.clone();
        let waiting = async {
            gate.answering().await;
            // A statement that fails again and again must not be hot.
            sleep(PAUSE).await;
        };
        let lasting = async {
            sleep_until(hold.lease_end).await;
            // Probes find out meanwhile whether the database is still within reach.
            while hold.trial.is_some() && gate.refuses_opens() && Instant::now() < hold.trial_end {
                sleep(PAUSE).await;
            }
        };
        let over = tokio::select! {
            biased;
            () = self.context.soft.cancelled() => {
                let _ = delivery.give_back().await;
                return None;
            }
            () = lasting => true,
            () = waiting => false,
        };
        if !over {
            return Some(delivery);
        }
        if gate.refuses_opens() {
            self.set_aside(delivery).await;
        } else {
            let _ = delivery.give_back().await;
        }
        None
    }
}
