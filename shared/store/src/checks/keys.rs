//! Keys with which foreign jobs ping checks by name.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use super::define::ChecksError;
use super::record::HASH_BYTES;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// A ping key, without the key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PingKey {
    /// Its name.
    pub name: String,
    /// The number of checks beyond which pings create none.
    pub max_checks: i32,
    /// Checks that it may ping.
    pub checks: i64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
}

/// Lists the keys by name, at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(store: &Store, limit: i64) -> Result<Vec<PingKey>, StoreError> {
    Ok(sqlx::query_as!(
        PingKey,
        r#"-- list_ping_keys
        SELECT k.name, k.max_checks, k.created_at, k.created_by,
               (SELECT count(*) FROM sexton.checks c WHERE c.ping_key = k.name AND c.deleted_at IS NULL) AS "checks!"
        FROM sexton.ping_keys k ORDER BY k.name LIMIT $1"#,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Creates a key, of which only the hash is stored. Returns `false` if the name is taken.
///
/// # Errors
///
/// [`ChecksError`]; nothing was written.
pub async fn create(
    store: &Store,
    name: &str,
    hash: &[u8; HASH_BYTES],
    max_checks: u32,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, ChecksError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let created = sqlx::query!(
        "-- create_ping_key
        INSERT INTO sexton.ping_keys (name, key_hash, max_checks, created_at, created_by) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name) DO NOTHING",
        name,
        hash.as_slice(),
        max_checks as i32,
        at,
        by.actor
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected();
    if created == 0 {
        return Ok(false);
    }
    let after = json!({"name": name, "max_checks": max_checks});
    record_jobless_action(&mut tx, "create_ping_key", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(true)
}

/// Deletes a key: pings with it are refused from now on. Its checks stay, and are pinged by their ids. Returns `false` if there is none.
///
/// # Errors
///
/// [`ChecksError`]; nothing was written.
pub async fn delete(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, ChecksError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    let at = instant(&mut tx, now).await?;
    let deleted =
        sqlx::query!("-- delete_ping_key\nDELETE FROM sexton.ping_keys WHERE name = $1", name)
            .execute(WithTimeout(&mut *tx))
            .await?
            .rows_affected();
    if deleted == 0 {
        return Ok(false);
    }
    let before = json!({"name": name});
    record_jobless_action(&mut tx, "delete_ping_key", (Some(before), None), by, at).await?;
    commit(tx).await?;
    Ok(true)
}
