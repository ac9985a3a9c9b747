//! Runs an open attempt, from its start to the mark on the ticket that follows it.
//!
//! ```text
//! open ── take the job's lock ── run, renewing ── settle (row) ── publish the next ticket ── mark ── (the slot acks)
//! ```
//!
//! After a crash before the settlement, the lease runs out and the rescuer ends the attempt as lost. After a
//! crash later, the relay publishes the row's unpublished ticket; the old ticket is redelivered and opens
//! nothing.

mod completion;
mod end_log;
mod lease_renewer;
mod lock;
pub(crate) mod outcome;
mod span;

use std::time::{Duration, Instant};

use serde_json::Value;
use sexton_engine::outbox;
use sexton_engine::traces::record_publication;
use sexton_guard::Held;
use sexton_model::result::check;
use sexton_model::retry::{Decision, decide};
use sexton_model::state::State;
use sexton_service::metrics::table;
use sexton_service::traces::TraceContext;
use sexton_service::{clock, fault};
use sexton_store::lease::AttemptFence;
use sexton_store::open::Opened;
use sexton_store::settle::{SettleOutcome, Settlement, record_late, recorded_outcome};
use sexton_store::tickets::UnpublishedTicket;
use tokio::sync::watch;

use self::completion::{CompletionOutcome, complete};
use self::end_log::{count_end, count_start, log_end};
use self::lease_renewer::{lease_end, renew_lease};
use self::lock::{has_transaction, release, run_with_lock};
use self::outcome::{AttemptOutcome, attempt_outcome, sanitise};
pub(crate) use self::span::AttemptSpan;
use crate::context::Context;
use crate::executor::{HostInstant, Outcome, SuccessRecord, TaskEnd, TaskRun, TaskSupervisor};
use crate::output::{OutputLimits, Recorder};
use crate::write_batcher::WriteError;

/// The error class of a task that this worker killed because its lease had run out by the worker's clock.
const LEASE_LOST: &str = "lease_lost";

/// Runs an attempt whose open was sent at `sent`, and records its end. `cancels` must not have seen a cancel
/// that arrived after that instant.
pub(crate) async fn run(
    context: &Context,
    opened: &Opened,
    sent: HostInstant,
    cancels: watch::Receiver<u64>,
    span: Option<AttemptSpan>,
) {
    fault::point("worker.opened");
    tracing::debug!(
        job.name = opened.job,
        execution.id = %opened.execution_id,
        attempt.number = opened.attempt.get(),
        "attempt opened"
    );
    count_start(opened);
    let recorder = Recorder::new(OutputLimits::default(), context.mask.clone());
    let streamed = context.streaming.stream(held(opened), &recorder);
    let began = Instant::now();
    let trace = span.as_ref().map(AttemptSpan::context);
    let (end, mut lock) = run_task(context, opened, sent, cancels, &recorder, trace).await;
    table::ATTEMPT_DURATION.observe([&opened.pool, &opened.task_type], began.elapsed());
    if !has_transaction(&end) {
        release(opened, lock.take()).await;
    }
    drop(streamed);
    if matches!(end.success_record, SuccessRecord::InTransaction(_)) {
        fault::point("worker.sql_ran");
    } else {
        fault::point("worker.ran");
    }
    let ended = if let Some(attempt_outcome) = attempt_outcome(&end.outcome) {
        let attempt_outcome = attempt_outcome.masked(|text| recorder.masked(text));
        record(context, opened, end, &recorder, attempt_outcome).await
    } else {
        record_late_end(context, opened, LEASE_LOST).await;
        AttemptOutcome::lost(LEASE_LOST)
    };
    if let Some(span) = span {
        span.end(opened, &ended);
    }
    release(opened, lock).await;
}

/// Returns the fence of an opened attempt.
pub(crate) fn held(opened: &Opened) -> AttemptFence {
    AttemptFence { execution_id: opened.execution_id, attempt: opened.attempt, token: opened.token }
}

