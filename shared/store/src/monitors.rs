//! Monitors of jobs: what they remember, when they are due, and what is recorded about their jobs.
//!
//! A check is one transaction. It locks the due monitors, passing by those that another scheduler checks, reads what is
//! recorded about their jobs, and writes what was found together with the incidents. A crash before the commit leaves the
//! monitors due. Wake-ups are removed in a transaction of their own that makes the monitors due. Neither
//! waits for the other, so a scheduler that freezes in a check holds up no other.

mod last_attempt;
mod list;
pub mod platform;
mod read;

use std::collections::{HashMap, HashSet};

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::incident::SubjectKind;
use sexton_model::monitor::{Counted, MonitorMemory, MonitoredExecution, MonitoredGap};
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::incidents::{self, Occurrence};
use crate::{Now, Store, StoreError};
pub use last_attempt::LastAttempt;
pub use list::{MonitorFilter, MonitorStatus, list};
pub use read::JobRow;

/// A monitor that is due, and locked.
#[derive(Clone, PartialEq, Debug)]
pub struct DueMonitor {
    /// Its job.
    pub job: Uuid,
    /// What it remembers; [`MonitorMemory::is_open`] comes from [`MonitorCheck::read_jobs`].
    pub memory: MonitorMemory,
    /// When it was last checked.
    pub checked_at: DateTime<Utc>,
    /// The transaction's instant.
    pub now: DateTime<Utc>,
}

/// Takes the oldest wake-ups, at most `limit`, and makes their monitors due at once. Returns how many it took. Those of a monitor that
/// somebody checks at this moment, and that may not have seen what woke it, stay until the check is over.
pub async fn take_wakeups(store: &Store, limit: i64, now: Now) -> Result<u64, StoreError> {
    let taken = sqlx::query_scalar!(
        r#"-- take_monitor_wakeups
        WITH oldest AS MATERIALIZED (
            SELECT id, job_id FROM sexton.monitor_wakeups ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
        woken AS MATERIALIZED (
            SELECT m.job_id FROM sexton.job_monitors m WHERE m.job_id IN (SELECT job_id FROM oldest)
            ORDER BY m.job_id FOR UPDATE SKIP LOCKED),
        updated AS (
            UPDATE sexton.job_monitors m SET next_check_at = least(m.next_check_at, coalesce($2, now()))
            FROM woken w WHERE m.job_id = w.job_id),
        taken AS (
            DELETE FROM sexton.monitor_wakeups u USING oldest o
            WHERE u.id = o.id AND (o.job_id IN (SELECT job_id FROM woken)
                                   OR NOT EXISTS (SELECT FROM sexton.job_monitors m WHERE m.job_id = o.job_id))
            RETURNING 1)
        SELECT count(*) AS "count!" FROM taken"#,
        limit,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(taken as u64)
}

/// A check of monitors: one transaction, with the due monitors locked.
#[derive(Debug)]
pub struct MonitorCheck {
    tx: Transaction<'static, Postgres>,
    /// The monitors that are checked, the longest due first.
    pub due: Vec<DueMonitor>,
}

impl MonitorCheck {
    /// Locks the monitors that are due, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn begin(store: &Store, limit: i64, now: Now) -> Result<Self, StoreError> {
        let mut tx = store.begin().await?;
        let due = lock_due(&mut tx, limit, now).await?;
        Ok(Self { tx, due })
    }

    /// Reads the jobs of the due monitors.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read_jobs(&mut self) -> Result<Vec<JobRow>, StoreError> {
        let jobs: Vec<Uuid> = self.due.iter().map(|monitor| monitor.job).collect();
        read::read_jobs(&mut self.tx, &jobs).await
    }

    /// Reads the executions that matter, by job; `has_limits` says which jobs limit a time, and need all that are under way. `None`
    /// for a job with an execution that this version cannot read.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read_executions(
        &mut self,
        has_limits: &HashSet<Uuid>,
    ) -> Result<HashMap<Uuid, Option<Vec<MonitoredExecution>>>, StoreError> {
        let limited: Vec<bool> =
            self.due.iter().map(|monitor| has_limits.contains(&monitor.job)).collect();
        read::read_executions(&mut self.tx, &self.due, &limited).await
    }

    /// Reads the gaps that the due monitors have not seen, by job, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read_gaps(&mut self) -> Result<HashMap<Uuid, Vec<MonitoredGap>>, StoreError> {
        read::read_gaps(&mut self.tx, &self.due).await
    }

    /// Reads the last attempts of executions.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn read_last_attempts(
        &mut self,
        executions: &[Uuid],
    ) -> Result<HashMap<Uuid, LastAttempt>, StoreError> {
        last_attempt::read(&mut self.tx, executions).await
    }

    /// Writes what was found, and commits. `checked`: what each monitor remembers, and when it is due again; `None`: after
    /// an event. A monitor that is left out stays due.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; whether it was committed may be unknown, and the check is repeated then.
    pub async fn finish(
        mut self,
        checked: &[(Uuid, MonitorMemory, Option<DateTime<Utc>>)],
        occurrences: &[Occurrence],
        recovered: &[(SubjectKind, String, String)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        write_checked(&mut self.tx, checked, now).await?;
        incidents::report(&mut self.tx, occurrences, now).await?;
        incidents::recover(&mut self.tx, recovered, now).await?;
        commit(self.tx).await?;
        Ok(())
    }
}

