//! The workers' statements, as in `worker/src/write_batcher`: one for all slots of a worker, but never two
//! rows of one execution.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::open::{OpenDecision, decide_unopened};
use sexton_model::retry::{AttemptEnd, Decision, LOST, decide};
use sexton_store::foreign::ClaimOutcome;
use sexton_store::lease::{Renewal, renew};
use sexton_store::lost_attempts::{self, LossGrounds, LostAttempt};
use sexton_store::open::{Offer, OpenRequest, Opened, open, read_unopened, recover};
use sexton_store::settle::{SettleOutcome, Settlement, record_late, settle};
use sexton_store::{foreign, parked_messages, relay};

use super::case::{ACTOR, HOPELESS, JITTER_FRACTION, Simulation, pool};
use super::invariants::invariant;
use super::op::{Cut, ScriptedAnswer};
use super::slots::{Elsewhere, Outcome, SLOTS, Step, WORKERS, held, own_clock};
use super::stop::Stop;

/// Of jobs without one of their own.
const LEASE: Duration = Duration::from_secs(20);

/// The crash budget of the workers' catalogues.
pub(super) const CRASHES: u32 = 2;
/// What the second worker lacks.
pub(super) const RARE: &str = "rare";
/// What both offer.
pub(super) const WORK: &str = "work";
/// Which both offer, and which says whether an effect has happened.
pub(super) const CHECK: &str = "check";

/// What a worker offers. Its crash budget is its own; that of the rescuer is another.
fn offered(worker: usize) -> Vec<Offer> {
    let types: &[&str] = if worker == 0 { &[WORK, CHECK, RARE] } else { &[WORK, CHECK] };
    let offer = |&name: &&str| Offer { task_type: name.to_owned(), max_crashes: CRASHES };
    types.iter().map(offer).collect()
}

/// What a round of opens answers.
#[derive(Default)]
struct Answers {
    opened: HashMap<ExecutionId, Opened>,
    skipped: Vec<ExecutionId>,
    unopened: HashMap<ExecutionId, OpenDecision>,
}

