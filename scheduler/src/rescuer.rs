//! The rescuer: ends attempts whose lease ran out, because their worker was never heard of again.
//!
//! The decision is the same as after any failed attempt, with a budget of its own; the statement
//! repeats the condition, so a renewal that comes in between wins. The tickets that follow are owed
//! at once, and the relay is told.

use std::sync::Arc;
use std::time::Duration;

use sexton_model::retry::{Ending, LOST, RetryPolicy, Verdict, decide};
use sexton_service::fault;
use sexton_store::answer::within;
use sexton_store::lost::{self, Overdue, Which};
use sexton_store::{Now, Store};
use tokio::sync::Notify;

use crate::draw;
use crate::notice::tell_parked;
use crate::step::{ANSWER, Pause, Step, StepError};

/// Attempts of one round.
const BATCH: usize = 500;
const POLL: Duration = Duration::from_secs(2);

/// The loop.
#[derive(Debug)]
pub struct Rescuer {
    store: Store,
    defaults: RetryPolicy,
    relay: Arc<Notify>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rescued {
    /// Attempts whose lease was over.
    pub found: usize,
    /// Of those, the ones that this round ended; the others had moved on meanwhile.
    pub lost: usize,
}

impl Rescuer {
    /// `defaults` hold where a job says nothing; `relay` is woken when tickets are owed.
    pub fn new(store: Store, defaults: RetryPolicy, relay: Arc<Notify>) -> Self {
        Self { store, defaults, relay }
    }

    fn verdict(&self, overdue: &Overdue) -> Verdict {
        let policy = self.defaults.with(&overdue.retry);
        decide(Ending::Lost, LOST, overdue.used, &policy, draw::fraction())
    }
}

impl Step for Rescuer {
    const NAME: &'static str = "rescuer";
    const LIMIT: Duration = Duration::from_mins(2);
    type Report = Rescued;

    async fn run_once(&self, now: Now) -> Result<Rescued, StepError> {
        let finding = lost::find(&self.store, &Which::LeaseOver, BATCH as i64, now);
        let overdue = within(ANSWER, finding).await?;
        let verdicts: Vec<_> = overdue.iter().map(|one| (one.clone(), self.verdict(one))).collect();
        let settling = lost::settle(&self.store, &Which::LeaseOver, &verdicts, now);
        let ended = within(ANSWER, settling).await?;
        for one in overdue.iter().filter(|one| ended.contains(&one.execution_id)) {
            tracing::warn!(
                execution.id = %one.execution_id,
                attempt.number = one.attempt.get(),
                worker.id = %one.worker,
                "attempt {} of execution {} is lost: its worker let the lease run out",
                one.attempt,
                one.execution_id
            );
        }
        if !ended.is_empty() {
            fault::point("scheduler.rescued");
            self.relay.notify_one();
        }
        tell_parked(&self.store, &ended).await;
        Ok(Rescued { found: overdue.len(), lost: ended.len() })
    }

    fn pause(&self, rescued: &Rescued) -> Pause {
        let full = rescued.lost >= BATCH;
        Pause::AtMost(if full { Duration::ZERO } else { POLL })
    }
}
