//! Removes pings beyond those that are kept, and deleted checks with theirs.
//!
//! Each statement removes a batch and commits, so that no statement grows with what has piled up, and none of them holds a check while it
//! removes pings: a flood of one delays no judgement. A crash leaves the rest to the next look.

use std::time::Duration;

use sexton_model::check::REMOVED_AFTER;
use uuid::Uuid;

use super::KEPT_PINGS;
use crate::{Now, Store, StoreError};

/// How often each check is looked at.
pub const TRIM_INTERVAL: Duration = Duration::from_hours(1);

/// What one look did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trimmed {
    /// Checks that were looked at.
    pub checks: u64,
    /// Pings that were removed.
    pub pings: u64,
    /// Deleted checks that were removed.
    pub removed: u64,
    /// Whether there may be more to do at once.
    pub more: bool,
}

/// Looks at the checks that are due, the longest due first and at most `max_checks`, and removes at most `max_pings` of their pings: all
/// of a deleted check, then the check itself, once it is judged, and of the others those beyond the newest [`KEPT_PINGS`] and as many
/// logs. If more is left, the checks are due again, behind those that have waited meanwhile. No check is locked while pings are removed.
///
/// # Errors
///
/// [`StoreError`]. What is left then is looked at an hour later.
pub async fn trim(
    store: &Store,
    max_checks: i64,
    max_pings: i64,
    now: Now,
) -> Result<Trimmed, StoreError> {
    let due = sqlx::query!(
        r#"-- take_checks_to_trim
        UPDATE sexton.checks c SET trim_at = coalesce($2, now()) + $4 * interval '1 second'
        FROM (SELECT id FROM sexton.checks WHERE trim_at <= coalesce($2, now())
              ORDER BY trim_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED) d
        WHERE c.id = d.id
        RETURNING c.id, coalesce(c.deleted_at <= coalesce($2, now()) - $3 * interval '1 second', false) AS "is_over!""#,
        max_checks,
        now,
        REMOVED_AFTER.as_secs_f64(),
        TRIM_INTERVAL.as_secs_f64()
    )
    .fetch_all(store.with_timeout())
    .await?;
    if due.is_empty() {
        return Ok(Trimmed::default());
    }
    let (ids, over): (Vec<Uuid>, Vec<bool>) = due.iter().map(|row| (row.id, row.is_over)).unzip();
    let pings = sqlx::query!(
        "-- trim_pings
        DELETE FROM sexton.pings WHERE id = ANY (ARRAY(
            SELECT p.id
            FROM unnest($1::uuid[], $2::bool[]) AS c (id, is_over) CROSS JOIN (VALUES (false), (true)) AS l (is_log)
            CROSS JOIN LATERAL (
                SELECT o.id FROM sexton.pings o WHERE o.check_id = c.id AND (o.kind = 'log') = l.is_log
                ORDER BY o.id DESC OFFSET CASE WHEN c.is_over THEN 0 ELSE $3::bigint END LIMIT $4) p
            LIMIT $4))",
        &ids,
        &over,
        KEPT_PINGS,
        max_pings
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    let mut trimmed = Trimmed { pings, checks: due.len() as u64, removed: 0, more: true };
    if pings >= max_pings.unsigned_abs() {
        // What is left may be of any of them.
        sqlx::query!(
            "-- trim_again
            UPDATE sexton.checks c SET trim_at = coalesce($2, now())
            FROM (SELECT id FROM sexton.checks WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) d WHERE c.id = d.id",
            &ids,
            now
        )
        .execute(store.with_timeout())
        .await?;
        return Ok(trimmed);
    }
    trimmed.more = due.len() as i64 >= max_checks;
    let over: Vec<Uuid> = due.iter().filter(|row| row.is_over).map(|row| row.id).collect();
    if !over.is_empty() {
        // One that is not judged since may have an open incident.
        trimmed.removed = sqlx::query!(
            "-- remove_deleted_checks
            DELETE FROM sexton.checks WHERE id = ANY (ARRAY(
                SELECT id FROM sexton.checks c WHERE id = ANY ($1) AND next_check_at = 'infinity'
                    AND NOT EXISTS (SELECT FROM sexton.pings p WHERE p.check_id = c.id)
                ORDER BY id FOR UPDATE SKIP LOCKED))",
            &over
        )
        .execute(store.with_timeout())
        .await?
        .rows_affected();
    }
    Ok(trimmed)
}
