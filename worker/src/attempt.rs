//! An open attempt, from its start to the mark of what follows from it.
//!
//! ```text
//! open ── run, renewing ── settle (row) ── publish what is owed ── mark ── (the slot acks)
//! ```
//!
//! A crash anywhere before the settlement: the lease runs out, the rescuer ends the attempt as lost.
//! After it: the row owes a ticket that the relay publishes, and the spent ticket, which comes again,
//! opens nothing.

use std::time::Duration;

use sexton_broker::outgoing;
use sexton_model::retry::{Verdict, decide};
use sexton_model::state::State;
use sexton_service::{clock, fault};
use sexton_store::lease::Held;
use sexton_store::open::Opened;
use sexton_store::settle::{Settled, Settlement, record_late};
use sexton_store::tickets::OwedTicket;

use crate::context::Context;
use crate::ending::{Meaning, meaning, sanitise};
use crate::executor::{HostInstant, Outcome, TaskEnd, TaskRun, TaskSupervisor};
use crate::journal::JournalError;
use crate::keeper::{keep, lease_end};
use crate::output::Output;

/// What a worker says of a task that it killed by its own clock.
const LEASE_LOST: &str = "lease_lost";

/// Runs an attempt whose open was sent at `sent`, and records its end.
pub(crate) async fn run(context: &Context, opened: &Opened, sent: HostInstant) {
    fault::point("worker.opened");
    tracing::debug!(
        job.name = opened.job,
        execution.id = %opened.execution_id,
        attempt.number = opened.attempt.get(),
        "attempt opened"
    );
    let end = run_task(context, opened, sent).await;
    fault::point("worker.ran");
    match meaning(&end.outcome) {
        Some(meaning) => record(context, opened, end, &meaning).await,
        None => late(context, opened, LEASE_LOST).await,
    }
}

/// All that fences an opened attempt.
pub(crate) fn held(opened: &Opened) -> Held {
    Held { execution_id: opened.execution_id, attempt: opened.attempt, token: opened.token }
}

async fn run_task(context: &Context, opened: &Opened, sent: HostInstant) -> TaskEnd {
    let Some(task) = context.tasks.get(&opened.task_type) else {
        // The open asked for this worker's own types only.
        let message = format!("this worker does not run the task type {}", opened.task_type);
        let outcome = Outcome::CouldNotStart { message, retryable: true };
        return TaskEnd { outcome, exit_code: None, signal: None, output: Output::default() };
    };
    let timeout = task.timeout.map_or(opened.timeout, |longest| longest.min(opened.timeout));
    let run = TaskRun {
        execution_id: opened.execution_id.get(),
        attempt: opened.attempt.get().unsigned_abs(),
        job: opened.job.clone(),
        target: opened.target.clone(),
        execution_key: opened.execution_key.clone(),
        scheduled_for: opened.scheduled_for,
        deadline: clock::now() + timeout,
        idempotency_key: opened.idempotency_key.clone(),
        params: opened.params.clone(),
        timeout,
    };
    let (supervisor, control) = TaskSupervisor::new(lease_end(sent, opened.lease));
    tokio::select! {
        biased;
        end = task.executor.run(&run, control) => end,
        never = keep(context, held(opened), opened.lease, &supervisor) => match never {},
    }
}

async fn record(context: &Context, opened: &Opened, end: TaskEnd, meaning: &Meaning) {
    let policy = context.retry.with(&opened.retry);
    let verdict = decide(meaning.ending, opened.used, &policy, Context::draw());
    let quiet = end.output.lines.is_empty() && end.output.dropped_bytes == 0;
    let settlement = Settlement {
        held: held(opened),
        verdict,
        outcome: meaning.outcome,
        error: meaning.error.clone(),
        exit_code: end.exit_code,
        signal: end.signal,
        output: if quiet { None } else { serde_json::to_value(&end.output).ok() },
    };
    match settle(context, settlement).await {
        Some(Settled::Done { state, owed }) => {
            fault::point("worker.settled");
            tell(opened, meaning, state, &verdict);
            if let Some(owed) = owed {
                publish(context, &owed).await;
            }
        }
        Some(Settled::Locked | Settled::Fenced) => late(context, opened, meaning.outcome).await,
        None => {}
    }
}

