//! Executions under way of the jobs that a claim has locked: read before the plan, and replaced after it.
//!
//! Separate statements after the jobs are locked: an earlier claim for one of them held its lock, and only a later
//! snapshot is sure to show its execution.
//!
//! A firing that replaces locks the rows of the executions under way before it is planned, so that until the commit
//! none of them is opened, renewed or settled. It does not wait for a lock: a statement task's end holds its row's
//! lock until its commit, and until then its outcome is open. Such a job is deferred, with its cursor, and is due
//! again at once. So every settlement before the claim's commit counts as it was recorded, and no replaced execution
//! can succeed after it.
//!
//! Executions whose overlap was overridden (a backfill's) are left out, and those that wait for their turn or their time,
//! of which there may be any number: the rows say which they are, and no clock decides.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::Overlap;
use sexton_model::plan::overlap::{REPLACED_REASON, UnderWay, WaitReason};
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{DueJob, DueJobs};
use crate::connection::client_timeout::WithTimeout;
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::operator::notify;
use crate::{Now, StoreError};

/// The executions that a claim replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replaced {
    /// Number of running executions. From the commit on they cannot succeed any more; the commit itself notifies
    /// their workers to end them.
    pub running: u64,
    /// Number of executions that had no open attempt, and are cancelled.
    pub cancelled: u64,
}

/// Fills in the executions under way, and defers the jobs with locked rows. Without `replaces` nothing is locked and
/// no job deferred: then no claim can replace anything.
pub(super) async fn fill_in_under_way(
    connection: &mut PgConnection,
    due: &mut DueJobs,
    replaces: bool,
) -> Result<(), StoreError> {
    let such = |jobs: &[DueJob], policy: fn(Overlap) -> bool| -> Vec<Uuid> {
        jobs.iter().filter(|job| policy(job.overlap)).map(|job| job.id.get()).collect()
    };
    // Each job's own is at most a few milliseconds earlier.
    let Some(now) = due.jobs.iter().map(|job| job.now).max() else { return Ok(()) };
    let skipping = such(&due.jobs, |policy| policy == Overlap::Skip);
    if !skipping.is_empty() {
        let mut busy = find_busy_jobs(connection, &skipping).await?;
        // They wait for the job since before it skipped.
        busy.extend(find_waiting_turns(connection, &skipping, now).await?);
        for job in &mut due.jobs {
            job.under_way.ready = busy.contains(&job.id.get());
        }
    }
    let one_at_a_time = such(&due.jobs, Overlap::one_at_a_time);
    if one_at_a_time.is_empty() {
        return Ok(());
    }
    let mut replacing = such(&due.jobs, |policy| policy == Overlap::Replace);
    replacing.retain(|_| replaces);
    let locked = lock_under_way(connection, &replacing).await?;
    let mut found: HashMap<Uuid, UnderWay> = HashMap::new();
    let mut deferred: HashSet<Uuid> = HashSet::new();
    for row in read_under_way(connection, &one_at_a_time).await? {
        if replacing.contains(&row.job_id) && !locked.contains(&row.id) {
            deferred.insert(row.job_id);
        }
        let under_way = found.entry(row.job_id).or_default();
        match row.waits {
            // Read apart, since there may be any number of them.
            Some(WaitReason::Turn) => {}
            Some(WaitReason::Queue | WaitReason::Replace) => under_way.firing_waits = true,
            None if row.state == State::Running => under_way.running = true,
            None => under_way.ready = true,
        }
    }
    for job in find_waiting_turns(connection, &one_at_a_time, now).await? {
        found.entry(job).or_default().trigger_waits = true;
    }
    for job in &mut due.jobs {
        if let Some(under_way) = found.get(&job.id.get()) {
            job.under_way = *under_way;
        }
    }
    due.deferred = deferred.iter().map(|job| JobId::new(*job)).collect();
    due.jobs.retain(|job| !deferred.contains(&job.id.get()));
    Ok(())
}

