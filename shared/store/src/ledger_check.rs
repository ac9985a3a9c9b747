//! The progress of the ledger check, and the firings that it found without a record.
//!
//! What is taken for a check moves behind everything else at once, so one job that cannot be checked holds up no other. Its
//! progress is recorded by the check's end: a crash in between repeats the check at its next turn, which changes nothing.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// How long a firing without a record is remembered, in days.
const UNACCOUNTED_DAYS: i32 = 30;
/// Maximum number of firings without a record that are remembered.
const MAX_UNACCOUNTED: i64 = 10_000;

/// A part of a job's ledger to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UncheckedRange {
    /// The job's id.
    pub job: Uuid,
    /// The job's name.
    pub name: String,
    /// Start of the range, included.
    pub from: DateTime<Utc>,
    /// End of the range, included.
    pub to: DateTime<Utc>,
}

/// Takes the jobs with schedules that were not checked for longest, at most `limit`, each with its firings that a
/// planner has passed by more than a minute ago. Jobs that were taken within the last `min_age_s` seconds are left out.
pub async fn take_unchecked(
    store: &Store,
    limit: i64,
    min_age_s: i32,
    now: Now,
) -> Result<Vec<UncheckedRange>, StoreError> {
    Ok(sqlx::query_as!(
        UncheckedRange,
        r#"-- take_unchecked_ledgers
        WITH t AS (SELECT coalesce($3, now()) AS now),
        taken AS (
            UPDATE sexton.ledger_checks c SET checked_at = t.now FROM t
            WHERE c.job_id = ANY (ARRAY(
                SELECT n.job_id FROM sexton.ledger_checks n, t WHERE n.checked_at < t.now - $2 * interval '1 second'
                ORDER BY n.checked_at LIMIT $1 FOR UPDATE OF n SKIP LOCKED))
            RETURNING c.job_id, c.checked_until, t.now)
        SELECT j.id AS "job!", j.name AS "name!", c.checked_until + interval '1 microsecond' AS "from!",
               least(c.now - interval '1 minute',
                     coalesce(j.next_nominal_at, j.next_fire_at) - interval '1 microsecond') AS "to!"
        FROM taken c JOIN sexton.jobs j ON j.id = c.job_id"#,
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
            ORDER BY f.at LIMIT greatest(0, $5 - (SELECT count(*) FROM sexton.unaccounted_firings))
            ON CONFLICT DO NOTHING)
        UPDATE sexton.ledger_checks SET checked_until = greatest(checked_until, $2) WHERE job_id = $1"#,
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

/// Takes the firings without a record that were not looked for for longest, at most `limit`; forgets those that were
/// found 30 days ago.
pub async fn take_unaccounted(
    store: &Store,
    limit: i64,
    now: Now,
) -> Result<Vec<(Uuid, DateTime<Utc>)>, StoreError> {
    sqlx::query!(
        "-- forget_old_unaccounted
        DELETE FROM sexton.unaccounted_firings WHERE found_at < coalesce($1, now()) - $2 * interval '1 day'",
        now,
        f64::from(UNACCOUNTED_DAYS)
    )
    .execute(store.with_timeout())
    .await?;
    let rows = sqlx::query!(
        "-- take_unaccounted
        UPDATE sexton.unaccounted_firings u SET checked_at = coalesce($2, now())
        FROM (SELECT job_id, nominal_at FROM sexton.unaccounted_firings
              ORDER BY checked_at LIMIT $1 FOR UPDATE SKIP LOCKED) n
        WHERE u.job_id = n.job_id AND u.nominal_at = n.nominal_at
        RETURNING u.job_id, u.nominal_at",
        limit,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(|row| (row.job_id, row.nominal_at)).collect())
}

/// Removes a firing that has a record now.
pub async fn forget_unaccounted(
    store: &Store,
    job: Uuid,
    nominal_at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- forget_unaccounted
        DELETE FROM sexton.unaccounted_firings WHERE job_id = $1 AND nominal_at = $2",
        job,
        nominal_at
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}