impl Simulation<'_> {
    /// Takes over a foreign task, or asks to open what the worker's slots have received.
    pub(super) async fn ask(&mut self, worker: u8, cut: Cut) -> Result<(), Stop> {
        for slot in Self::slots_of(worker) {
            if matches!(self.slots[slot].step, Step::Foreign(..)) {
                return self.adopt(slot, cut).await;
            }
        }
        let mut seen = HashSet::new();
        let asking: Vec<(usize, OpenRequest, bool)> = Self::slots_of(worker)
            .filter_map(|slot| match &self.slots[slot].step {
                Step::Received { request, retried } => Some((slot, *request, *retried)),
                _ => None,
            })
            .filter(|(_, request, _)| seen.insert(request.execution_id))
            .collect();
        if asking.is_empty() {
            return Ok(());
        }
        let requests: Vec<OpenRequest> = asking.iter().map(|(_, request, _)| *request).collect();
        let mut answers = Answers::default();
        if cut != Cut::Before {
            self.notes.presented = requests.iter().map(|r| (r.execution_id, r.attempt)).collect();
            answers = self.open_all(usize::from(worker) % WORKERS, &requests).await?;
        }
        for (slot, request, retried) in asking {
            if cut != Cut::No {
                self.slots[slot].step = Step::Received { request, retried: true };
            } else if let Some(opened) = answers.opened.remove(&request.execution_id) {
                self.begin_task(slot, opened, retried && self.parts.renewal_first)?;
            } else if answers.skipped.contains(&request.execution_id) {
                self.slots[slot].step = Step::Acking;
            } else {
                let answer = answers.unopened.get(&request.execution_id).copied();
                self.perform_task(slot, request, answer).await?;
            }
        }
        Ok(())
    }

    async fn open_all(&mut self, worker: usize, requests: &[OpenRequest]) -> Result<Answers, Stop> {
        let (store, now, types) = (self.writes(), Some(self.now), offered(worker));
        let process = self.workers[worker].process;
        let mut answers = Answers::default();
        let answered = open(store, process, ACTOR, &types, requests, LEASE, now).await?;
        answers.opened = answered.opened.into_iter().map(|one| (one.execution_id, one)).collect();
        answers.skipped = answered.skipped;
        self.skipped += answers.skipped.len() as u64;
        let unopened = |request: &&OpenRequest| {
            let id = request.execution_id;
            !answers.opened.contains_key(&id) && !answers.skipped.contains(&id)
        };
        let missed: Vec<OpenRequest> = requests.iter().filter(unopened).copied().collect();
        let rows: HashMap<_, _> =
            read_unopened(store, &types, &missed, now).await?.into_iter().collect();
        for request in &missed {
            let answer = decide_unopened(request.attempt, rows.get(&request.execution_id));
            answers.unopened.insert(request.execution_id, answer);
        }
        if answers.unopened.values().any(|answer| *answer == OpenDecision::Run) {
            let found = recover(store, &missed, LEASE).await?;
            answers.opened.extend(found.into_iter().map(|one| (one.execution_id, one)));
        }
        Ok(answers)
    }

    fn begin_task(&mut self, slot: usize, opened: Opened, again: bool) -> Result<(), Stop> {
        let opened = Box::new(opened);
        self.slots[slot].step = if again {
            Step::Opened(opened)
        } else {
            self.ledger.start(&opened)?;
            let until = own_clock(self.steady, opened.lease);
            Step::Running { opened, until }
        };
        Ok(())
    }

    async fn perform_task(
        &mut self,
        slot: usize,
        request: OpenRequest,
        answer: Option<OpenDecision>,
    ) -> Result<(), Stop> {
        let OpenRequest { execution_id: id, attempt, .. } = request;
        let message = self.slots[slot].delivery.clone();
        let moving =
            |copy: Option<_>, to| copy.map_or(Step::Acking, |copy| Step::Moving { copy, to });
        let step = match answer {
            Some(OpenDecision::AlreadyOpened | OpenDecision::Stale) => Step::Acking,
            Some(OpenDecision::Wait(rest)) => {
                let copy = message.map(|message| message.too_early(id, attempt));
                moving(copy, Elsewhere::DelayQueues(rest))
            }
            Some(OpenDecision::UnknownExecution) => {
                let removed = self.ledger.pruned.contains(&id);
                invariant!(removed, "ticket {attempt} of {id} has no row");
                moving(message.map(|message| message.copied()), Elsewhere::Failed)
            }
            Some(OpenDecision::Repark) => {
                moving(message.map(|message| message.copied()), Elsewhere::Failed)
            }
            Some(OpenDecision::Unoffered) => {
                self.fail_unopened(id, attempt, "unknown_task_type").await?;
                Step::Acking
            }
            // Nobody else is at work between the open and the look, and no row is locked.
            other => {
                return Err(Stop::broken(format!("ticket {attempt} of {id}: answered {other:?}")));
            }
        };
        self.slots[slot].step = step;
        Ok(())
    }

    /// Fails an execution whose ticket cannot be opened.
    pub(super) async fn fail_unopened(
        &mut self,
        id: ExecutionId,
        attempt: AttemptNumber,
        class: &str,
    ) -> Result<(), Stop> {
        self.notes.unopenable.push((id, attempt));
        parked_messages::fail_unopened(self.writes(), id, attempt, class, "why", Some(self.now))
            .await?;
        Ok(())
    }

    async fn adopt(&mut self, slot: usize, cut: Cut) -> Result<(), Stop> {
        let Step::Foreign(task, ids) = &self.slots[slot].step else { return Ok(()) };
        if cut == Cut::Before {
            return Ok(());
        }
        self.wrote = true;
        let claimed =
            foreign::claim(self.store, task, &pool(), *ids, ACTOR, Some(self.now)).await?;
        let ClaimOutcome::Adopted(claimed) = claimed else {
            return Err(Stop::broken("there is no room for a foreign job".to_owned()));
        };
        let (key, token) = (task.key.clone().unwrap_or_default(), ids.execution.get());
        let known = *self.ledger.foreign.entry(key).or_insert(claimed.execution_id);
        invariant!(known == claimed.execution_id, "a foreign task became two executions");
        // The message may have been lost while it was in this worker's hand.
        self.ledger.excused.insert(claimed.execution_id);
        if cut == Cut::No {
            let request = OpenRequest {
                execution_id: claimed.execution_id,
                attempt: AttemptNumber::FIRST,
                token: sexton_model::id::OpenToken::new(token),
            };
            self.slots[slot].step = Step::Received { request, retried: false };
        }
        Ok(())
    }

    /// Renews what runs, and starts what had to be renewed first.
    pub(super) async fn renew(&mut self, worker: u8, cut: Cut) -> Result<(), Stop> {
        let (mut slots, mut leases) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
        let mut seen = HashSet::new();
        for slot in Self::slots_of(worker) {
            if let Step::Opened(opened) | Step::Running { opened, .. } = &self.slots[slot].step
                && seen.insert(opened.execution_id)
            {
                slots.push(slot);
                leases.push((held(opened), opened.lease));
            }
        }
        if leases.is_empty() || cut == Cut::Before {
            return Ok(());
        }
        let renewed = renew(self.writes(), &leases, Some(self.now)).await?;
        if cut == Cut::After {
            return Ok(());
        }
        for (slot, renewal) in slots.into_iter().zip(renewed) {
            let step = std::mem::take(&mut self.slots[slot].step);
            self.slots[slot].step = self.renewed(step, renewal)?;
        }
        Ok(())
    }

    fn renewed(&mut self, step: Step, renewal: Renewal) -> Result<Step, Stop> {
        Ok(match (step, renewal) {
            (Step::Opened(opened), Renewal::Renewed { .. }) => {
                self.ledger.start(&opened)?;
                let until = own_clock(self.steady, opened.lease);
                Step::Running { opened, until }
            }
            (Step::Opened(_), Renewal::Fenced) => Step::Acking,
            (Step::Running { opened, .. }, Renewal::Renewed { cancel_requested: true }) => {
                let ending = AttemptEnd::Interrupted;
                let end = Outcome { ending, outcome: "cancelled", reply: None };
                Step::Ran { opened, end }
            }
            (Step::Running { opened, .. }, Renewal::Renewed { .. }) => {
                let until = own_clock(self.steady, opened.lease);
                Step::Running { opened, until }
            }
            (Step::Running { opened, .. }, Renewal::Fenced) => {
                Step::Late { held: held(&opened), outcome: "lease_lost" }
            }
            (_, Renewal::Locked) => {
                return Err(Stop::broken("a renewal finds a lock that nobody has"));
            }
            (step, _) => step,
        })
    }

    /// Records how tasks ended, and what came too late to be recorded.
    pub(super) async fn settle(&mut self, worker: u8, cut: Cut) -> Result<(), Stop> {
        if cut == Cut::Before {
            return Ok(());
        }
        let (mut slots, mut settlements) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for slot in Self::slots_of(worker) {
            match &self.slots[slot].step {
                Step::Ran { opened, end } if seen.insert(opened.execution_id) => {
                    let policy = self.defaults.with(&opened.retry);
                    let class = if end.outcome == "hopeless" { HOPELESS } else { end.outcome };
                    let error = !matches!(end.outcome, "succeeded" | "cancelled");
                    settlements.push(Settlement {
                        fence: held(opened),
                        verdict: decide(end.ending, class, opened.used, &policy, JITTER_FRACTION),
                        outcome: end.outcome,
                        error: error.then(|| (class.to_owned(), "it failed".to_owned())),
                        exit_code: None,
                        signal: None,
                        output: Some(self.next_line(slot)),
                        result: end.reply.map(ScriptedAnswer::to_json),
                    });
                    slots.push(slot);
                }
                Step::Late { held, outcome } => {
                    let process = self.workers[usize::from(worker) % WORKERS].process;
                    self.wrote = true;
                    record_late(self.store, process, *held, outcome, Some(self.now)).await?;
                    self.slots[slot].step = Step::Acking;
                }
                _ => {}
            }
        }
        self.notes.settled = settlements.iter().map(|settlement| settlement.fence).collect();
        if settlements.is_empty() {
            return Ok(());
        }
        let answers = settle(self.writes(), &settlements, Some(self.now)).await?;
        if cut == Cut::After {
            return Ok(());
        }
        for ((slot, settlement), settled) in slots.into_iter().zip(settlements).zip(answers) {
            self.slots[slot].step = match settled {
                SettleOutcome::Done { unpublished: Some(unpublished), .. } => {
                    Step::Settled(unpublished)
                }
                SettleOutcome::Done { unpublished: None, .. } => Step::Acking,
                SettleOutcome::Fenced => {
                    Step::Late { held: settlement.fence, outcome: settlement.outcome }
                }
                SettleOutcome::Locked | SettleOutcome::Replaced => {
                    return Err(Stop::broken("a settlement finds a lock that nobody has"));
                }
            };
        }
        Ok(())
    }

    /// Marks what the slots of a worker published. Unanswered, it is left to the relay.
    pub(super) async fn mark_sent(&mut self, worker: u8, cut: Cut) -> Result<(), Stop> {
        let mut marks = Vec::with_capacity(SLOTS);
        for slot in Self::slots_of(worker) {
            if let Step::Published(id, rev) = self.slots[slot].step {
                marks.push((id, rev));
                self.slots[slot].step = Step::Acking;
            }
        }
        if cut != Cut::Before && !marks.is_empty() {
            relay::mark_published(self.writes(), &marks, Some(self.now)).await?;
            self.notes.marked = marks;
        }
        Ok(())
    }

    /// A worker takes its instance lock: the attempts of the processes before it are lost.
    pub(super) async fn acquire_instance_lock(&mut self, worker: u8) -> Result<(), Stop> {
        let dead = std::mem::take(&mut self.workers[usize::from(worker) % WORKERS].dead);
        self.notes.dead = dead.iter().map(|process| process.get()).collect();
        self.end_lost(&LossGrounds::OfWorkers(&dead)).await
    }

    async fn end_lost(&mut self, grounds: &LossGrounds<'_>) -> Result<(), Stop> {
        let found = lost_attempts::find(self.store, grounds, 100).await?;
        let verdicts = self.verdicts(found);
        if !verdicts.is_empty() {
            lost_attempts::settle(self.writes(), grounds, &verdicts, Some(self.now)).await?;
        }
        Ok(())
    }

    /// What follows for attempts that are lost.
    pub(super) fn verdicts(&self, found: Vec<LostAttempt>) -> Vec<(LostAttempt, Decision)> {
        let verdict = |one: LostAttempt| {
            let policy = self.defaults.with(&one.retry);
            let verdict = decide(AttemptEnd::Lost, LOST, one.used, &policy, JITTER_FRACTION);
            (one, verdict)
        };
        found.into_iter().map(verdict).collect()
    }
}