/// Returns which of the jobs have executions under way.
async fn find_busy_jobs(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<HashSet<Uuid>, StoreError> {
    let busy = sqlx::query_scalar!(
        r#"-- busy_jobs
        SELECT j.id AS "id!" FROM unnest($1::uuid[]) AS j (id)
        WHERE EXISTS (SELECT 1 FROM sexton.executions e WHERE e.job_id = j.id
                      AND e.state IN ('pending', 'running', 'retrying')
                      AND (CASE WHEN e.state = 'pending' AND e.waits = 'turn' AND e.admitted_at IS NULL
                                THEN 1 ELSE 0 END) = 0
                      AND e.overlap_override IS NULL)"#,
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(busy.into_iter().collect())
}

/// Returns which of the jobs have executions that were triggered, requeued or enqueued, are due, and wait for their turn.
/// That one is taken for not due yet does not matter: it is admitted only when nothing is under way.
async fn find_waiting_turns(
    connection: &mut PgConnection,
    jobs: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- waiting_turns
        SELECT j.id AS "id!" FROM unnest($1::uuid[]) AS j (id)
        WHERE EXISTS (SELECT FROM sexton.executions e WHERE e.job_id = j.id
                      AND e.ticket_published_at IS NULL AND e.state = 'pending' AND e.waits IS NOT NULL
                      AND e.admitted_at IS NULL AND e.relay_after >= '9999-01-01 00:00:00+00'
                      AND e.waits = 'turn' AND e.next_attempt_at <= $2)"#,
        jobs,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Locks the jobs' executions under way, skipping locked ones.
async fn lock_under_way(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<HashSet<Uuid>, StoreError> {
    if jobs.is_empty() {
        return Ok(HashSet::new());
    }
    let locked = sqlx::query_scalar!(
        "-- lock_under_way
        SELECT id FROM sexton.executions
        WHERE job_id = ANY ($1) AND state IN ('pending', 'running', 'retrying')
          AND (CASE WHEN state = 'pending' AND waits = 'turn' AND admitted_at IS NULL THEN 1 ELSE 0 END) = 0
          AND overlap_override IS NULL
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(locked.into_iter().collect())
}

/// The row of an execution that has not ended.
struct UnderWayRow {
    id: Uuid,
    job_id: Uuid,
    state: State,
    /// The reason, for a waiter.
    waits: Option<WaitReason>,
}

async fn read_under_way(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<Vec<UnderWayRow>, StoreError> {
    let rows = sqlx::query!(
        r#"-- read_under_way
        SELECT id, job_id, state,
               CASE WHEN state = 'pending' AND admitted_at IS NULL THEN waits END AS waits
        FROM sexton.executions
        WHERE job_id = ANY ($1) AND state IN ('pending', 'running', 'retrying')
          AND (CASE WHEN state = 'pending' AND waits = 'turn' AND admitted_at IS NULL THEN 1 ELSE 0 END) = 0
          AND overlap_override IS NULL"#,
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(UnderWayRow {
                id: row.id,
                job_id: row.job_id,
                state: parse_column("executions.state", &row.state, State::parse)?,
                waits: row
                    .waits
                    .map(|waits| parse_column("executions.waits", &waits, WaitReason::parse))
                    .transpose()?,
            })
        })
        .collect()
}

/// Replaces the executions under way by the new ones. Their rows were locked by [`fill_in_under_way`]; no other
/// transaction sees the new ones yet. Triggered executions and waiters stay.
pub(super) async fn replace(
    connection: &mut PgConnection,
    by: &[(JobId, ExecutionId)],
    now: Now,
) -> Result<Replaced, StoreError> {
    if by.is_empty() {
        return Ok(Replaced::default());
    }
    let jobs: Vec<Uuid> = by.iter().map(|(job, _)| job.get()).collect();
    let new: Vec<Uuid> = by.iter().map(|(_, execution)| execution.get()).collect();
    let at: Option<DateTime<Utc>> = now;
    // A row that is replaced twice keeps its first successor, from which the chain continues. A running row is not
    // written again, because the rescuer takes each write for a renewal, and a job that fires more often than its
    // lease lasts would keep a dead worker's attempt open for ever.
    let row = sqlx::query!(
        r#"-- replace_under_way
        WITH u AS (
            UPDATE sexton.executions e SET
                state = CASE WHEN e.state = 'running' THEN e.state ELSE 'cancelled' END,
                rev = e.rev + CASE WHEN e.state = 'running' THEN 0 ELSE 1 END,
                cancel_requested = e.cancel_requested OR e.state = 'running',
                replaced_by = coalesce(e.replaced_by, r.by),
                next_attempt_at = NULL,
                finished_at = CASE WHEN e.state <> 'running' THEN coalesce($3, now()) END,
                outcome = CASE WHEN e.state = 'running' THEN e.outcome ELSE $4 END
            FROM unnest($1::uuid[], $2::uuid[]) AS r (job_id, by)
            WHERE e.job_id = r.job_id AND e.id <> r.by
              AND e.state IN ('pending', 'running', 'retrying') AND e.overlap_override IS NULL
              AND (CASE WHEN e.state = 'pending' AND e.waits = 'turn' AND e.admitted_at IS NULL
                        THEN 1 ELSE 0 END) = 0
              AND NOT (e.state = 'running' AND e.cancel_requested AND e.replaced_by IS NOT NULL)
            RETURNING e.state)
        SELECT count(*) FILTER (WHERE state = 'running') AS "running!",
               count(*) FILTER (WHERE state <> 'running') AS "cancelled!"
        FROM u"#,
        &jobs,
        &new,
        at,
        REPLACED_REASON
    )
    .fetch_one(WithTimeout(&mut *connection))
    .await?;
    if row.running > 0 {
        notify(connection, Notification::Cancel).await?;
    }
    Ok(Replaced { running: row.running as u64, cancelled: row.cancelled as u64 })
}
