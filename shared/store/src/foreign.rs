//! Tasks that other systems published in the documented form.
//!
//! Each becomes an execution of the reserved job `foreign.<type>`, which the first task of a type creates; at most
//! [`MAX_FOREIGN_JOBS`] exist. The message id is the execution key, so a redelivered or copied message finds the
//! existing row.

use chrono::{DateTime, Utc};
use sexton_model::foreign::MAX_FOREIGN_JOBS;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::FOREIGN_PREFIX;
use sexton_model::key;
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_model::ticket::{ForeignTask, Ticket};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::firing::INITIAL_ATTEMPT;
use crate::platform_keys::FOREIGN_JOBS_LOCK;
use crate::tickets::UnpublishedTicket;
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

/// Fresh ids for a foreign task that turns out to be new.
#[derive(Clone, Copy, Debug)]
pub struct FreshIds {
    /// For the job, if this is the first task of its type.
    pub job: JobId,
    /// For the execution.
    pub execution: ExecutionId,
}

/// An adopted foreign task.
#[derive(Clone, PartialEq, Debug)]
pub struct Adopted {
    /// A new execution, or the existing one with its key.
    pub execution_id: ExecutionId,
    /// The unpublished ticket of a task without a key, which the caller publishes before it acknowledges.
    pub unpublished: Option<Box<UnpublishedTicket>>,
}

/// The result of a claim.
#[derive(Clone, PartialEq, Debug)]
pub enum ClaimOutcome {
    /// The task has an execution.
    Adopted(Adopted),
    /// [`MAX_FOREIGN_JOBS`] foreign jobs exist, none of them of this type: nothing was written.
    NoRoom,
}

/// Maximum number of claims in one call: if a job is deleted between two statements of a claim, the next claim
/// creates it again.
const MAX_CLAIM_TRIES: usize = 3;

/// Adopts a foreign task. With a key, the delivered message itself is the ticket of attempt 1, so the row has no
/// unpublished ticket; without one it has, and a crash before the acknowledgement makes a second execution of the
/// message.
///
/// [`sexton_model::foreign::admit`] decides before whether the task may become an execution at all.
pub async fn claim(
    store: &Store,
    task: &ForeignTask,
    pool: &PoolName,
    ids: FreshIds,
    by: &str,
    now: Now,
) -> Result<ClaimOutcome, StoreError> {
    let claim = Claim::of(task, pool, ids, by, now);
    for _ in 0..MAX_CLAIM_TRIES {
        let mut tx = store.begin().await?;
        if let Some(row) = claim.insert_execution(&mut tx).await? {
            commit(tx).await?;
            return Ok(ClaimOutcome::Adopted(claim.adopted(&row)));
        }
        if let Some(execution_id) = claim.find(&mut tx).await? {
            commit(tx).await?;
            return Ok(ClaimOutcome::Adopted(Adopted { execution_id, unpublished: None }));
        }
        // The job did not exist. The lock makes jobs one after the other, which keeps their number within its limit.
        if !claim.insert_job(&mut tx).await? {
            commit(tx).await?;
            return Ok(ClaimOutcome::NoRoom);
        }
        if let Some(row) = claim.insert_execution(&mut tx).await? {
            commit(tx).await?;
            return Ok(ClaimOutcome::Adopted(claim.adopted(&row)));
        }
        with_client_timeout(tx.rollback()).await?;
    }
    Err(StoreError::Inconsistent { place: "jobs.name", value: claim.job_name })
}

/// Returns the execution of the current job that a task with a key already has. For a message that may not be
/// adopted: an earlier adoption continues.
pub async fn find(store: &Store, task: &ForeignTask) -> Result<Option<ExecutionId>, StoreError> {
    let Some(key) = &task.key else { return Ok(None) };
    find_on(store.with_timeout(), &job_name(task), key).await
}

fn job_name(task: &ForeignTask) -> String {
    format!("{FOREIGN_PREFIX}{}", task.task_type)
}

async fn find_on<'c>(
    executor: WithTimeout<impl PgExecutor<'c>>,
    job_name: &str,
    execution_key: &str,
) -> Result<Option<ExecutionId>, StoreError> {
    let id = sqlx::query_scalar!(
        "-- find_foreign_execution
        SELECT e.id FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE j.name = $1 AND e.execution_key = $2",
        job_name,
        execution_key
    )
    .fetch_optional(executor)
    .await?;
    Ok(id.map(ExecutionId::new))
}

/// The values of one claim.
struct Claim<'a> {
    task: &'a ForeignTask,
    pool: &'a PoolName,
    ids: FreshIds,
    by: &'a str,
    now: Now,
    job_name: String,
    execution_key: String,
    idempotency_key: String,
}

