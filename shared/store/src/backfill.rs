//! Backfill: claims past firings that have no execution.
//!
//! The keys are the scheduler's, so a firing that has an execution, or gets one from a planner meanwhile, stays as it
//! is: the unique row is the guard, as with every claim. A firing that was in a gap runs now, and the gap stays on
//! record.
//!
//! **A batch is a transaction.** It locks the job, so that no other process claims for it, and shares the row in
//! which retention records up to where it has removed rows; an earlier firing is refused, because its key is
//! forgotten and it could run a second time. Then it computes the next firings from the schedules that the job had,
//! inserts those with a new key, and writes the audit. Rows become due one after the other at the given rate, with
//! unpublished tickets that the relay publishes at that instant. A crash between two batches keeps the finished ones;
//! a repeated call skips them as known and makes the remaining ones.
//!
//! **Overlap.** A policy other than `allow` would skip all but one of many firings at once. So the caller has to
//! override it, which each row records: such an execution neither waits for others of its job nor delays them.

mod approved;

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};
use sexton_model::explain::{NominalFiring, ScheduleHistory};
use sexton_model::id::ExecutionId;
use sexton_model::key;
use sexton_model::rate::Rate;
use sexton_model::zone::tz_data_version;
use sqlx::PgConnection;
use uuid::Uuid;

pub use approved::ApprovedBackfill;

use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::jobs::templates::{Unfilled, fill_on};
use crate::ledger;
use crate::notifications::Notification;
use crate::operator::{AuditContext, is_lock_timeout, notify, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// Maximum number of firings in one transaction.
pub const MAX_BATCH_FIRINGS: usize = 500;
/// Maximum number of executions that one backfill should make; the caller counts them first with a dry run.
pub const MAX_BACKFILL_EXECUTIONS: u64 = 20_000;

/// A backfill's job, range and options.
#[derive(Clone, Copy, Debug)]
pub struct Backfill<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The first instant.
    pub from: DateTime<Utc>,
    /// The last instant, included.
    pub to: DateTime<Utc>,
    /// How fast the executions become due; `None`: all at once.
    pub rate: Option<Rate>,
    /// Whether the executions overlap with each other and with others, against the job's policy.
    pub allow_overlap: bool,
    /// `<instance>:<pid>` of the caller.
    pub claimed_by: &'a str,
    /// The approval that each batch needs; `None`: none.
    pub approved: Option<ApprovedBackfill>,
    /// Only report what the batch would do.
    pub dry_run: bool,
}

/// Where the next batch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchStart {
    /// Its first firing.
    pub from: DateTime<Utc>,
    /// When the first execution of the whole backfill was due.
    pub start: DateTime<Utc>,
    /// Number of executions made so far.
    pub made: u64,
}

/// The result for one firing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackfilledFiring {
    /// The firing.
    pub scheduled_for: DateTime<Utc>,
    /// Its key.
    pub execution_key: String,
    /// Its execution; `None`: a real run would make one.
    pub execution: Option<Uuid>,
    /// When the new execution is due; `None`: it existed before and is unchanged.
    pub due_at: Option<DateTime<Utc>>,
}

/// The result of a batch, or of its dry run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Oldest first.
    pub firings: Vec<BackfilledFiring>,
    /// Where the next batch begins; `None`: this was the last one.
    pub next: Option<BatchStart>,
}