async fn run_task(
    context: &Context,
    opened: &Opened,
    sent: HostInstant,
    cancels: watch::Receiver<u64>,
    recorder: &Recorder,
    trace: Option<TraceContext>,
) -> (TaskEnd, Option<Held>) {
    let Some(task) = context.tasks.get(&opened.task_type) else {
        // An open requests only the task types that this worker runs.
        let message = format!("this worker does not run the task type {}", opened.task_type);
        let outcome = Outcome::CouldNotStart { message, retryable: true };
        return (TaskEnd::new(outcome), None);
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
        trace,
    };
    let lease = lease_end(sent, opened.lease);
    let (supervisor, control) = TaskSupervisor::with_recorder(lease, recorder.clone());
    let control = control.with_instance_lock(context.instance_lock.clone());
    tokio::select! {
        biased;
        end = run_with_lock(context, opened, &supervisor, task.executor.run(&run, control)) => end,
        never = renew_lease(context, held(opened), opened.lease, cancels, &supervisor) => match never {},
    }
}

/// Records the end: in the task's own transaction if it has one, otherwise in a separate statement. Returns it, which is
/// another one if the transaction could not be committed.
async fn record(
    context: &Context,
    opened: &Opened,
    mut end: TaskEnd,
    recorder: &Recorder,
    attempt_outcome: AttemptOutcome,
) -> AttemptOutcome {
    let success_record = std::mem::take(&mut end.success_record);
    let may_be_recorded = matches!(success_record, SuccessRecord::Unknown);
    let settlement = settlement(context, opened, end, recorder, &attempt_outcome);
    let SuccessRecord::InTransaction(transaction) = success_record else {
        record_separately(context, opened, settlement, &attempt_outcome, may_be_recorded).await;
        return attempt_outcome;
    };
    if settlement.verdict != Decision::Succeed {
        // If effects were committed together with a failure, the next attempt would repeat them.
        transaction.rollback().await;
        record_separately(context, opened, settlement, &attempt_outcome, false).await;
        return attempt_outcome;
    }
    let (outcome, may_be_recorded) = match complete(transaction, &settlement).await {
        CompletionOutcome::Done => {
            log_end(opened, &attempt_outcome, State::Succeeded, &settlement.verdict);
            return attempt_outcome;
        }
        CompletionOutcome::Fenced => {
            record_late_end(context, opened, attempt_outcome.outcome).await;
            return attempt_outcome;
        }
        CompletionOutcome::Refused(outcome) => (outcome, false),
        CompletionOutcome::Unknown(outcome) => (outcome, true),
    };
    let Some(attempt_outcome) = outcome::attempt_outcome(&outcome) else { return attempt_outcome };
    let attempt_outcome = attempt_outcome.masked(|text| recorder.masked(text));
    let end = TaskEnd::new(outcome);
    let settlement = self::settlement(context, opened, end, recorder, &attempt_outcome);
    record_separately(context, opened, settlement, &attempt_outcome, may_be_recorded).await;
    attempt_outcome
}

fn settlement(
    context: &Context,
    opened: &Opened,
    end: TaskEnd,
    recorder: &Recorder,
    attempt_outcome: &AttemptOutcome,
) -> Settlement {
    let policy = context.policy(opened);
    let class = attempt_outcome.error.as_ref().map_or("", |(class, _)| class.as_str());
    let verdict = decide(attempt_outcome.ending, class, opened.used, &policy, fastrand::f64());
    let final_part = recorder.final_part();
    Settlement {
        fence: held(opened),
        verdict,
        outcome: attempt_outcome.outcome,
        error: attempt_outcome.error_for(&verdict),
        exit_code: end.exit_code,
        signal: end.signal,
        output: Some(final_part).filter(|final_part| !final_part.is_empty()),
        result: storable_result(opened, end.result.map(|result| recorder.masked_result(result))),
    }
}

/// Records an end outside the task's transaction, once its effects are committed or can no longer be.
/// `may_be_recorded`: the success may already be recorded, together with the effects.
async fn record_separately(
    context: &Context,
    opened: &Opened,
    settlement: Settlement,
    attempt_outcome: &AttemptOutcome,
    may_be_recorded: bool,
) {
    let verdict = settlement.verdict;
    match settle(context, settlement).await {
        Some(SettleOutcome::Done { state, unpublished }) => {
            fault::point("worker.settled");
            log_end(opened, attempt_outcome, state, &verdict);
            if let Some(unpublished) = unpublished {
                publish(context, &unpublished).await;
            }
            if state == State::Failed {
                context.parked_log.record(opened.execution_id);
            }
        }
        Some(_) if may_be_recorded => match read_recorded_outcome(context, opened).await.as_deref()
        {
            Some("succeeded") => {
                let attempt_outcome = AttemptOutcome::success();
                log_end(opened, &attempt_outcome, State::Succeeded, &Decision::Succeed);
            }
            Some(_) => record_late_end(context, opened, attempt_outcome.outcome).await,
            // Nobody knows what this worker's late result would be.
            None => {}
        },
        Some(_) => record_late_end(context, opened, attempt_outcome.outcome).await,
        None => {}
    }
}

