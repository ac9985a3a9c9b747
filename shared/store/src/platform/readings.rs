//! Values of the whole platform, for the metrics of each scheduler.

use chrono::{DateTime, TimeDelta};
use sexton_model::failures::{GroupDecision, GroupState};

use crate::error::parse_column;
use crate::{Now, Store, StoreError};

/// Maximum number of pools and of failure groups' states in one answer.
const MAX_POOLS: i64 = 1_000;
/// Maximum number of audit rows that are counted at once.
const MAX_ACTIONS: i64 = 10_000;

/// Counts and ages.
#[derive(Clone, PartialEq, Debug)]
pub struct PlatformReading {
    /// Jobs with late firings that wait for a release.
    pub held_jobs: i64,
    /// Firings without a record.
    pub unaccounted_firings: i64,
    /// Seconds since the job that was not checked for longest was checked.
    pub ledger_check_age_s: f64,
    /// Failed executions, by pool.
    pub failed: Vec<FailedOfPool>,
    /// Failure groups with failed executions, by state.
    pub groups: Vec<(GroupState, i64)>,
}

/// The failed executions of a pool.
#[derive(Clone, PartialEq, Debug)]
pub struct FailedOfPool {
    /// The pool's name.
    pub pool: String,
    /// Their number.
    pub failed: i64,
    /// Seconds since the oldest of them failed.
    pub oldest_s: f64,
}

/// Reads them, one after the other: each is exact, together they are no snapshot.
pub async fn read(store: &Store, now: Now) -> Result<PlatformReading, StoreError> {
    let row = sqlx::query!(
        r#"-- platform_reading
        SELECT (SELECT count(DISTINCT job_id) FROM sexton.held_firings) AS "held_jobs!",
               (SELECT count(*) FROM sexton.unaccounted_firings) AS "unaccounted!",
               coalesce(extract(epoch FROM coalesce($1, now()) - (SELECT min(checked_at) FROM sexton.ledger_checks)),
                        0)::float8 AS "age!""#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(PlatformReading {
        held_jobs: row.held_jobs,
        unaccounted_firings: row.unaccounted,
        ledger_check_age_s: row.age.max(0.0),
        failed: read_failed(store, now).await?,
        groups: count_groups(store).await?,
    })
}

async fn read_failed(store: &Store, now: Now) -> Result<Vec<FailedOfPool>, StoreError> {
    Ok(sqlx::query_as!(
        FailedOfPool,
        r#"-- failed_of_pools
        SELECT pool, count(*) AS "failed!",
               greatest(0, extract(epoch FROM coalesce($2, now()) - min(failed_at)))::float8 AS "oldest_s!"
        FROM sexton.failures WHERE NOT discarded GROUP BY pool ORDER BY pool LIMIT $1"#,
        MAX_POOLS,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}

async fn count_groups(store: &Store) -> Result<Vec<(GroupState, i64)>, StoreError> {
    let rows = sqlx::query!(
        r#"-- count_group_states
        SELECT g.state, coalesce(g.last_seen > g.decided_at, false) AS "seen_since!", count(*) AS "groups!"
        FROM sexton.failure_groups g
        WHERE EXISTS (SELECT FROM sexton.failure_counts c WHERE c.fingerprint = g.fingerprint AND c.standing > 0)
        GROUP BY 1, 2"#
    )
    .fetch_all(store.with_timeout())
    .await?;
    let counts = rows.into_iter().map(|row| {
        let decision = parse_column("failure_groups.state", &row.state, GroupDecision::parse)?;
        let decided = DateTime::UNIX_EPOCH;
        let seen = decided + TimeDelta::seconds(i64::from(row.seen_since));
        Ok((decision.group_state(Some(decided), Some(seen)), row.groups))
    });
    counts.collect()
}

/// Counts the requeues that the audit recorded after the row `after`, in its order, at most 10,000 rows. Returns
/// the last row's id, and the number of each action; bulks' under `bulk`.
///
/// A row that commits later than one with a higher id is not counted if that one was; the counter is for trends, the
/// audit for accounts.
pub async fn count_requeues(
    store: &Store,
    after: i64,
) -> Result<(i64, Vec<(String, i64)>), StoreError> {
    let rows = sqlx::query!(
        r#"-- count_requeues
        SELECT CASE WHEN bulk_id IS NOT NULL THEN 'bulk' ELSE action END AS "how!", action, count(*) AS "count!",
               max(id) AS "last!"
        FROM (SELECT id, action, bulk_id FROM sexton.operator_actions WHERE id > $1 ORDER BY id LIMIT $2) a
        GROUP BY 1, 2"#,
        after,
        MAX_ACTIONS
    )
    .fetch_all(store.with_timeout())
    .await?;
    let last = rows.iter().map(|row| row.last).max().unwrap_or(after);
    let requeues = rows.into_iter().filter(|row| row.action.ends_with("requeue"));
    Ok((last, requeues.map(|row| (row.how, row.count)).collect()))
}

/// Returns the id of the audit's last row; 0 without one.
pub async fn last_action(store: &Store) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- last_action
        SELECT coalesce(max(id), 0) AS "id!" FROM sexton.operator_actions"#
    )
    .fetch_one(store.with_timeout())
    .await?)
}