/// Why a batch was refused.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// No job has this name.
    #[error("there is no job {0:?}")]
    Missing(String),
    /// The range ends before it begins.
    #[error("the range ends before it begins")]
    Backwards,
    /// The range ends in the future, which belongs to the schedulers.
    #[error(
        "the range ends at {to}, after the present ({now}); what lies ahead is claimed by the schedulers"
    )]
    Ahead {
        /// Its end.
        to: DateTime<Utc>,
        /// The present.
        now: DateTime<Utc>,
    },
    /// The range begins where retention may have removed executions.
    #[error(
        "executions from before {0} may have been removed by retention, and a firing whose execution \
         was removed would run a second time; begin there or later"
    )]
    Pruned(DateTime<Utc>),
    /// The range begins before the oldest schedule that is known.
    #[error("the job's schedule before {0} is not known any more; begin after that")]
    Forgotten(DateTime<Utc>),
    /// The job's policy is not `allow`, and the caller has not overridden it.
    #[error(
        "the job's overlap policy is {0}, by which all but one of many firings at once would not run"
    )]
    Overlap(String),
    /// Another transaction kept the job locked for 5 s. Try again.
    #[error("job {0:?} is locked by somebody else; try again")]
    Locked(String),
    /// The job is not as it was when the backfill was approved.
    #[error("job {0:?} was changed since this was requested; request it again")]
    Changed(String),
    /// The request was rejected, needs further people or has expired, or another process carries it out.
    #[error(
        "request {0} was rejected or needs more people by now, or another process carries it out"
    )]
    NotClaimed(i64),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct JobColumns {
    id: Uuid,
    revision: i32,
    overlap: String,
    idempotency_template: Option<String>,
    templated: bool,
    pruned_before: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

/// Makes the next batch of a backfill, the first one if `place` is `None`. `fresh_id` yields the id of each new
/// execution.
///
/// # Errors
///
/// [`BackfillError`]; the batch has then written nothing.
pub async fn create_batch(
    store: &Store,
    request: Backfill<'_>,
    place: Option<BatchStart>,
    mut fresh_id: impl FnMut() -> ExecutionId,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Batch, BackfillError> {
    let mut tx = store.begin().await.map_err(StoreError::from)?;
    set_lock_timeout(&mut tx).await.map_err(StoreError::from)?;
    let job = match lock_job(&mut tx, request.job, now).await {
        Ok(job) => job.ok_or_else(|| BackfillError::Missing(request.job.to_owned()))?,
        Err(error) if is_lock_timeout(&error) => {
            return Err(BackfillError::Locked(request.job.to_owned()));
        }
        Err(error) => return Err(StoreError::from(error).into()),
    };
    let place = place.unwrap_or(BatchStart { from: request.from, start: job.now, made: 0 });
    check_request(&request, &job, place)?;
    if let Some(approved) = request.approved {
        approved.check(&mut tx, request.job, (job.id, job.revision), job.now).await?;
    }
    let history = read_history(&mut tx, job.id, place.from).await?;
    let mut stretch = history.firings(place.from, request.to, MAX_BATCH_FIRINGS);
    // The job's calendar excludes these days.
    stretch.firings.retain(|firing| !history.excludes(firing.at));
    let known = find_known_keys(&mut tx, job.id, &stretch.firings).await?;
    let mut made = place.made;
    let mut rows = Vec::new();
    let firings = stretch
        .firings
        .into_iter()
        .map(|firing| {
            if let Some(execution) = known.get(&firing.key) {
                return backfilled_firing(firing, Some(*execution), None);
            }
            let due = request.rate.map_or(Some(place.start), |rate| rate.due(place.start, made));
            let due = due.unwrap_or(place.start).max(job.now);
            made += 1;
            if request.dry_run {
                return backfilled_firing(firing, None, Some(due));
            }
            let id = fresh_id();
            rows.push((id.get(), firing.clone(), due));
            backfilled_firing(firing, Some(id.get()), Some(due))
        })
        .collect();
    if rows.is_empty() {
        // Nothing was written. The wait lets the next caller find the job unlocked.
        with_client_timeout(tx.rollback()).await.map_err(StoreError::from)?;
    } else {
        insert(&mut tx, &request, &job, &rows, by).await?;
        notify(&mut tx, Notification::TicketsUnpublished).await?;
        commit(tx).await.map_err(StoreError::from)?;
    }
    let next = stretch.next.map(|from| BatchStart { from, start: place.start, made });
    Ok(Batch { firings, next })
}

/// Locks the job and reads up to where retention may have removed its executions; both stay so until the commit. The
/// job is locked before that row, as retention locks that row before executions.
async fn lock_job(
    connection: &mut PgConnection,
    name: &str,
    now: Now,
) -> Result<Option<JobColumns>, sqlx::Error> {
    sqlx::query_scalar!(
        "-- lock_job_to_backfill
        SELECT id FROM sexton.jobs WHERE name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
        name
    )
    .fetch_optional(WithTimeout(&mut *connection))
    .await?;
    sqlx::query_scalar!("-- share_retention\nSELECT one FROM sexton.retention FOR SHARE")
        .fetch_optional(WithTimeout(&mut *connection))
        .await?;
    sqlx::query_as!(
        JobColumns,
        r#"-- job_to_backfill
        SELECT j.id, j.revision, j.overlap, j.idempotency_template, j.templated,
               (SELECT r.pruned_before FROM sexton.retention r) AS pruned_before,
               coalesce($2, now()) AS "now!"
        FROM sexton.jobs j WHERE j.name = $1 AND j.deleted_at IS NULL"#,
        name,
        now
    )
    .fetch_optional(WithTimeout(connection))
    .await
}

fn check_request(
    request: &Backfill<'_>,
    job: &JobColumns,
    place: BatchStart,
) -> Result<(), BackfillError> {
    if request.to < request.from {
        return Err(BackfillError::Backwards);
    }
    if request.to > job.now {
        return Err(BackfillError::Ahead { to: request.to, now: job.now });
    }
    if let Some(before) = job.pruned_before.filter(|before| place.from < *before) {
        return Err(BackfillError::Pruned(before));
    }
    if job.overlap != "allow" && !request.allow_overlap {
        return Err(BackfillError::Overlap(job.overlap.clone()));
    }
    Ok(())
}

/// Reads the job's schedules. Its first schedule also covers the time before the job existed, when nothing can have
/// run.
async fn read_history(
    connection: &mut PgConnection,
    job: Uuid,
    from: DateTime<Utc>,
) -> Result<ScheduleHistory, BackfillError> {
    let mut revisions = ledger::read_revisions(connection, job).await?;
    revisions.sort_by_key(|revision| revision.number);
    if let Some(oldest) = revisions.first_mut()
        && from <= oldest.from
    {
        if oldest.number != 1 {
            return Err(BackfillError::Forgotten(oldest.from));
        }
        oldest.from = from - TimeDelta::microseconds(1);
    }
    Ok(ScheduleHistory::new(revisions, None))
}

async fn find_known_keys(
    connection: &mut PgConnection,
    job: Uuid,
    firings: &[NominalFiring],
) -> Result<HashMap<String, Uuid>, StoreError> {
    let keys: Vec<String> = firings.iter().map(|firing| firing.key.clone()).collect();
    let rows = sqlx::query!(
        "-- known_keys
        SELECT execution_key, id FROM sexton.executions WHERE job_id = $1 AND execution_key = ANY ($2)",
        job,
        &keys
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().map(|row| (row.execution_key, row.id)).collect())
}

fn backfilled_firing(
    firing: NominalFiring,
    execution: Option<Uuid>,
    due_at: Option<DateTime<Utc>>,
) -> BackfilledFiring {
    BackfilledFiring { scheduled_for: firing.at, execution_key: firing.key, execution, due_at }
}

/// Writes the audit and the rows. The caller has checked under the job's lock, which every claim takes, that these
/// keys are free; a row that exists all the same stays as it is.
async fn insert(
    connection: &mut PgConnection,
    request: &Backfill<'_>,
    job: &JobColumns,
    rows: &[(Uuid, NominalFiring, DateTime<Utc>)],
    by: AuditContext<'_>,
) -> Result<(), StoreError> {
    let overlap = request.allow_overlap.then_some("allow");
    let after = json!({
        "first": rows.first().map(|row| row.1.at),
        "last": rows.last().map(|row| row.1.at),
        "count": rows.len(),
        "rate": request.rate.map(|rate| rate.to_string()),
        "overlap": overlap,
    });
    let action_id = sqlx::query_scalar!(
        "-- record_backfill
        INSERT INTO sexton.operator_actions (at, actor, action, job_id, reason, after)
        VALUES ($1, $2, 'backfill', $3, $4, $5) RETURNING id",
        job.now,
        by.actor,
        job.id,
        by.reason,
        after
    )
    .fetch_one(WithTimeout(&mut *connection))
    .await?;
    let template = job.idempotency_template.as_deref();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.0).collect();
    let keys: Vec<String> = rows.iter().map(|row| row.1.key.clone()).collect();
    let nominal: Vec<DateTime<Utc>> = rows.iter().map(|row| row.1.at).collect();
    let due: Vec<DateTime<Utc>> = rows.iter().map(|row| row.2).collect();
    let (params, idempotency): (Vec<Option<Value>>, Vec<String>) = if job.templated {
        let firings = rows.iter().map(|(_, firing, _)| Unfilled {
            execution_key: firing.key.clone(),
            scheduled_for: firing.at,
            given: Map::new(),
        });
        let filled = fill_on(connection, request.job, &firings.collect::<Vec<_>>()).await?;
        filled.into_iter().map(|one| (Some(one.params), one.idempotency_key)).unzip()
    } else {
        keys.iter().map(|key| (None, key::idempotency(template, request.job, key))).unzip()
    };
    sqlx::query!(
        "-- insert_backfilled
        INSERT INTO sexton.executions (id, job_id, execution_key, idempotency_key, scheduled_for, state,
                                next_attempt_at, relay_after, task_type, pool, target, params,
                                claimed_by, claimed_at, tz_version, backfill, overlap_override, flow_id)
        SELECT c.id, j.id, c.key, c.idempotency_key, c.nominal, 'pending', c.due, c.due, j.task_type,
               j.pool, j.target, coalesce(c.params, j.params), $7, $8, $9, $10, $11,
               CASE WHEN j.flow IS NOT NULL THEN c.id END
        FROM unnest($2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $12::jsonb[])
             AS c (id, key, idempotency_key, nominal, due, params)
        JOIN sexton.jobs j ON j.id = $1
        ON CONFLICT (job_id, execution_key) DO NOTHING",
        job.id,
        &ids,
        &keys,
        &idempotency,
        &nominal,
        &due,
        request.claimed_by,
        job.now,
        tz_data_version(),
        action_id,
        overlap,
        &params as &[Option<Value>]
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
