//! Adds the changes of failure counts up.
//!
//! One statement moves changes from `failure_changes` into the counts, so that a crash leaves each in exactly one of
//! the two. Its transaction also opens the incidents of resolved groups that failed again. One scheduler aggregates at a
//! time; the others skip the round.

use sexton_model::fingerprint::pattern;

use super::reopened;

use crate::connection::client_timeout::WithTimeout;
use crate::connection::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use crate::{Now, Store, StoreError};

/// How long the hours for trends are kept, in days.
const TREND_RETENTION_DAYS: i32 = 8;
/// How long a group without failures is kept, in days; one that an operator decided about, for
/// [`DECIDED_GROUP_RETENTION_DAYS`].
const GROUP_RETENTION_DAYS: i32 = 30;
const DECIDED_GROUP_RETENTION_DAYS: i32 = 400;

/// The result of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Aggregated {
    /// Number of changes added up.
    pub changes: i64,
    /// Resolved groups that failed again.
    pub reopened: usize,
}

/// Adds up at most `limit` changes, the oldest first; none while another replica does so.
pub async fn aggregate(store: &Store, limit: i64, now: Now) -> Result<Aggregated, StoreError> {
    let Some(mut lock) =
        ExclusiveLock::try_acquire(store, ExclusiveTask::FailureAggregation, now).await?
    else {
        return Ok(Aggregated::default());
    };
    let groups = sqlx::query_file!(
        "src/failures/aggregate.sql",
        limit,
        now,
        f64::from(TREND_RETENTION_DAYS)
    )
    .fetch_all(WithTimeout(lock.connection()))
    .await?;
    let again: Vec<(String, i64)> = groups
        .iter()
        .filter(|group| group.again > 0)
        .map(|group| (group.fingerprint.clone(), group.again))
        .collect();
    let ended: Vec<String> = groups
        .iter()
        .filter(|group| group.has_ended)
        .map(|group| group.fingerprint.clone())
        .collect();
    let reopened = reopened::report(lock.connection(), &again, now).await?;
    reopened::end(lock.connection(), &ended, now).await?;
    lock.commit().await?;
    Ok(Aggregated { changes: groups.iter().map(|group| group.changes).sum(), reopened })
}

/// Gives groups their class and pattern, from the example if that is unchanged; at most `limit`. Returns how many
/// were examined.
pub async fn name_groups(store: &Store, limit: i64) -> Result<usize, StoreError> {
    let groups = sqlx::query!(
        r#"-- groups_without_pattern
        SELECT g.fingerprint, coalesce(a.error_class, e.error_class, '') AS "class!",
               coalesce(a.error_message, e.error_message, '') AS "message!"
        FROM sexton.failure_groups g JOIN sexton.executions e ON e.id = g.example
        LEFT JOIN sexton.attempts a ON a.execution_id = e.id AND a.number = e.attempt - 1
        WHERE g.pattern IS NULL AND e.fingerprint = g.fingerprint
        ORDER BY g.fingerprint LIMIT $1"#,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let fingerprints: Vec<String> = groups.iter().map(|group| group.fingerprint.clone()).collect();
    let classes: Vec<String> = groups.iter().map(|group| group.class.clone()).collect();
    let patterns: Vec<String> = groups.iter().map(|group| pattern(&group.message)).collect();
    sqlx::query!(
        "-- name_groups
        UPDATE sexton.failure_groups g SET error_class = n.class, pattern = n.pattern
        FROM unnest($1::text[], $2::text[], $3::text[]) AS n (fingerprint, class, pattern)
        WHERE g.fingerprint = n.fingerprint AND g.pattern IS NULL",
        &fingerprints,
        &classes,
        &patterns
    )
    .execute(store.with_timeout())
    .await?;
    Ok(groups.len())
}

/// Removes old hours, counts of zero, and groups that have had no failure for long. Returns how many groups were
/// removed. Harmless beside an aggregation: a change creates the rows that it needs again.
pub async fn prune_groups(store: &Store, now: Now) -> Result<u64, StoreError> {
    let Some(mut lock) =
        ExclusiveLock::try_acquire(store, ExclusiveTask::FailureAggregation, now).await?
    else {
        return Ok(0);
    };
    sqlx::query!("-- tidy_failure_counts\nDELETE FROM sexton.failure_counts WHERE standing = 0")
        .execute(WithTimeout(lock.connection()))
        .await?;
    sqlx::query!(
        "-- tidy_failure_hours
        DELETE FROM sexton.failure_hours WHERE hour < coalesce($1, now()) - $2 * interval '1 day'",
        now,
        f64::from(TREND_RETENTION_DAYS)
    )
    .execute(WithTimeout(lock.connection()))
    .await?;
    let removed = sqlx::query!(
        "-- tidy_failure_groups
        DELETE FROM sexton.failure_groups g
        WHERE coalesce(greatest(g.last_seen, g.decided_at), '-infinity') < coalesce($1, now()) - interval '1 day'
                * CASE WHEN g.state = 'open' AND g.note IS NULL THEN $2::int ELSE $3::int END
          AND NOT EXISTS (SELECT FROM sexton.failure_counts c WHERE c.fingerprint = g.fingerprint)
          AND NOT EXISTS (SELECT FROM sexton.failure_changes c WHERE c.fingerprint = g.fingerprint)",
        now,
        GROUP_RETENTION_DAYS,
        DECIDED_GROUP_RETENTION_DAYS
    )
    .execute(WithTimeout(lock.connection()))
    .await?;
    lock.commit().await?;
    Ok(removed.rows_affected())
}
