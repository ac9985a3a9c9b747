//! Delete: ends a job for good, and frees its name.
//!
//! One transaction, under the job's lock, so no claim for it happens meanwhile or later. The row stays, and with it
//! all executions, gaps and audit; it frees its name by taking one that no job can have. Due firings that were not
//! claimed become a gap. Executions under way are a reason to refuse, unless the caller cancels them: waiting ones at
//! once, running ones through their workers, as [`crate::operator::cancel`] does. Failed executions stay parked, and
//! can still be requeued.
//!
//! The job of tasks that other programs publish is deleted in the same way; the next message of a type that a worker
//! offers creates a job of that name again.
//!
//! A crash before the commit leaves the job as it was.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::id::JobId;
use sexton_model::plan::GapReason;
use sexton_model::verify_task::VERIFY_PREFIX;
use sqlx::PgConnection;
use uuid::Uuid;

use super::apply::cursor_placement::left_behind;
use super::pause::{PauseError, lock_job};
use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::firing::gaps::{self, GapCause, GapRow};
use crate::notifications::Notification;
use crate::operator::{AuditContext, NewAction, is_lock_timeout, notify, record_actions};
use crate::{Now, Store, StoreError};

/// The job to delete, and options.
#[derive(Clone, Copy, Debug)]
pub struct Delete<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Cancel the executions under way.
    pub cancel: bool,
    /// Only report what the delete would do.
    pub dry_run: bool,
    /// The revision that the operator has seen; `None`: whichever it has.
    pub revision: Option<i32>,
}

/// Numbers of a job's executions that have not ended or are failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// Pending and retrying executions.
    pub waiting: i64,
    /// Running ones.
    pub running: i64,
    /// Failed ones, which stay.
    pub failed: i64,
}

/// The result of a delete, or of its dry run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deleted {
    /// The job.
    pub id: Uuid,
    /// Its executions.
    pub under_way: UnderWay,
    /// Number of due firings that were not claimed.
    pub passed: u32,
}

