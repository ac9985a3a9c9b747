//! Gaps, revisions of jobs, instances, holds, tokens, sessions and requests: tables without an index by age, which nothing else would need.
//!
//! Each is scanned by its primary key once a pass, as many rows at a time as a batch may remove. Rows that stay are
//! read without a lock.

use uuid::Uuid;

use super::{Position, PrunedBatch, days_before, fence, read_now};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::request_keys::KEY_HOURS;
use crate::{Now, Store, StoreError};

/// Removes gaps that were recorded before the cut.
pub(super) async fn gaps(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let cut = days_before(read_now(store, now).await?, days);
    let rows = sqlx::query!(
        r#"-- retention_gaps
        SELECT id, recorded_at < $3 AS "is_old!" FROM sexton.gaps WHERE id > $1 ORDER BY id LIMIT $2"#,
        position.number,
        limit,
        cut
    )
    .fetch_all(store.with_timeout())
    .await?;
    let old: Vec<i64> = rows.iter().filter(|row| row.is_old).map(|row| row.id).collect();
    let mut removed = 0;
    if !old.is_empty() {
        let mut tx = store.begin().await?;
        fence(&mut tx, cut).await?;
        removed = sqlx::query!(
            "-- prune_gaps
            DELETE FROM sexton.gaps WHERE id = ANY (ARRAY(
                SELECT id FROM sexton.gaps WHERE id = ANY ($1) ORDER BY id FOR UPDATE SKIP LOCKED))",
            &old
        )
        .execute(WithTimeout(&mut *tx))
        .await?
        .rows_affected();
        commit(tx).await?;
    }
    position.number = rows.last().map_or(position.number, |row| row.id);
    Ok(PrunedBatch { removed, is_last: (rows.len() as i64) < limit, stripped: 0 })
}

/// Removes revisions that ended before the cut; the records of their firings are removed too.
pub(super) async fn revisions(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let cut = days_before(read_now(store, now).await?, days);
    let rows = sqlx::query!(
        r#"-- retention_revisions
        SELECT job_id, revision,
               coalesce((SELECT next.valid_from < $4 FROM sexton.job_revisions next
                         WHERE next.job_id = r.job_id AND next.revision = r.revision + 1), false)
                   AS "is_old!"
        FROM sexton.job_revisions r WHERE (job_id, revision) > ($1, $2)
        ORDER BY job_id, revision LIMIT $3"#,
        position.id,
        i32::try_from(position.number).unwrap_or(i32::MAX),
        limit,
        cut
    )
    .fetch_all(store.with_timeout())
    .await?;
    let old = rows.iter().filter(|row| row.is_old).map(|row| (row.job_id, row.revision));
    let (jobs, revisions): (Vec<Uuid>, Vec<i32>) = old.unzip();
    let mut removed = 0;
    if !jobs.is_empty() {
        let mut tx = store.begin().await?;
        fence(&mut tx, cut).await?;
        removed = sqlx::query!(
            "-- prune_revisions
            DELETE FROM sexton.job_revisions r USING unnest($1::uuid[], $2::int[]) AS o (job_id, revision)
            WHERE r.job_id = o.job_id AND r.revision = o.revision",
            &jobs,
            &revisions
        )
        .execute(WithTimeout(&mut *tx))
        .await?
        .rows_affected();
        commit(tx).await?;
    }
    if let Some(last) = rows.last() {
        (position.id, position.number) = (last.job_id, last.revision.into());
    }
    Ok(PrunedBatch { removed, is_last: (rows.len() as i64) < limit, stripped: 0 })
}

/// Removes instances whose last heartbeat was before the cut, with their offers.
pub(super) async fn instances(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let cut = days_before(read_now(store, now).await?, days);
    let rows = sqlx::query!(
        r#"-- retention_instances
        SELECT id, heartbeat_at < $3 AS "is_old!" FROM sexton.instances WHERE id > $1 ORDER BY id LIMIT $2"#,
        position.id,
        limit,
        cut
    )
    .fetch_all(store.with_timeout())
    .await?;
    let old: Vec<Uuid> = rows.iter().filter(|row| row.is_old).map(|row| row.id).collect();
    let mut removed = 0;
    if !old.is_empty() {
        removed = sqlx::query!(
            "-- prune_instances
            DELETE FROM sexton.instances WHERE id = ANY (ARRAY(
                SELECT id FROM sexton.instances WHERE id = ANY ($1) AND heartbeat_at < $2
                ORDER BY id FOR UPDATE SKIP LOCKED))",
            &old,
            cut
        )
        .execute(store.with_timeout())
        .await?
        .rows_affected();
    }
    position.id = rows.last().map_or(position.id, |row| row.id);
    Ok(PrunedBatch { removed, is_last: (rows.len() as i64) < limit, stripped: 0 })
}

/// Removes holds of catch-up that were released before the cut. There is one for each jump of the database's clock.
pub(super) async fn holds(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_holds
        DELETE FROM sexton.holds WHERE id = ANY (ARRAY(
            SELECT id FROM sexton.holds WHERE released_at < $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))",
        days_before(read_now(store, now).await?, days),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}

/// Days for which a tick is kept at least: `sexton.guard_try` accepts ticks of the last day, and one whose row is gone would
/// be run again.
const MIN_TICK_DAYS: i32 = 2;

/// Removes ticks that services took before the cut.
pub(super) async fn ticks(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_ticks
        DELETE FROM sexton.guard_ticks WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM sexton.guard_ticks WHERE began_at < $1 ORDER BY began_at LIMIT $2
            FOR UPDATE SKIP LOCKED))",
        days_before(read_now(store, now).await?, days.max(MIN_TICK_DAYS)),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}

/// Removes tokens that were revoked, or expired, before the cut.
pub(super) async fn tokens(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_tokens
        DELETE FROM sexton.tokens WHERE id = ANY (ARRAY(
            SELECT id FROM sexton.tokens WHERE least(revoked_at, expires_at) < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
        days_before(read_now(store, now).await?, days),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}

/// Removes sessions that ended, or expired, before the cut.
pub(super) async fn sessions(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_sessions
        DELETE FROM sexton.sessions WHERE secret_hash = ANY (ARRAY(
            SELECT secret_hash FROM sexton.sessions WHERE least(ended_at, expires_at) < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
        days_before(read_now(store, now).await?, days),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}

/// Removes keys of requests that stand for nothing any more.
pub(super) async fn request_keys(
    store: &Store,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_request_keys
        DELETE FROM sexton.request_keys WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM sexton.request_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2
            FOR UPDATE SKIP LOCKED))",
        read_now(store, now).await? - chrono::Duration::hours(i64::from(KEY_HOURS)),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}

/// Removes requests for approval that ended, or expired, before the cut, with their approvals.
pub(super) async fn approval_requests(
    store: &Store,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let removed = sqlx::query!(
        "-- prune_approval_requests
        DELETE FROM sexton.approval_requests WHERE id = ANY (ARRAY(
            SELECT id FROM sexton.approval_requests WHERE least(ended_at, expires_at) < $1 ORDER BY id LIMIT $2
            FOR UPDATE SKIP LOCKED))",
        days_before(read_now(store, now).await?, days),
        limit
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(PrunedBatch { removed, is_last: removed < limit.unsigned_abs(), stripped: 0 })
}
