//! Waiters: executions whose tickets wait until their job is free, and their admission.
//!
//! A waiter is `pending` with a reason in `waits` and no `admitted_at`. Its ticket is unpublished like that of any
//! row just claimed, but stays so: relays skip waiters, and `relay_after` is in the far future, for relays of a
//! version that does not know them. So no other loop touches a waiter: it has no attempt that could be lost, no
//! published ticket that the reconciler could miss, no end that retention could count from. Operators may cancel it,
//! at once, like every waiting execution.
//!
//! **Admission.** One transaction locks the job, as every claim does, and admits the longest waiting execution unless
//! another execution of the job that is not a waiter is under way: from then on its ticket is due. So if a job's
//! executions run one at a time, no two are admitted together, with any number of schedulers. A settlement does not
//! lock the job; it can only make the job free, which the next poll finds. No notification is sent then: the loop
//! polls often while any execution waits.
//!
//! Executions whose overlap was overridden (a backfill's) neither wait nor delay others, and those that are enqueued for
//! later do neither before they are due.
//!
//! A crash before the commit leaves the waiter; after it, a row with a due ticket, for any relay.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::id::JobId;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::tickets::{TicketRow, UnpublishedTicket};
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

/// `relay_after` of a waiter: 9999-01-01. Not `infinity`, which the previous version cannot read when it lists
/// executions.
pub(crate) const NOT_BEFORE_ADMISSION: DateTime<Utc> =
    // Unwrap safety: the number is within the range, as the compiler checks.
    DateTime::from_timestamp(253_370_764_800, 0).unwrap();

/// Jobs with waiters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitingJobs {
    /// Number of jobs with waiters.
    pub jobs: u64,
    /// Those among them that seem to be free, up to a limit.
    pub free: Vec<JobId>,
    /// How long until the next execution that was enqueued for later becomes a waiter; `None`: there is none.
    pub next: Option<Duration>,
}

/// Finds, without locks, the jobs with waiters that are due.
pub async fn find_waiting(store: &Store, limit: i64, now: Now) -> Result<WaitingJobs, StoreError> {
    let row = sqlx::query_file!("src/tickets/waiters/look.sql", limit, now)
        .fetch_one(store.with_timeout())
        .await?;
    Ok(WaitingJobs {
        jobs: row.jobs as u64,
        free: row.free.into_iter().map(JobId::new).collect(),
        next: row.next_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    })
}

/// An uncommitted admission. A drop leaves the waiters as they were.
#[derive(Debug)]
pub struct Admission {
    tx: Transaction<'static, Postgres>,
    tickets: Vec<UnpublishedTicket>,
    admitted: usize,
}

/// Admits one waiter of each of `jobs` that is free; a job whose policy is now `allow` is always free. Skips jobs
/// that another transaction has locked: call again.
pub async fn admit(store: &Store, jobs: &[JobId], now: Now) -> Result<Admission, StoreError> {
    let jobs: Vec<Uuid> = jobs.iter().map(|job| job.get()).collect();
    let mut tx = store.begin().await?;
    let locked = sqlx::query_scalar!(
        "-- lock_jobs_to_admit
        SELECT id FROM sexton.jobs WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        &jobs
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    // A separate statement: its snapshot shows claims that were committed under the locks before.
    let rows = sqlx::query_as!(
        TicketRow,
        r#"-- admit_waiters
        WITH l AS MATERIALIZED (
            SELECT w.id FROM sexton.jobs j, LATERAL (
                SELECT e.id FROM sexton.executions e
                WHERE e.job_id = j.id AND e.ticket_published_at IS NULL AND e.state = 'pending'
                  AND e.waits IS NOT NULL AND e.admitted_at IS NULL
                  AND e.relay_after >= '9999-01-01 00:00:00+00'
                  AND e.next_attempt_at <= (SELECT coalesce($2, clock_timestamp())) + interval '5 milliseconds'
                ORDER BY e.job_id, e.next_attempt_at, e.id LIMIT 1
                -- A caller's transaction may hold one for as long as it likes.
                FOR NO KEY UPDATE OF e SKIP LOCKED) w
            WHERE j.id = ANY ($1) AND (j.overlap = 'allow' OR (
                SELECT 1 FROM sexton.executions e
                WHERE e.job_id = j.id AND e.state IN ('pending', 'running', 'retrying')
                  AND (CASE WHEN e.state = 'pending' AND e.waits = 'turn' AND e.admitted_at IS NULL
                            THEN 1 ELSE 0 END) = 0
                  AND e.overlap_override IS NULL
                  AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL) LIMIT 1)
                IS NULL))
        UPDATE sexton.executions e SET rev = e.rev + 1, ticket_published_at = NULL,
            admitted_at = coalesce($2, now()),
            -- A firing that was claimed before it is due is not due yet.
            next_attempt_at = greatest(coalesce($2, now()), e.next_attempt_at),
            relay_after = coalesce($2, now()) + $3 * interval '1 millisecond'
        FROM l, sexton.jobs j
        WHERE e.id = l.id AND j.id = e.job_id
          AND e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL
        RETURNING e.id, e.job_id, j.name AS job_name, e.attempt, e.rev, e.state, e.pool, e.task_type,
                  e.target, e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
                  e.next_attempt_at, e.finished_at, e.error_message, e.retries_used,
                  e.traceparent, e.tracestate, coalesce($2, now()) AS "now!""#,
        &locked,
        now,
        RELAY_DELAY_MS as f64
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let admitted = rows.len();
    // An unreadable row's ticket is due all the same, and the relay reports it.
    let tickets = rows.into_iter().filter_map(|row| row.into_unpublished().ok()).collect();
    Ok(Admission { tx, tickets, admitted })
}

impl Admission {
    /// Returns how many waiters it admits.
    pub fn admitted(&self) -> usize {
        self.admitted
    }

    /// Commits, and returns the tickets to publish. After an error the waiters either still wait or have due tickets,
    /// which the relay publishes.
    pub async fn commit(self) -> Result<Vec<UnpublishedTicket>, StoreError> {
        commit(self.tx).await?;
        Ok(self.tickets)
    }
}