/// Why a job was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// No job has this name.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// Somebody has changed it since the operator looked.
    #[error("job {name:?} was changed since you looked: it has the revision {revision}")]
    Changed {
        /// Its name.
        name: String,
        /// Its revision now.
        revision: i32,
    },
    /// It has executions under way.
    #[error("job {name:?} has {} executions under way", .under_way.waiting + .under_way.running)]
    UnderWay {
        /// Its name.
        name: String,
        /// Their numbers.
        under_way: UnderWay,
    },
    /// Flows have members that are its executions, or will have them once schedulers have made them.
    #[error("job {name:?} is a member of the flow of {}; change that first, and let the flows end that have begun", .flows.join(", "))]
    InFlow {
        /// Its name.
        name: String,
        /// The jobs whose flows those are, at most five.
        flows: Vec<String>,
    },
    /// Bulks need the job for their questions.
    #[error("job {0:?} stands for the questions that bulks ask; it cannot be deleted")]
    Reserved(String),
    /// Another transaction kept a row locked for 5 s. Try again.
    #[error("job {0:?} or one of its executions is locked by somebody else; try again")]
    Locked(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deletes a job.
///
/// # Errors
///
/// [`DeleteError`]; the job is unchanged.
pub async fn delete(
    store: &Store,
    request: Delete<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Deleted, DeleteError> {
    let name = request.name;
    if name.starts_with(VERIFY_PREFIX) {
        return Err(DeleteError::Reserved(name.to_owned()));
    }
    let (mut tx, job, at) = lock_job(store, name, now).await.map_err(|error| match error {
        PauseError::Missing(name) => DeleteError::Missing(name),
        PauseError::Locked(name) => DeleteError::Locked(name),
        PauseError::Store(error) => DeleteError::Store(error),
        // `lock_job` returns neither.
        PauseError::Paused(_) | PauseError::Active(_) => DeleteError::Locked(name.to_owned()),
    })?;
    if request.revision.is_some_and(|seen| seen != job.revision) {
        let (name, revision) = (name.to_owned(), job.revision);
        return Err(DeleteError::Changed { name, revision });
    }
    wait_for_callers(&mut tx, job.id, name).await?;
    let flows = flows_with(&mut tx, job.id, name).await?;
    if !flows.is_empty() {
        return Err(DeleteError::InFlow { name: name.to_owned(), flows });
    }
    let under_way = count_under_way(&mut tx, job.id).await?;
    if under_way.waiting + under_way.running > 0 && !request.cancel {
        return Err(DeleteError::UnderWay { name: name.to_owned(), under_way });
    }
    // A job whose schedule cannot be read may be deleted all the same.
    let (reason, actor, why) = match &job.paused_at {
        Some(_) => (GapReason::Paused, job.paused_by.clone(), job.paused_why.clone()),
        None => (GapReason::Deleted, Some(by.actor.to_owned()), by.reason.map(str::to_owned)),
    };
    let left = left_behind(&job, job.cursor().ok().flatten(), reason, at);
    let passed = left.iter().find(|gap| gap.reason == reason).map_or(0, |gap| gap.count);
    let deleted = Deleted { id: job.id, under_way, passed };
    if request.dry_run {
        // The wait for the rollback lets the next caller find the job unlocked.
        with_client_timeout(tx.rollback()).await.map_err(StoreError::from)?;
        return Ok(deleted);
    }
    cancel_under_way(&mut tx, job.id, by, at).await.map_err(|error| {
        if is_lock_timeout(&error) {
            DeleteError::Locked(name.to_owned())
        } else {
            DeleteError::Store(error.into())
        }
    })?;
    let cause = GapCause { actor, why, into_key: None };
    gaps::record_held(&mut tx, &[JobId::new(job.id)], reason, &cause, at).await?;
    let rows: Vec<GapRow> = left
        .iter()
        .map(|gap| match gap.reason {
            GapReason::Excluded => GapRow::of(JobId::new(job.id), gap),
            _ => GapRow::of(JobId::new(job.id), gap).with_cause(cause.clone()),
        })
        .collect();
    gaps::record_gaps(&mut tx, &rows, Some(at)).await?;
    mark_deleted(&mut tx, job.id, by, at).await?;
    let action = NewAction {
        action: "delete",
        job_id: job.id,
        execution_id: None,
        reason: by.reason.map(str::to_owned),
        before: Some(json!({"name": name, "status": job.status, "revision": job.revision})),
        after: Some(json!({"deleted_at": at})),
    };
    record_actions(&mut tx, by.actor, &[action], at).await?;
    notify(&mut tx, Notification::Jobs).await?;
    notify(&mut tx, Notification::Cancel).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(deleted)
}

/// Waits for the transactions that have enqueued executions of the job, which hold a lock on it until they end. Without this
/// their executions would be counted by nobody, and cancelled by nobody.
async fn wait_for_callers(
    connection: &mut PgConnection,
    job: Uuid,
    name: &str,
) -> Result<(), DeleteError> {
    let locking = sqlx::query!(
        "-- lock_job_to_delete
        SELECT FROM sexton.jobs WHERE id = $1 FOR UPDATE",
        job
    );
    match locking.execute(WithTimeout(connection)).await {
        Ok(_) => Ok(()),
        Err(error) if is_lock_timeout(&error) => Err(DeleteError::Locked(name.to_owned())),
        Err(error) => Err(DeleteError::Store(error.into())),
    }
}

/// Returns the names of other jobs whose flows have members that are executions of this one.
async fn flows_with(
    connection: &mut PgConnection,
    job: Uuid,
    name: &str,
) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- flows_with_job
        SELECT name AS "name!" FROM sexton.jobs
        WHERE flow @> jsonb_build_array(jsonb_build_object('job', $2::text)) AND deleted_at IS NULL AND id <> $1
        UNION
        -- Flows that have begun, and whose members schedulers have yet to make.
        SELECT name FROM sexton.flows
        WHERE to_make IS NOT NULL AND to_make @> jsonb_build_array(jsonb_build_object('job', $2::text))
        ORDER BY 1 LIMIT 5"#,
        job,
        name
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

async fn count_under_way(connection: &mut PgConnection, job: Uuid) -> Result<UnderWay, StoreError> {
    Ok(sqlx::query_as!(
        UnderWay,
        r#"-- executions_under_way
        SELECT count(*) FILTER (WHERE state IN ('pending', 'retrying')) AS "waiting!",
               count(*) FILTER (WHERE state = 'running') AS "running!",
               count(*) FILTER (WHERE state = 'failed') AS "failed!"
        FROM sexton.executions WHERE job_id = $1 AND state IN ('pending', 'running', 'retrying', 'failed')"#,
        job
    )
    .fetch_one(WithTimeout(connection))
    .await?)
}

/// Ends the executions under way, each with its own line in the audit. Rows are locked in the order of their ids; a
/// settlement or an open that holds one waits for no lock of this transaction.
async fn cancel_under_way(
    connection: &mut PgConnection,
    job: Uuid,
    by: AuditContext<'_>,
    at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "-- cancel_all_of_job
        WITH l AS MATERIALIZED (
            SELECT id, state, attempt FROM sexton.executions
            WHERE job_id = $1 AND state IN ('pending', 'running', 'retrying')
            ORDER BY id FOR NO KEY UPDATE),
        w AS (
            UPDATE sexton.executions e SET state = 'cancelled', rev = e.rev + 1, next_attempt_at = NULL,
                finished_at = $2, outcome = 'cancelled'
            FROM l WHERE e.id = l.id AND l.state IN ('pending', 'retrying')),
        r AS (
            UPDATE sexton.executions e SET cancel_requested = true
            FROM l WHERE e.id = l.id AND l.state = 'running')
        INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, before, after)
        SELECT $2, $3, 'cancel', $1, l.id, $4,
               jsonb_build_object('state', l.state, 'attempt', l.attempt),
               CASE l.state WHEN 'running'
                   THEN jsonb_build_object('state', 'running', 'cancel_requested', true)
                   ELSE jsonb_build_object('state', 'cancelled') END
        FROM l",
        job,
        at,
        by.actor,
        by.reason
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

async fn mark_deleted(
    connection: &mut PgConnection,
    job: Uuid,
    by: AuditContext<'_>,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- delete_job
        UPDATE sexton.jobs SET status = 'paused', paused_by = coalesce(paused_by, $2),
            paused_why = coalesce(paused_why, $3), paused_at = coalesce(paused_at, $4),
            next_fire_at = NULL, next_nominal_at = NULL, planned_until = $4, deleted_at = $4, deleted_name = name,
            name = '~' || id, updated_at = $4
        WHERE id = $1",
        job,
        by.actor,
        by.reason,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
