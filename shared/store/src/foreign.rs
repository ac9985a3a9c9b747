//! Tasks that other systems published in the documented form.
//!
//! Each becomes an execution of the reserved job `foreign.<type>`, created on first sight. The
//! message id is the execution key: a redelivered or copied message finds the row that is there.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::FOREIGN_PREFIX;
use sexton_model::key;
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_model::ticket::{Foreign, Ticket};

use crate::bounded::{Bounded, commit};
use crate::firing::FRESH;
use crate::tickets::OwedTicket;
use crate::{HEAD_START_MS, Now, Store, StoreError};

/// Fresh ids for a foreign task that turns out to be new.
#[derive(Clone, Copy, Debug)]
pub struct FreshIds {
    /// For the job, if this is the first task of its type.
    pub job: JobId,
    /// For the execution.
    pub execution: ExecutionId,
}

/// A foreign task that was taken over.
#[derive(Clone, PartialEq, Debug)]
pub struct Adopted {
    /// A new execution, or the one that its key already has.
    pub execution_id: ExecutionId,
    /// The ticket a task without a key owes, to be published by the caller before it acknowledges.
    pub owed: Option<Box<OwedTicket>>,
}

/// Takes a foreign task over. With a key, the delivered message itself is the ticket of attempt 1, so
/// the row owes none; without one the row owes its ticket, and a crash before the message is
/// acknowledged makes a second execution of it.
pub async fn claim(
    store: &Store,
    task: &Foreign,
    pool: &PoolName,
    ids: FreshIds,
    by: &str,
    now: Now,
) -> Result<Adopted, StoreError> {
    let job_name = format!("{FOREIGN_PREFIX}{}", task.task_type);
    let own_key = task.key.is_some();
    let execution_key = task.key.clone().unwrap_or_else(|| format!("foreign-{}", ids.execution));
    let idempotency_key = key::idempotency(None, &job_name, &execution_key);
    let mut tx = store.begin().await?;
    sqlx::query!(
        "-- insert_foreign_job
        INSERT INTO jobs (id, name, description, schedule_kind, task_type, params, pool, overlap,
                          misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, created_at,
                          updated_at)
        VALUES ($1, $2, 'tasks that other systems publish', 'none', $3, '{}', $4, 'allow', 'skip', 0, 1,
                3600000, coalesce($5, now()), coalesce($5, now()))
        ON CONFLICT (name) DO NOTHING",
        ids.job.get(),
        job_name,
        task.task_type,
        pool.as_str(),
        now
    )
    .execute(Bounded(&mut *tx))
    .await?;
    let inserted = sqlx::query!(
        "-- insert_foreign_execution
        INSERT INTO executions (id, job_id, execution_key, own_key, idempotency_key, scheduled_for,
                                state, next_attempt_at, task_type, pool, target, params, claimed_by,
                                claimed_at, relay_after, ticket_published_at)
        SELECT $1, j.id, $3, $4, $5, coalesce($10, now()), 'pending', coalesce($10, now()), $6, $7, $8,
               $9, $11, coalesce($10, now()),
               coalesce($10, now()) + $12 * interval '1 millisecond',
               CASE WHEN $4 THEN coalesce($10, now()) END
        FROM (SELECT id FROM jobs WHERE name = $2 FOR NO KEY UPDATE) j
        ON CONFLICT (job_id, execution_key) DO NOTHING
        RETURNING id, job_id, scheduled_for",
        ids.execution.get(),
        job_name,
        execution_key,
        own_key,
        idempotency_key,
        task.task_type,
        pool.as_str(),
        task.target,
        task.params,
        now,
        by,
        HEAD_START_MS as f64
    )
    .fetch_optional(Bounded(&mut *tx))
    .await?;
    let Some(row) = inserted else {
        let id = sqlx::query_scalar!(
            "-- find_foreign_execution
            SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id
            WHERE j.name = $1 AND e.execution_key = $2",
            job_name,
            execution_key
        )
        .fetch_one(Bounded(&mut *tx))
        .await?;
        commit(tx).await?;
        return Ok(Adopted { execution_id: ExecutionId::new(id), owed: None });
    };
    commit(tx).await?;
    let execution_id = ExecutionId::new(row.id);
    let (attempt, rev) = FRESH;
    let owed = (!own_key).then(|| OwedTicket {
        ticket: Ticket {
            execution_id,
            attempt,
            job_id: JobId::new(row.job_id),
            job: job_name,
            task_type: task.task_type.clone(),
            target: task.target.clone(),
            params: task.params.clone(),
            execution_key,
            scheduled_for: row.scheduled_for,
            idempotency_key,
        },
        rev,
        state: State::Pending,
        pool: pool.clone(),
        due_in: chrono::Duration::zero(),
        parked: None,
    });
    Ok(Adopted { execution_id, owed: owed.map(Box::new) })
}