/// Locks the monitors that are due, the longest due first, at most `limit`.
async fn lock_due(
    connection: &mut PgConnection,
    limit: i64,
    now: Now,
) -> Result<Vec<DueMonitor>, StoreError> {
    let rows = sqlx::query!(
        r#"-- lock_due_monitors
        SELECT job_id, violations, violated_at, counted, gaps_seen, checked_at,
               coalesce($2, now()) AS "now!"
        FROM sexton.job_monitors WHERE next_check_at <= coalesce($2, now())
        ORDER BY next_check_at LIMIT $1 FOR UPDATE SKIP LOCKED"#,
        limit,
        now
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let due = rows.into_iter().map(|row| {
        // What somebody else has written there counts as nothing: better counted twice than never checked again.
        let counted: Counted = serde_json::from_value(row.counted).unwrap_or_default();
        DueMonitor {
            job: row.job_id,
            memory: MonitorMemory {
                violations: row.violations as u32,
                violated_at: row.violated_at,
                counted,
                gaps_seen: row.gaps_seen,
                is_open: false,
            },
            checked_at: row.checked_at,
            now: row.now,
        }
    });
    Ok(due.collect())
}

/// Returns the time until the next monitor is due, zero if it is; `None`: none before an event.
pub async fn next_due(store: &Store, now: Now) -> Result<Option<Duration>, StoreError> {
    let seconds = sqlx::query_scalar!(
        r#"-- next_due_monitor
        SELECT extract(epoch FROM min(next_check_at) - coalesce($1, now()))::float8 FROM sexton.job_monitors
        WHERE next_check_at < 'infinity'"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    // More than a year is cut, so that the conversion cannot fail.
    Ok(seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 31_536_000.0))))
}

/// Writes what locked monitors remember, and when each is due again; `None`: after an event.
async fn write_checked(
    connection: &mut PgConnection,
    checked: &[(Uuid, MonitorMemory, Option<DateTime<Utc>>)],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let jobs: Vec<Uuid> = checked.iter().map(|(job, ..)| *job).collect();
    let next: Vec<Option<DateTime<Utc>>> = checked.iter().map(|(_, _, next)| *next).collect();
    let violations: Vec<i32> = checked
        .iter()
        .map(|(_, memory, _)| i32::try_from(memory.violations).unwrap_or(i32::MAX))
        .collect();
    let violated: Vec<Option<DateTime<Utc>>> =
        checked.iter().map(|(_, memory, _)| memory.violated_at).collect();
    let counted: Vec<Value> = checked.iter().map(|(_, memory, _)| json!(memory.counted)).collect();
    let gaps: Vec<i64> = checked.iter().map(|(_, memory, _)| memory.gaps_seen).collect();
    sqlx::query!(
        "-- write_checked_monitors
        UPDATE sexton.job_monitors m SET checked_at = $7, next_check_at = coalesce(c.next_check_at, 'infinity'),
            violations = c.violations, violated_at = c.violated_at, counted = c.counted, gaps_seen = c.gaps_seen
        FROM unnest($1::uuid[], $2::timestamptz[], $3::int[], $4::timestamptz[], $5::jsonb[], $6::bigint[])
            AS c (job_id, next_check_at, violations, violated_at, counted, gaps_seen)
        WHERE m.job_id = c.job_id",
        &jobs,
        &next as &[Option<DateTime<Utc>>],
        &violations,
        &violated as &[Option<DateTime<Utc>>],
        &counted,
        &gaps,
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
