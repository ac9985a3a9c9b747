//! What the simulation itself has seen, outside the database: the measure of the rows.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::Cause;
use sexton_store::lease::AttemptFence;
use sexton_store::open::Opened;
use uuid::Uuid;

use super::bulks::BulkLedger;
use super::stop::Stop;
use super::writes::CHECK;

/// What has been seen so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The one execution of each job's key.
    pub(super) keys: HashMap<(Uuid, String), ExecutionId>,
    /// The one opening of each attempt: its token.
    pub(super) opened: HashMap<(ExecutionId, AttemptNumber), Uuid>,
    /// The last renewal of each open attempt: its `lease_until`, for how long, and when that was by a clock
    /// that nobody sets.
    pub(super) renewed: HashMap<ExecutionId, (DateTime<Utc>, TimeDelta, DateTime<Utc>)>,
    /// The tasks that were started: by idempotency key, the execution and the attempts' numbers.
    started: HashMap<String, (ExecutionId, Vec<AttemptNumber>)>,
    /// Attempts whose task ended well.
    succeeded: HashSet<ExecutionId>,
    /// Parked tickets that a person moved or copied to the main queue.
    pub(super) released: HashSet<(ExecutionId, AttemptNumber)>,
    /// Tickets that a person moved to the failed queue, where they do not belong.
    pub(super) misplaced: HashSet<(ExecutionId, AttemptNumber)>,
    /// Executions whose ticket was lost.
    pub(super) excused: HashSet<ExecutionId>,
    /// From which attempt on budgets count: that of the last requeue.
    pub(super) budget_from: HashMap<ExecutionId, i32>,
    /// How many operator actions the audit should have.
    pub(super) actions: HashMap<ExecutionId, i64>,
    /// Executions that retention has removed.
    pub(super) pruned: HashSet<ExecutionId>,
    /// Their keys.
    pub(super) removed_keys: HashSet<(Uuid, String)>,
    /// Executions that were opened while they were failed, by a message that a person moved: nothing
    /// keeps these from running beside others of their job.
    pub(super) by_hand: HashSet<ExecutionId>,
    /// Jobs whose executions run one at a time: by their policy, and since no two were let go.
    pub(super) alone: HashSet<Uuid>,
    /// The executions of foreign tasks, by message id.
    pub(super) foreign: HashMap<String, ExecutionId>,
    /// The requested bulks, and the answers to their questions.
    pub(super) bulks: BulkLedger,
}

impl Ledger {
    /// A worker starts a task: the effect that must not happen twice for one attempt.
    pub(super) fn start(&mut self, opened: &Opened) -> Result<(), Stop> {
        let (id, number) = (opened.execution_id, opened.attempt);
        // A question is handed the key that it asks about.
        let key = match opened.task_type.as_str() {
            CHECK => format!("question {id}"),
            _ => opened.idempotency_key.clone(),
        };
        let of_key = self.started.entry(key).or_insert_with(|| (id, vec![]));
        if of_key.0 != id {
            return Err(Stop::broken(format!(
                "two executions start tasks with the idempotency key {}",
                opened.idempotency_key
            )));
        }
        if of_key.1.contains(&number) {
            return Err(Stop::broken(format!(
                "attempt {number} of {} starts a task twice",
                opened.idempotency_key
            )));
        }
        of_key.1.push(number);
        Ok(())
    }

    /// A task of it ended well.
    pub(super) fn succeed(&mut self, id: ExecutionId) {
        self.succeeded.insert(id);
    }

    /// Whether a task of it ever ended well.
    pub(super) fn has_succeeded(&self, id: ExecutionId) -> bool {
        self.succeeded.contains(&id)
    }

    /// Retention has removed it: after that, its key is new again.
    pub(super) fn forget(&mut self, id: ExecutionId) {
        self.pruned.insert(id);
        let gone = self.keys.extract_if(|_, known| *known == id).map(|(key, _)| key);
        self.removed_keys.extend(gone);
        self.started.retain(|_, (known, _)| *known != id);
        self.foreign.retain(|_, known| *known != id);
    }

    /// The audit should have one more action of it.
    pub(super) fn record_action(&mut self, id: ExecutionId) {
        *self.actions.entry(id).or_default() += 1;
    }
}

/// What an operation did, for the judgement of what it changed.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Tickets that a worker asked to open.
    pub(super) presented: Vec<(ExecutionId, AttemptNumber)>,
    /// Attempts that their worker settled.
    pub(super) settled: Vec<AttemptFence>,
    /// Worker processes that are known to be dead, whose attempts were ended.
    pub(super) dead: Vec<Uuid>,
    /// What a person did.
    pub(super) person: Option<(ExecutionId, Cause)>,
    /// Tickets that nobody could open.
    pub(super) unopenable: Vec<(ExecutionId, AttemptNumber)>,
    /// Published tickets that were marked, with the revision they were published for.
    pub(super) marked: Vec<(ExecutionId, i32)>,
    /// Whether a scheduler claimed firings.
    pub(super) planned: bool,
    /// Whether one admitted waiters.
    pub(super) admitted: bool,
    /// Whether retention was at work.
    pub(super) pruned: bool,
    /// The bulk of which a scheduler has done something, or a command.
    pub(super) bulk: Option<i64>,
    /// The bulk that a person has stopped, or let go on.
    pub(super) steered: Option<i64>,
    /// What bulks have done, by their items and their questions.
    pub(super) by_bulk: Vec<(ExecutionId, Cause)>,
}
