//! The progress of the ledger check, and the firings that it found without a record.
//!
//! A crash between two statements repeats the check of some firings, which changes nothing.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// How long a firing without a record is remembered, in days.
const UNACCOUNTED_DAYS: i32 = 30;
/// Maximum number of firings without a record that are remembered.
pub const MAX_UNACCOUNTED: i64 = 10_000;

/// A part of a job's ledger to check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UncheckedRange {
    /// The job's id.
    pub job: Uuid,
    /// Start of the range, included.
    pub from: DateTime<Utc>,
    /// End of the range, included.
    pub to: DateTime<Utc>,
}

/// Lists the jobs with schedules that were not checked for longest, at most `limit`, each with its firings that a
/// planner has passed by more than a minute ago. Jobs that were checked within the last `min_age_s` seconds are left
/// out.
pub async fn list_unchecked(
    store: &Store,
    limit: i64,
    min_age_s: i32,
    now: Now,
) -> Result<Vec<UncheckedRange>, StoreError> {
    Ok(sqlx::query_as!(
        UncheckedRange,
        r#"-- unchecked_ledgers
        SELECT j.id AS "job!",
               c.checked_until + interval '1 microsecond' AS "from!",
               least(t.now - interval '1 minute',
                     coalesce(j.next_nominal_at, j.next_fire_at) - interval '1 microsecond') AS "to!"
        FROM (SELECT coalesce($3, now()) AS now) t, sexton.ledger_checks c JOIN sexton.jobs j ON j.id = c.job_id
        WHERE c.checked_at < t.now - $2 * interval '1 second'
        ORDER BY c.checked_at LIMIT $1"#,
        limit,
        f64::from(min_age_s),
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Records that a job's firings were checked up to `until`, and which of them have no record.
pub async fn record_check(
    store: &Store,
    job: Uuid,
    until: DateTime<Utc>,
    unaccounted: &[DateTime<Utc>],
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"-- record_ledger_check
        WITH found AS (
            INSERT INTO sexton.unaccounted_firings (job_id, nominal_at, found_at, checked_at)
            SELECT $1, f.at, coalesce($4, now()), coalesce($4, now()) FROM unnest($3::timestamptz[]) AS f (at)
            WHERE (SELECT count(*) FROM sexton.unaccounted_firings) < $5
            ON CONFLICT (job_id, nominal_at) DO UPDATE SET checked_at = EXCLUDED.checked_at)
        UPDATE sexton.ledger_checks
        SET checked_until = greatest(checked_until, $2), checked_at = coalesce($4, now()) WHERE job_id = $1"#,
        job,
        until,
        unaccounted,
        now,
        MAX_UNACCOUNTED
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Lists the firings without a record that were not looked for for longest, at most `limit`.
pub async fn list_unaccounted(
    store: &Store,
    limit: i64,
) -> Result<Vec<(Uuid, DateTime<Utc>)>, StoreError> {
    let rows = sqlx::query!(
        "-- list_unaccounted
        SELECT job_id, nominal_at FROM sexton.unaccounted_firings ORDER BY checked_at LIMIT $1",
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(|row| (row.job_id, row.nominal_at)).collect())
}

/// Removes a firing that has a record now, and all that were found long ago.
pub async fn forget_unaccounted(
    store: &Store,
    job: Uuid,
    nominal_at: DateTime<Utc>,
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- forget_unaccounted
        DELETE FROM sexton.unaccounted_firings
        WHERE (job_id = $1 AND nominal_at = $2) OR found_at < coalesce($3, now()) - $4 * interval '1 day'",
        job,
        nominal_at,
        now,
        f64::from(UNACCOUNTED_DAYS)
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}
