//! Waiters: executions whose tickets are held back until their job is free, and their admission.
//!
//! A waiter is `pending` with a reason in `waits` and no `admitted_at`. It owes its ticket like any row
//! that was just claimed, but nobody publishes it: relays pass waiters over, and `relay_after` is far
//! away, for relays of a version that knows of none. So no loop but this one touches a waiter: it has no
//! attempt that could be lost, no published ticket that the reconciler could miss, no end that retention
//! could count from. People may cancel it, at once, like all that waits.
//!
//! **Admission.** In one transaction: lock the job, which every claim does as well, and, unless another
//! execution of the job is under way that is no waiter, let the waiter go that has waited longest: from
//! now on it owes its ticket. So of a job whose executions run one at a time no two are let go together,
//! with any number of schedulers. A settlement does not lock the job; it can only make it free, and the
//! next look finds that. Nobody is told when it happens: who looks, looks often while anybody waits.
//!
//! Executions whose overlap was overridden (a backfill's) neither wait nor are waited for.
//!
//! A crash before the commit leaves the waiter, after it a row that owes its ticket, for any relay.

use chrono::{DateTime, Utc};
use sexton_model::id::JobId;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::client_timeout::{WithTimeout, commit};
use crate::tickets::{TicketRow, UnpublishedTicket};
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

/// `relay_after` of a waiter: 9999-01-01. Not `infinity`, which the version before cannot read when
/// it lists executions.
pub(crate) const NOT_BEFORE_ADMISSION: DateTime<Utc> =
    // Unwrap safety: the number is within the range, as the compiler checks.
    DateTime::from_timestamp(253_370_764_800, 0).unwrap();

/// Which jobs have waiters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitingJobs {
    /// How many jobs have any.
    pub jobs: u64,
    /// Of these, up to a limit, the ones that seem to be free.
    pub free: Vec<JobId>,
}

/// Looks, without a lock, which jobs have waiters. What waits owes its ticket, so the index of owed
/// tickets finds all of them.
pub async fn find_waiting(store: &Store, limit: i64) -> Result<WaitingJobs, StoreError> {
    let row =
        sqlx::query_file!("src/waiters/look.sql", limit).fetch_one(store.with_timeout()).await?;
    Ok(WaitingJobs { jobs: row.jobs as u64, free: row.free.into_iter().map(JobId::new).collect() })
}

/// An admission that is not committed. Dropped, it leaves the waiters as they were.
#[derive(Debug)]
pub struct Admission {
    tx: Transaction<'static, Postgres>,
    tickets: Vec<UnpublishedTicket>,
    admitted: usize,
}

/// Admits a waiter of each of `jobs` that is free; of a job whose policy is `allow` by now it is free
/// whatever else is under way. Jobs that somebody has locked are passed over: look again.
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
    // In a statement of its own: its snapshot shows what was claimed under the locks before.
    let rows = sqlx::query_as!(
        TicketRow,
        r#"-- admit_waiters
        WITH l AS MATERIALIZED (
            SELECT DISTINCT ON (w.job_id) w.id
            FROM sexton.executions w JOIN sexton.jobs j ON j.id = w.job_id
            WHERE w.job_id = ANY ($1) AND w.state = 'pending' AND w.waits IS NOT NULL
              AND w.admitted_at IS NULL AND w.ticket_published_at IS NULL
              AND (j.overlap = 'allow' OR NOT EXISTS (
                  SELECT FROM sexton.executions e
                  WHERE e.job_id = w.job_id AND e.state IN ('pending', 'running', 'retrying')
                    AND e.overlap_override IS NULL
                    AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL)))
            ORDER BY w.job_id, w.next_attempt_at, w.id)
        UPDATE sexton.executions e SET rev = e.rev + 1, ticket_published_at = NULL,
            admitted_at = coalesce($2, now()), next_attempt_at = coalesce($2, now()),
            relay_after = coalesce($2, now()) + $3 * interval '1 millisecond'
        FROM l, sexton.jobs j
        WHERE e.id = l.id AND j.id = e.job_id
          AND e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL
        RETURNING e.id, e.job_id, j.name AS job_name, e.attempt, e.rev, e.state, e.pool, e.task_type,
                  e.target, e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
                  e.next_attempt_at, e.finished_at, e.error_message, e.retries_used,
                  coalesce($2, now()) AS "now!""#,
        &locked,
        now,
        RELAY_DELAY_MS as f64
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let admitted = rows.len();
    // One that cannot be read is owed all the same, and named by the relay.
    let tickets = rows.into_iter().filter_map(|row| row.into_unpublished().ok()).collect();
    Ok(Admission { tx, tickets, admitted })
}

impl Admission {
    /// How many waiters it admits.
    pub fn admitted(&self) -> usize {
        self.admitted
    }

    /// Commits, and hands over the tickets to publish. On an error nothing is known: the waiters wait
    /// still, or owe their tickets, which the relay publishes.
    pub async fn commit(self) -> Result<Vec<UnpublishedTicket>, StoreError> {
        commit(self.tx).await?;
        Ok(self.tickets)
    }
}
