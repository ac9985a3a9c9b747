//! The chain of the audit: sealing, and reading it for a verification.
//!
//! A trigger queues each action in the transaction that records it, so that nobody waits for a lock. Schedulers then append what is
//! committed to the chain, one at a time. A removal by retention moves the anchor in its own transaction: a reader that misses a
//! position reads the anchor again.

use chrono::{DateTime, Utc};
use sexton_model::audit_chain::{ChainHash, ChainHead, HASH_BYTES, SealedRecord};

use crate::{Store, StoreError};

/// What a call of [`seal`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sealed {
    /// Actions that were appended.
    pub actions: i32,
    /// Whether there may be more.
    pub more: bool,
}

/// Appends at most `limit` committed actions to the chain. While another process does, it returns at once.
///
/// # Errors
///
/// [`StoreError`]; nothing was sealed.
pub async fn seal(store: &Store, limit: i32) -> Result<Sealed, StoreError> {
    Ok(sqlx::query_as!(
        Sealed,
        r#"-- seal_operator_actions
        SELECT sealed AS "actions!", more AS "more!" FROM sexton.seal_operator_actions($1)"#,
        limit
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// The state of the chain.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainState {
    /// The last sealed position.
    pub head: ChainHead,
    /// When it was sealed; `None`: nothing is.
    pub sealed_at: Option<DateTime<Utc>>,
    /// Where the chain begins: the last position that retention removed.
    pub anchor: ChainHead,
    /// Actions that are not sealed yet, including those recorded before the chain began; at most `limit` of each are counted.
    /// One that was removed meanwhile does not count: [`find_removed_unsealed`].
    pub unsealed: i64,
    /// Seconds since the first of them was recorded; those recorded before the chain began do not count.
    pub oldest_unsealed_s: f64,
}

/// Reads the state; counts at most `limit` unsealed actions.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read_state(store: &Store, limit: i64) -> Result<ChainState, StoreError> {
    let row = sqlx::query!(
        r#"-- audit_chain_state
        SELECT c.position, c.hash, c.sealed_at, c.anchor_position, c.anchor_hash,
               (SELECT count(*) FROM (SELECT FROM sexton.audit_unsealed u
                                      JOIN sexton.operator_actions o ON o.id = u.action_id LIMIT $1) u)
             + (SELECT count(*) FROM (SELECT FROM sexton.operator_actions o
                                      WHERE o.id > c.older_from AND o.id <= c.older_to LIMIT $1) o) AS "unsealed!",
               coalesce((SELECT greatest(0, extract(epoch FROM clock_timestamp() - u.waiting_since))
                         FROM sexton.audit_unsealed u JOIN sexton.operator_actions o ON o.id = u.action_id
                         ORDER BY u.action_id LIMIT 1), 0)::float8 AS "oldest_s!"
        FROM sexton.audit_chain c"#,
        limit
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(ChainState {
        head: ChainHead { position: row.position, hash: hash(&row.hash)? },
        sealed_at: row.sealed_at,
        anchor: ChainHead { position: row.anchor_position, hash: hash(&row.anchor_hash)? },
        unsealed: row.unsealed,
        oldest_unsealed_s: row.oldest_s,
    })
}

/// Returns the sealed records behind a position in the order of the chain, at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_sealed(
    store: &Store,
    after: i64,
    limit: i64,
) -> Result<Vec<SealedRecord>, StoreError> {
    let rows = sqlx::query!(
        r#"-- list_sealed_actions
        SELECT s.position, s.action_id, s.hash, o.id IS NOT NULL AS "is_there!", o.id::text AS id,
               CASE WHEN isfinite(o.at) THEN to_char(o.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN extract(year FROM o.at AT TIME ZONE 'UTC') < 0 THEN ' BC' ELSE '' END
                    ELSE o.at::text END AS at,
               o.actor AS "actor?", o.from_where, o.from_address::text AS from_address, o.action AS "action?",
               o.job_id::text AS job_id, o.execution_id::text AS execution_id, o.bulk_id::text AS bulk_id, o.reason,
               o.before::text AS before, o.after::text AS after
        FROM sexton.audit_seals s LEFT JOIN sexton.operator_actions o ON o.id = s.action_id
        WHERE s.position > $1 ORDER BY s.position LIMIT $2"#,
        after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?;
    let records = rows.into_iter().map(|row| {
        let columns = [
            row.id,
            row.at,
            row.actor,
            row.from_where,
            row.from_address,
            row.action,
            row.job_id,
            row.execution_id,
            row.bulk_id,
            row.reason,
            row.before,
            row.after,
        ];
        Ok(SealedRecord {
            position: row.position,
            action: row.action_id,
            hash: hash(&row.hash)?,
            columns: row.is_there.then_some(columns),
        })
    });
    records.collect()
}

/// A page of the search for actions outside the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnchainedPage {
    /// The last action that was looked at; `None`: there are no more.
    pub last: Option<i64>,
    /// The first action that is neither sealed nor waits for it.
    pub unchained: Option<i64>,
}

/// Looks among at most `limit` actions behind `after` for one that is neither sealed nor waits for it.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find_unchained(
    store: &Store,
    after: i64,
    limit: i64,
) -> Result<UnchainedPage, StoreError> {
    Ok(sqlx::query_as!(
        UnchainedPage,
        "-- find_unchained_action
        WITH a AS (SELECT id FROM sexton.operator_actions WHERE id > $1 ORDER BY id LIMIT $2)
        SELECT max(a.id) AS last,
               min(a.id) FILTER (WHERE s.action_id IS NULL AND u.action_id IS NULL
                                   AND NOT (a.id > c.older_from AND a.id <= c.older_to)) AS unchained
        FROM a CROSS JOIN sexton.audit_chain c
        LEFT JOIN sexton.audit_seals s ON s.action_id = a.id LEFT JOIN sexton.audit_unsealed u ON u.action_id = a.id",
        after,
        limit
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns a position with a seal that lies before the chain's beginning or behind its end.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find_outside(store: &Store) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- find_seal_outside
        SELECT coalesce((SELECT min(s.position) FROM sexton.audit_seals s WHERE s.position <= c.anchor_position),
                        (SELECT min(s.position) FROM sexton.audit_seals s WHERE s.position > c.position))
        FROM sexton.audit_chain c"
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns an action that was removed before it was sealed.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find_removed_unsealed(store: &Store) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- find_removed_unsealed
        SELECT u.action_id FROM sexton.audit_unsealed u
        WHERE NOT EXISTS (SELECT FROM sexton.operator_actions o WHERE o.id = u.action_id) ORDER BY u.action_id LIMIT 1"
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

fn hash(bytes: &[u8]) -> Result<ChainHash, StoreError> {
    let hash: Result<[u8; HASH_BYTES], _> = bytes.try_into();
    hash.map(ChainHash).map_err(|_| StoreError::Inconsistent {
        place: "audit_seals.hash",
        value: format!("{} bytes", bytes.len()),
    })
}
