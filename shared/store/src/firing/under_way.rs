//! What is under way of the jobs that a claim has locked: looked at before the plan, and replaced
//! after it.
//!
//! Looked at after the jobs are locked, in statements of their own: whoever claimed for one of them
//! before held its lock, and only a later snapshot is sure to show that execution.
//!
//! A firing that replaces locks the rows of what it replaces before it is planned, so that between the
//! look and the commit none of them is opened, renewed or settled. It does not wait for a lock: the
//! end of a statement task holds its row's until its commit, and as long as that one might go on,
//! nothing could be promised of it. Its job is put off, with its cursor, and is due again at once. So
//! whatever was settled before the claim's commit counts as it was recorded, and nothing that is
//! replaced can succeed after it.
//!
//! Executions whose overlap was overridden (a backfill's) are none of all this.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::Overlap;
use sexton_model::overlap::{REPLACED_REASON, UnderWay, WaitReason};
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{DueJob, DueJobs};
use crate::client_timeout::WithTimeout;
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::operator::notify;
use crate::{Now, StoreError};

/// What a claim replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replaced {
    /// Executions that run. From the commit on they cannot succeed any more; their workers were told to
    /// end them, by the commit itself.
    pub running: u64,
    /// Executions that had no open attempt, and are cancelled.
    pub cancelled: u64,
}

/// Fills in what is under way, and puts off the jobs whose rows somebody has locked. Without
/// `replaces` nothing is locked and no job put off: nothing can be replaced then.
pub(super) async fn fill_in_under_way(
    connection: &mut PgConnection,
    due: &mut DueJobs,
    replaces: bool,
) -> Result<(), StoreError> {
    let such = |jobs: &[DueJob], policy: fn(Overlap) -> bool| -> Vec<Uuid> {
        jobs.iter().filter(|job| policy(job.overlap)).map(|job| job.id.get()).collect()
    };
    let skipping = such(&due.jobs, |policy| policy == Overlap::Skip);
    if !skipping.is_empty() {
        let busy = find_busy_jobs(connection, &skipping).await?;
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
            Some(WaitReason::Turn) => under_way.trigger_waits = true,
            Some(WaitReason::Queue | WaitReason::Replace) => under_way.firing_waits = true,
            None if row.state == State::Running => under_way.running = true,
            None => under_way.ready = true,
        }
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

/// Which of the jobs have anything under way.
async fn find_busy_jobs(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<HashSet<Uuid>, StoreError> {
    let busy = sqlx::query_scalar!(
        r#"-- busy_jobs
        SELECT j.id AS "id!" FROM unnest($1::uuid[]) AS j (id)
        WHERE EXISTS (SELECT 1 FROM sexton.executions e WHERE e.job_id = j.id
                      AND e.state IN ('pending', 'running', 'retrying')
                      AND e.overlap_override IS NULL)"#,
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(busy.into_iter().collect())
}

/// Locks what is under way of the jobs, as far as nobody else has.
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
          AND overlap_override IS NULL
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(locked.into_iter().collect())
}

/// A row that has not ended.
struct UnderWayRow {
    id: Uuid,
    job_id: Uuid,
    state: State,
    /// Of a waiter.
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

/// Puts the new executions in the place of what is under way. The rows were locked by [`fill_in_under_way`]; the
/// one that is new is nobody else's yet. What people asked for and what still waits stays.
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
    // A row that is replaced twice keeps its first successor; from there the chain goes on. One that runs is not even
    // written again: the rescuer takes each write of a running row for a sign of life, and a job that fires more often
    // than its lease is long would keep a dead worker's attempt open for ever.
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
              AND NOT (e.state = 'pending' AND coalesce(e.waits, '') = 'turn'
                       AND e.admitted_at IS NULL)
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