/// An execution that was inserted.
struct Inserted {
    id: Uuid,
    job_id: Uuid,
    scheduled_for: DateTime<Utc>,
}

impl<'a> Claim<'a> {
    fn of(task: &'a ForeignTask, pool: &'a PoolName, ids: FreshIds, by: &'a str, now: Now) -> Self {
        let job_name = job_name(task);
        let execution_key =
            task.key.clone().unwrap_or_else(|| format!("foreign-{}", ids.execution));
        let idempotency_key = key::idempotency(None, &job_name, &execution_key);
        Self { task, pool, ids, by, now, job_name, execution_key, idempotency_key }
    }

    /// Inserts the job unless the number of foreign jobs has reached its limit; then returns `false`.
    async fn insert_job(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        sqlx::query!("-- lock_foreign_jobs\nSELECT pg_advisory_xact_lock($1)", FOREIGN_JOBS_LOCK)
            .execute(WithTimeout(&mut *connection))
            .await?;
        let room = sqlx::query_scalar!(
            r#"-- room_for_foreign_job
            SELECT EXISTS (SELECT FROM sexton.jobs WHERE name = $1)
                OR (SELECT count(*) FROM sexton.jobs WHERE starts_with(name, 'foreign.')) < $2 AS "room!""#,
            self.job_name,
            MAX_FOREIGN_JOBS
        )
        .fetch_one(WithTimeout(&mut *connection))
        .await?;
        if !room {
            return Ok(false);
        }
        sqlx::query!(
            "-- insert_foreign_job
            INSERT INTO sexton.jobs (id, name, description, schedule_kind, task_type, params, pool, overlap,
                              misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, created_at,
                              updated_at)
            VALUES ($1, $2, 'tasks that other systems publish', 'none', $3, '{}', $4, 'allow', 'skip', 0,
                    1, 3600000, coalesce($5, now()), coalesce($5, now()))
            ON CONFLICT (name) DO NOTHING",
            self.ids.job.get(),
            self.job_name,
            self.task.task_type,
            self.pool.as_str(),
            self.now
        )
        .execute(WithTimeout(&mut *connection))
        .await?;
        Ok(true)
    }

    /// Inserts the execution; `None`: its key exists, or its job does not.
    async fn insert_execution(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<Inserted>, StoreError> {
        Ok(sqlx::query_as!(
            Inserted,
            "-- insert_foreign_execution
        INSERT INTO sexton.executions (id, job_id, execution_key, own_key, idempotency_key, scheduled_for,
                                state, next_attempt_at, task_type, pool, target, params, claimed_by,
                                claimed_at, relay_after, ticket_published_at)
        SELECT $1, j.id, $3, $4, $5, coalesce($10, now()), 'pending', coalesce($10, now()), $6, $7, $8,
               $9, $11, coalesce($10, now()),
               coalesce($10, now()) + $12 * interval '1 millisecond',
               CASE WHEN $4 THEN coalesce($10, now()) END
        FROM (SELECT id FROM sexton.jobs WHERE name = $2 FOR NO KEY UPDATE) j
        ON CONFLICT (job_id, execution_key) DO NOTHING
        RETURNING id, job_id, scheduled_for",
            self.ids.execution.get(),
            self.job_name,
            self.execution_key,
            self.task.key.is_some(),
            self.idempotency_key,
            self.task.task_type,
            self.pool.as_str(),
            self.task.target,
            self.task.params,
            self.now,
            self.by,
            RELAY_DELAY_MS as f64
        )
        .fetch_optional(WithTimeout(connection))
        .await?)
    }

    async fn find(&self, connection: &mut PgConnection) -> Result<Option<ExecutionId>, StoreError> {
        find_on(WithTimeout(connection), &self.job_name, &self.execution_key).await
    }

    fn adopted(&self, row: &Inserted) -> Adopted {
        let execution_id = ExecutionId::new(row.id);
        let (attempt, rev) = INITIAL_ATTEMPT;
        let unpublished = self.task.key.is_none().then(|| UnpublishedTicket {
            ticket: Ticket {
                execution_id,
                attempt,
                job_id: JobId::new(row.job_id),
                job: self.job_name.clone(),
                task_type: self.task.task_type.clone(),
                target: self.task.target.clone(),
                params: self.task.params.clone(),
                execution_key: self.execution_key.clone(),
                scheduled_for: row.scheduled_for,
                idempotency_key: self.idempotency_key.clone(),
            },
            rev,
            state: State::Pending,
            pool: self.pool.clone(),
            due_in: chrono::Duration::zero(),
            parked: None,
            origin: None,
        });
        Adopted { execution_id, unpublished: unpublished.map(Box::new) }
    }
}