/// Asks until the journal answers. `None`: the worker has to end first; the lease sees to the rest.
async fn settle(context: &Context, mut settlement: Settlement) -> Option<Settled> {
    let mut stripped = false;
    loop {
        match context.journal.settle(settlement.clone()).await {
            Ok(settled) => return Some(settled),
            Err(JournalError::Data(refused)) => {
                // Nothing more can be left out, so asking again would only be hot.
                if std::mem::replace(&mut stripped, true) {
                    tracing::error!(
                        execution.id = %settlement.held.execution_id,
                        "the end of an attempt cannot be recorded: {refused}"
                    );
                    return None;
                }
                // What the task wrote cannot be stored; that it ended, and how, can.
                settlement.output = None;
                let class = settlement.error.take().map_or("unstorable".to_owned(), |e| e.0);
                let class = sanitise(&class);
                if settlement.outcome != "succeeded" {
                    let said = format!("its message could not be stored: {refused}");
                    settlement.error = Some((class, sanitise(&said)));
                }
            }
            Err(JournalError::Unanswered) => {
                tokio::select! {
                    // Also after the gate opened: an answer that is refused must not be hot.
                    () = async {
                        context.gate.opened().await;
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    } => {}
                    () = last_moment(context) => return None,
                }
            }
        }
    }
}

/// A while after the hard stop: the process is about to end anyway.
async fn last_moment(context: &Context) {
    context.hard.cancelled().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// Publishes a ticket that a row owes, and marks it. Failing leaves the debt to the relay.
pub(crate) async fn publish(context: &Context, owed: &OwedTicket) {
    let publication = outgoing::ticket(
        &context.namespace,
        &owed.pool,
        owed.state,
        owed.due_in.to_std().unwrap_or_default(),
        &owed.ticket,
        owed.parked.as_ref(),
        clock::now(),
    );
    match context.publisher.publish_one(publication).await {
        Ok(()) => {
            fault::point("worker.published");
            // Unmarked, it is published once more, which harms nobody.
            let _ = context.journal.mark(owed.ticket.execution_id, owed.rev).await;
        }
        Err(error) => tracing::debug!(
            execution.id = %owed.ticket.execution_id,
            "a ticket is left to the relay: {error}"
        ),
    }
}

/// The end of an attempt that is not this worker's any more, or was recorded before by a settlement
/// whose answer was lost.
async fn late(context: &Context, opened: &Opened, outcome: &str) {
    let worker = context.writer.worker;
    let record = record_late(&context.store, worker, held(opened), outcome, None);
    // For people only: if it cannot be written, nothing is missing.
    let taken = context.gate.ask(record).await.unwrap_or(false);
    if taken {
        fault::point("worker.late");
    }
    let said = if taken {
        "an attempt ended here after it had been taken from this worker; nothing follows from it"
    } else if outcome == LEASE_LOST {
        "a task was killed because its lease could not be renewed in time"
    } else {
        return;
    };
    tracing::warn!(
        job.name = opened.job,
        execution.id = %opened.execution_id,
        attempt.number = opened.attempt.get(),
        attempt.outcome = outcome,
        "{said}"
    );
}

fn tell(opened: &Opened, meaning: &Meaning, state: State, verdict: &Verdict) {
    let (job, id, attempt) = (&opened.job, opened.execution_id, opened.attempt.get());
    let reason = meaning.error.as_ref().map_or("", |(_, message)| message.as_str());
    match (state, verdict) {
        (State::Retrying, Verdict::Retry { after, used }) => tracing::warn!(
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            attempt.outcome = meaning.outcome,
            retry.used = used.retries,
            "attempt {attempt} of {job} ended badly ({reason}); the next is due in {} ms",
            after.as_millis()
        ),
        (State::Failed, _) => tracing::error!(
            task.r#type = opened.task_type,
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            retry.count = opened.used.retries,
            failed_at = %clock::now(),
            reason,
            "{job} is parked: {reason}; `sexton failed show {id}` tells more"
        ),
        _ => tracing::info!(
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            "attempt {attempt} of {job}: {}",
            state.as_str()
        ),
    }
}
