//! Runs a task while the job's lock is held.
//!
//! ```text
//! opened ── take the lock ── run ── release ── settle
//!                │            │
//!        held elsewhere     lost: kill the task, then settle the attempt as lost
//! ```
//!
//! A task in a transaction of the database commits its effects when its success is settled, so the lock is released after that. After
//! any other end it is released before, since the next attempt, or a successor with the same lock, may begin at once. A
//! crash frees an advisory lock at once, and a lock row when its time is over.

use std::pin::pin;

use sexton_guard::Held;
use sexton_model::id::AttemptNumber;
use sexton_model::job::OnLocked;
use sexton_store::open::Opened;

use crate::context::Context;
use crate::executor::{Outcome, StopReason, SuccessRecord, TaskEnd, TaskSupervisor};
use crate::job_locks::Acquisition;

/// Runs `task` with the job's lock, if it has one. Returns the lock for as long as the end is not recorded.
pub(super) async fn run_with_lock(
    context: &Context,
    opened: &Opened,
    supervisor: &TaskSupervisor,
    task: impl Future<Output = TaskEnd>,
) -> (TaskEnd, Option<Held>) {
    let Some(lock) = &opened.lock else { return (task.await, None) };
    let held = match context.job_locks.acquire(lock).await {
        Acquisition::Held(held) => held,
        Acquisition::HeldBy(holder) => {
            let message = format!("{lock} is held by {holder}");
            // What has begun is not given up: its earlier attempt may have failed half way.
            let has_begun = opened.attempt > AttemptNumber::FIRST;
            let on_locked = if has_begun { OnLocked::Wait } else { opened.on_locked };
            let outcome = Outcome::Locked { message, on_locked };
            return (TaskEnd::new(outcome), None);
        }
        // The database is away for a moment; that fails no execution whose task never ran.
        Acquisition::Failed { error, is_transient: true } => {
            let message = format!("{lock} could not be taken: {error}");
            return (TaskEnd::new(Outcome::Locked { message, on_locked: OnLocked::Wait }), None);
        }
        Acquisition::Failed { error, is_transient: false } => {
            let message = format!("{lock} could not be taken: {error}");
            return (TaskEnd::new(Outcome::CouldNotStart { message, retryable: true }), None);
        }
    };
    let mut task = pin!(task);
    let ended = tokio::select! {
        biased;
        () = held.lost().cancelled() => None,
        end = &mut task => Some(end),
    };
    let end = if let Some(end) = ended {
        end
    } else {
        supervisor.stop(StopReason::LeaseLost);
        task.await
    };
    // A process that was frozen finds here what nobody has signalled yet.
    if !held.is_lost() || (is_success(&end) && !has_transaction(&end)) {
        // Without a loss, or its effects have happened already.
        return (end, Some(held));
    }
    let message = format!(
        "{lock} was lost while it ran, with its connection or to another holder; the task was killed"
    );
    let outcome = Outcome::LockLost { message };
    (TaskEnd { outcome, ..end }, Some(held))
}

/// Whether the task's effects are committed with the record of its success.
pub(super) const fn has_transaction(end: &TaskEnd) -> bool {
    matches!(end.success_record, SuccessRecord::InTransaction(_))
}

const fn is_success(end: &TaskEnd) -> bool {
    matches!(end.outcome, Outcome::Succeeded)
}

/// Releases the lock of an attempt, if there is one.
pub(super) async fn release(opened: &Opened, lock: Option<Held>) {
    let Some(lock) = lock else { return };
    if let Err(error) = lock.release().await {
        tracing::warn!(
            job.name = opened.job,
            execution.id = %opened.execution_id,
            attempt.number = opened.attempt.get(),
            "the job's lock may have been free before the attempt had ended: {error}"
        );
    }
}
