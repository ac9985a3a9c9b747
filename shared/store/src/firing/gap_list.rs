//! Gaps in lists, of one job or of all.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::gaps::Gap;
use crate::{Store, StoreError};

/// The most gaps that a page of all jobs looks at, for those with a reason: no index has the reasons.
pub const MAX_WALKED_GAPS: i64 = 20_000;

/// A gap with its job's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedGap {
    /// The job's name; that of a deleted job is the one that it had.
    pub job: String,
    /// Whether the job is deleted.
    pub is_deleted: bool,
    /// The gap.
    pub gap: Gap,
}

/// A page of gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GapPage {
    /// The gaps, the latest recorded first.
    pub gaps: Vec<ListedGap>,
    /// The number behind which the next page begins, if this one ended because it had looked at [`MAX_WALKED_GAPS`] gaps.
    pub walked_to: Option<i64>,
}

/// Lists gaps of all jobs, the latest recorded first, below the number `after`; at most `limit`. Only those with `reason`, if it
/// is given.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    reason: Option<&str>,
    after: Option<i64>,
    limit: i64,
) -> Result<GapPage, StoreError> {
    let after = after.unwrap_or(i64::MAX);
    let boundary = sqlx::query_scalar!(
        "-- last_walked_gap
        SELECT id FROM sexton.gaps WHERE id < $1 ORDER BY id DESC OFFSET $2 LIMIT 1",
        after,
        MAX_WALKED_GAPS - 1
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let rows = sqlx::query!(
        r#"-- list_gaps
        SELECT coalesce(j.deleted_name, j.name) AS "job!", j.deleted_at IS NOT NULL AS "is_deleted!", g.id, g.job_id,
               g.first_firing, g.last_firing, g.count, g.reason, g.recorded_at, g.actor, g.why, g.into_key
        FROM sexton.gaps g JOIN sexton.jobs j ON j.id = g.job_id
        WHERE g.id < $1 AND g.id >= $2 AND ($3::text IS NULL OR g.reason = $3 OR g.reason = $3 || ', at least')
        ORDER BY g.id DESC LIMIT $4"#,
        after,
        boundary.unwrap_or(i64::MIN),
        reason,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let is_full = rows.len() as i64 == limit;
    let gaps = rows.into_iter().map(|row| ListedGap {
        job: row.job,
        is_deleted: row.is_deleted,
        gap: Gap {
            id: row.id,
            job_id: row.job_id,
            first_firing: row.first_firing,
            last_firing: row.last_firing,
            count: row.count,
            reason: row.reason,
            recorded_at: row.recorded_at,
            actor: row.actor,
            why: row.why,
            into_key: row.into_key,
        },
    });
    Ok(GapPage { gaps: gaps.collect(), walked_to: boundary.filter(|_| !is_full) })
}

/// Lists gaps of a job, the latest firing first, behind the one with this first firing and number; at most `limit`. Only those with
/// `reason`, if it is given.
///
/// # Errors
///
/// Those of the database.
pub async fn list_of_job(
    store: &Store,
    job: Uuid,
    reason: Option<&str>,
    after: Option<(DateTime<Utc>, i64)>,
    limit: i64,
) -> Result<Vec<Gap>, StoreError> {
    Ok(sqlx::query_as!(
        Gap,
        "-- list_gaps_of_job
        SELECT id, job_id, first_firing, last_firing, count, reason, recorded_at, actor, why, into_key
        FROM sexton.gaps
        WHERE job_id = $1 AND ($2::text IS NULL OR reason = $2 OR reason = $2 || ', at least')
          AND ($3::timestamptz IS NULL OR (first_firing, id) < ($3, $4::bigint))
        ORDER BY first_firing DESC, id DESC LIMIT $5",
        job,
        reason,
        after.map(|after| after.0),
        after.map(|after| after.1),
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}
