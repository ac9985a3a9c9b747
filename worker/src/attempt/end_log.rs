//! What a worker counts and logs of the begin and the end of an attempt.

use std::time::Duration;

use sexton_model::retry::Decision;
use sexton_model::state::State;
use sexton_service::metrics::table;
use sexton_store::open::Opened;

use super::outcome::AttemptOutcome;

/// Counts an attempt that was opened.
pub(super) fn count_start(opened: &Opened) {
    if let Some(due_at) = opened.due_at {
        let waited = (opened.started_at - due_at).to_std().unwrap_or(Duration::ZERO);
        table::QUEUE_WAIT.observe([&opened.pool], waited);
    }
}

/// Counts an attempt that ended.
pub(super) fn count_end(opened: &Opened, outcome: &str) {
    table::ATTEMPTS.add([&opened.pool, &opened.task_type, outcome], 1);
}

/// Counts and logs the recorded end of an attempt.
pub(super) fn log_end(
    opened: &Opened,
    attempt_outcome: &AttemptOutcome,
    state: State,
    verdict: &Decision,
) {
    count_end(opened, attempt_outcome.outcome);
    let (job, id, attempt) = (&opened.job, opened.execution_id, opened.attempt.get());
    let error = attempt_outcome.error_for(verdict);
    let reason = error.as_ref().map_or("", |(_, message)| message.as_str());
    match (state, verdict) {
        (State::Retrying, Decision::Retry { after, used }) if attempt_outcome.is_snooze() => {
            tracing::info!(
                job.name = job,
                execution.id = %id,
                attempt.number = attempt,
                snooze.count = used.snoozes,
                "attempt {attempt} of {job} was too early; the next is due in {} ms",
                after.as_millis()
            );
        }
        (State::Retrying, Decision::Retry { after, .. }) if attempt_outcome.waits_for_lock() => {
            tracing::info!(
                job.name = job,
                execution.id = %id,
                attempt.number = attempt,
                "attempt {attempt} of {job} did not begin ({reason}); the next is due in {} ms",
                after.as_millis()
            );
        }
        (State::Skipped, _) => tracing::info!(
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            execution.skip_reason = reason,
            "skipped execution {id} of {job}: {reason}"
        ),
        (State::Retrying, Decision::Retry { after, used }) => tracing::warn!(
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            attempt.outcome = attempt_outcome.outcome,
            retry.used = used.retries,
            "attempt {attempt} of {job} ended badly ({reason}); the next is due in {} ms",
            after.as_millis()
        ),
        // `publish` logs a parked execution, once its ticket is published.
        (State::Failed, _) => {}
        _ => tracing::info!(
            job.name = job,
            execution.id = %id,
            attempt.number = attempt,
            "attempt {attempt} of {job}: {}",
            state.as_str()
        ),
    }
}