/// Returns the result if the database can store it. A task that succeeded did its work; an unstorable result
/// does not run it again.
fn storable_result(opened: &Opened, result: Option<Value>) -> Option<Value> {
    result.filter(|result| match check(result) {
        Ok(()) => true,
        Err(refused) => {
            tracing::warn!(
                job.name = opened.job,
                execution.id = %opened.execution_id,
                attempt.number = opened.attempt.get(),
                "the result of an attempt is not kept: it {refused}"
            );
            false
        }
    })
}

/// Retries until the write batcher answers. `None`: the worker has to end first, and the lease's expiry settles
/// the attempt.
async fn settle(context: &Context, mut settlement: Settlement) -> Option<SettleOutcome> {
    let mut without_output = false;
    loop {
        match context.write_batcher.settle(settlement.clone()).await {
            Ok(settled) => return Some(settled),
            Err(WriteError::Data(refused)) => {
                // Nothing more can be left out, so a retry without a pause would only be a busy loop.
                if std::mem::replace(&mut without_output, true) {
                    tracing::error!(
                        execution.id = %settlement.fence.execution_id,
                        "the end of an attempt cannot be recorded: {refused}"
                    );
                    return None;
                }
                // The task's output or result cannot be stored; that it ended, and how, can.
                settlement.output = None;
                settlement.result = None;
                let class = settlement.error.take().map_or("unstorable".to_owned(), |e| e.0);
                let class = sanitise(&class);
                if settlement.outcome != "succeeded" {
                    let message = format!("its message could not be stored: {refused}");
                    settlement.error = Some((class, sanitise(&message)));
                }
            }
            Err(WriteError::Unanswered | WriteError::Refused(_)) => {
                tokio::select! {
                    // The pause also follows an answer of the database: a refused statement must not become a
                    // busy loop.
                    () = async {
                        context.gate.wait_for_writes().await;
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    } => {}
                    () = wait_for_process_end(context) => return None,
                }
            }
        }
    }
}

/// Waits until shortly after the hard stop, when the process is about to end anyway.
async fn wait_for_process_end(context: &Context) {
    context.hard.cancelled().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// Publishes a row's unpublished ticket and marks it as published. After a failure the relay publishes it.
pub(crate) async fn publish(context: &Context, unpublished: &UnpublishedTicket) {
    let publication = outbox::publication(&context.namespace, unpublished, clock::now());
    let (queue, began) = (publication.queue().to_owned(), clock::now());
    let published = context.publish(publication).await;
    let error = published.as_ref().err().map(ToString::to_string);
    record_publication(unpublished, &queue, began, error.as_deref());
    match published {
        Ok(()) => {
            fault::point("worker.published");
            // Without the mark the ticket is published once more, which does no harm.
            let _ = context.write_batcher.mark(outbox::published(unpublished)).await;
        }
        Err(error) => tracing::debug!(
            execution.id = %unpublished.ticket.execution_id,
            "a ticket is left to the relay: {error}"
        ),
    }
}

/// Reads the recorded outcome of this worker's attempt; `None` also if it cannot be read.
async fn read_recorded_outcome(context: &Context, opened: &Opened) -> Option<String> {
    let look = recorded_outcome(&context.store, context.writer.worker, held(opened));
    // Only the log needs it, so a failed read has no consequence.
    context.gate.run_statement(look).await.ok().flatten()
}

/// Records the late end of an attempt that this worker has lost, or whose settlement was written although its
/// answer was lost.
async fn record_late_end(context: &Context, opened: &Opened, outcome: &str) {
    let worker = context.writer.worker;
    let record = record_late(&context.store, worker, held(opened), outcome, None);
    // Only people read it, so a failed write has no consequence.
    let was_taken = context.gate.run_statement(record).await.unwrap_or(false);
    if was_taken {
        fault::point("worker.late");
    }
    if was_taken || outcome == LEASE_LOST {
        count_end(opened, "lost");
    }
    let message = if was_taken {
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
        "{message}"
    );
}
