//! Executions that ended.
//!
//! The index `executions_ended` orders them by when they did, those with a caller's own key apart: so removable rows
//! are at its front, however many are kept. Failed ones are not in it; discarded or resolved, they enter with that
//! instant.
//!
//! Rows with a caller's own key are stripped, but keep (job, key, outcome) for longer, so that the key still
//! deduplicates. A discarded one is kept whole until then: it can be restored, and must not run without its params.
//! `retention` holds the instant up to which rows are stripped, so each is read once for it and not every night: an
//! execution ends at the present, so none can appear before that.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{OWN_KEY_RETENTION_DAYS, Position, PrunedBatch, days_before, fence, read_now};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// Rows read for each one that may be stripped: after an upgrade most have nothing left to strip.
const READ: i64 = 2;

/// Removes expired executions, with or without a caller's own key.
pub(super) async fn remove(
    store: &Store,
    own_keys: bool,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let days = if own_keys { days.max(OWN_KEY_RETENTION_DAYS) } else { days };
    let cut = days_before(read_now(store, now).await?, days);
    let mut tx = store.begin().await?;
    fence(&mut tx, cut).await?;
    let rows = sqlx::query!(
        r#"-- retention_ended
        SELECT id, finished_at AS "finished_at!" FROM sexton.executions
        WHERE own_key = $1 AND state IN ('succeeded', 'cancelled', 'skipped', 'discarded')
          AND finished_at < $2 AND (finished_at, id) > (coalesce($3::timestamptz, '-infinity'), $4)
          -- Of an open flow nothing goes: those downstream may need a result.
          AND (flow_id IS NULL OR NOT EXISTS (
              SELECT FROM sexton.flows f WHERE f.id = flow_id AND f.ended_at IS NULL))
        ORDER BY finished_at, id LIMIT $5 FOR UPDATE SKIP LOCKED"#,
        own_keys,
        cut,
        position.at,
        position.id,
        limit
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let Some(last) = rows.last() else {
        return Ok(PrunedBatch { is_last: true, ..PrunedBatch::default() });
    };
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let removed =
        sqlx::query!("-- delete_finished\nDELETE FROM sexton.executions WHERE id = ANY ($1)", &ids)
            .execute(WithTimeout(&mut *tx))
            .await?
            .rows_affected();
    commit(tx).await?;
    *position = Position { at: Some(last.finished_at), id: last.id, ..*position };
    Ok(PrunedBatch { removed, is_last: (rows.len() as i64) < limit, stripped: 0 })
}

/// An execution with a caller's own key.
struct Row {
    id: Uuid,
    finished_at: DateTime<Utc>,
    /// Whether it has more than its key.
    has_more: bool,
    /// Whether its flow has not ended, so that it keeps what it has.
    is_kept: bool,
}

/// Strips executions with a caller's own key.
pub(super) async fn strip(
    store: &Store,
    position: &mut Position,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let now = read_now(store, now).await?;
    let mut from = *position;
    if from.at.is_none() {
        from = remembered(store, now).await?;
    }
    let limit = limit.saturating_mul(READ);
    let mut rows = sqlx::query_as!(
        Row,
        r#"-- retention_own_keys
        SELECT id, finished_at AS "finished_at!",
               (state <> 'discarded' AND (params <> '{}' OR result IS NOT NULL
                    OR EXISTS (SELECT FROM sexton.attempts a WHERE a.execution_id = executions.id)))
                   AS "has_more!",
               flow_id IS NOT NULL AND EXISTS (
                   SELECT FROM sexton.flows f WHERE f.id = flow_id AND f.ended_at IS NULL) AS "is_kept!"
        FROM sexton.executions
        WHERE own_key AND state IN ('succeeded', 'cancelled', 'skipped', 'discarded')
          AND finished_at < $1 AND (finished_at, id) > (coalesce($2::timestamptz, '-infinity'), $3)
        ORDER BY finished_at, id LIMIT $4"#,
        days_before(now, days),
        from.at,
        from.id,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut is_last = (rows.len() as i64) < limit;
    let mut wanted = 0;
    let full = rows.iter().position(|row| {
        wanted += i64::from(row.has_more);
        wanted > limit
    });
    if let Some(full) = full {
        rows.truncate(full);
        is_last = false;
    }
    let Some(last) = rows.last() else {
        return Ok(PrunedBatch { is_last: true, ..PrunedBatch::default() });
    };
    let to = Position { at: Some(last.finished_at), id: last.id, ..from };
    // Those that are kept come again at a later pass, as those do that were locked.
    let left = from.left || rows.iter().any(|row| row.has_more && row.is_kept);
    let wanted = rows.iter().filter(|row| row.has_more && !row.is_kept);
    let wanted: Vec<Uuid> = wanted.map(|row| row.id).collect();
    let stripped = write(store, &rows, &wanted, left).await?;
    *position = Position { left: left || stripped < wanted.len(), ..to };
    Ok(PrunedBatch { stripped: stripped as u64, is_last, removed: 0 })
}

/// Returns up to where rows are stripped; a position in the future, from a clock that was ahead, is ignored.
async fn remembered(store: &Store, now: DateTime<Utc>) -> Result<Position, StoreError> {
    let row = sqlx::query!(
        "-- retention_stripped_to\nSELECT stripped_at, stripped_id FROM sexton.retention WHERE stripped_at <= $1",
        now
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(row.map_or_else(Position::default, |row| Position {
        at: row.stripped_at,
        id: row.stripped_id.unwrap_or_default(),
        ..Position::default()
    }))
}

/// Strips those of `rows` that are `wanted` and unlocked, and records the position, unless rows were `left` before
/// them. Returns how many.
async fn write(
    store: &Store,
    rows: &[Row],
    wanted: &[Uuid],
    left: bool,
) -> Result<usize, StoreError> {
    let mut tx = store.begin().await?;
    // The first lock, as where executions are removed, and in a backfill.
    sqlx::query!("-- retention_lock\nSELECT FROM sexton.retention FOR NO KEY UPDATE")
        .execute(WithTimeout(&mut *tx))
        .await?;
    let locked: HashSet<Uuid> = sqlx::query_scalar!(
        "-- retention_lock_own_keys
        SELECT id FROM sexton.executions
        WHERE id = ANY ($1) AND own_key AND state IN ('succeeded', 'cancelled', 'skipped')
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        wanted
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?
    .into_iter()
    .collect();
    let ids: Vec<Uuid> = locked.iter().copied().collect();
    if !ids.is_empty() {
        sqlx::query!(
            "-- strip_finished\nUPDATE sexton.executions SET params = '{}', result = NULL WHERE id = ANY ($1)",
            &ids
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
        sqlx::query!(
            "-- strip_attempts\nDELETE FROM sexton.attempts WHERE execution_id = ANY ($1)",
            &ids
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    // The next pass begins before the first row that another transaction has locked.
    let missing = rows.iter().position(|row| row.has_more && !locked.contains(&row.id));
    let end = missing.unwrap_or(rows.len()).checked_sub(1).and_then(|index| rows.get(index));
    if let (Some(end), false) = (end, left) {
        sqlx::query!(
            "-- retention_stripped\nUPDATE sexton.retention SET stripped_at = $1, stripped_id = $2",
            end.finished_at,
            end.id
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    commit(tx).await?;
    Ok(ids.len())
}
