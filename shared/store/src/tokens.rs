//! Tokens by which people and programs use the API. A row has the hash of a token's secret, never the secret.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sexton_model::access::{MAX_TOKENS, Role};
use sexton_model::job_scope::{Grant, JobScope};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::{Now, Store, StoreError};

/// The length of SHA-256, in bytes.
pub const HASH_BYTES: usize = 32;

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    /// The second part of its text; no secret.
    pub id: String,
    /// Unique among those that are not revoked.
    pub name: String,
    /// `viewer`, `operator`, `editor` or `admin`.
    pub role: String,
    /// The jobs that it may change: `billing.*` or `team=billing`; null: all.
    pub only_jobs: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
    /// From when on it is refused; `None`: never.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was used last, to the minute; `None`: never.
    pub last_used_at: Option<DateTime<Utc>>,
    /// Since when it is revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    /// Who revoked it.
    pub revoked_by: Option<String>,
}

/// A token to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewToken<'a> {
    /// [`Token::id`].
    pub id: &'a str,
    /// [`Token::name`].
    pub name: &'a str,
    /// SHA-256 of the secret.
    pub secret_hash: &'a [u8; HASH_BYTES],
    /// What it may do.
    pub grant: &'a Grant,
    /// How long it is accepted, in milliseconds; `None`: until it is revoked.
    pub valid_ms: Option<i64>,
}

/// What became of a token to be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenCreation {
    /// It exists.
    Created,
    /// Another token has the name, and is not revoked.
    NameTaken,
    /// There are [`MAX_TOKENS`] already.
    TooMany,
}

/// Whom a token belongs to, if it is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedToken {
    /// [`Token::name`].
    pub name: String,
    /// What it may do; `None`: a role of a newer version, which this one does not know.
    pub role: Option<Role>,
    /// The jobs that it may change; `None`: all.
    pub only_jobs: Option<JobScope>,
    /// Whether it was not used within the last minute, as far as its row says.
    pub is_use_new: bool,
}

/// Creates a token, and records that in the audit.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn create(
    store: &Store,
    token: &NewToken<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<TokenCreation, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    // Two at the same time may exceed the limit by one, which does no harm.
    let valid = sqlx::query_scalar!(
        r#"-- count_tokens
        SELECT count(*) AS "valid!" FROM sexton.tokens
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)"#,
        at
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if valid >= i64::from(MAX_TOKENS) {
        return Ok(TokenCreation::TooMany);
    }
    let only_jobs = token.grant.only_jobs.as_ref().map(ToString::to_string);
    let created = sqlx::query!(
        "-- create_token
        INSERT INTO sexton.tokens (id, name, secret_hash, role, created_at, created_by, expires_at, only_jobs)
        VALUES ($1, $2, $3, $4, $5::timestamptz, $6, $5::timestamptz + $7::bigint * interval '1 millisecond', $8)
        ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING",
        token.id,
        token.name,
        token.secret_hash.as_slice(),
        token.grant.role.as_str(),
        at,
        by.actor,
        token.valid_ms,
        only_jobs
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected();
    if created == 0 {
        return Ok(TokenCreation::NameTaken);
    }
    let after = json!({
        "id": token.id, "name": token.name, "role": token.grant.role, "only_jobs": only_jobs, "valid_ms": token.valid_ms,
    });
    record_jobless_action(&mut tx, "create_token", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(TokenCreation::Created)
}

/// Lists tokens: those that are accepted by name, and then the others, the latest revoked first; at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(store: &Store, limit: i64) -> Result<Vec<Token>, StoreError> {
    Ok(sqlx::query_as!(
        Token,
        "-- list_tokens
        SELECT id, name, role, only_jobs, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
        FROM sexton.tokens
        ORDER BY revoked_at IS NOT NULL OR coalesce(expires_at <= now(), false), revoked_at DESC NULLS FIRST, name LIMIT $1",
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Revokes the token of that name, from the next request on, and records that in the audit. Returns `false` if there is none.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn revoke(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let revoked = sqlx::query!(
        "-- revoke_token
        UPDATE sexton.tokens SET revoked_at = $2, revoked_by = $3 WHERE name = $1 AND revoked_at IS NULL
        RETURNING id, role",
        name,
        at,
        by.actor
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let Some(revoked) = revoked else { return Ok(false) };
    let before = json!({"id": revoked.id, "name": name, "role": revoked.role});
    record_jobless_action(&mut tx, "revoke_token", (Some(before), None), by, at).await?;
    commit(tx).await?;
    Ok(true)
}

/// Returns whom the token with this id and hash belongs to; `None`: it is not accepted. Writes nothing, so that people can look while the
/// database takes no writes. The hash is of 256 random bits, so the time of its comparison helps nobody to guess it.
///
/// # Errors
///
/// [`StoreError`].
pub async fn accept(
    store: &Store,
    id: &str,
    secret_hash: &[u8; HASH_BYTES],
    now: Now,
) -> Result<Option<AcceptedToken>, StoreError> {
    let row = sqlx::query!(
        r#"-- accept_token
        SELECT name, role, only_jobs, coalesce(last_used_at <= coalesce($3, now()) - interval '1 minute', true) AS "is_use_new!"
        FROM sexton.tokens
        WHERE id = $1 AND secret_hash = $2 AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > coalesce($3, now()))"#,
        id,
        secret_hash.as_slice(),
        now
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(AcceptedToken {
        name: row.name,
        role: Role::parse(&row.role),
        only_jobs: read_scope(row.only_jobs)?,
        is_use_new: row.is_use_new,
    }))
}

/// Reads the scope of a token or an account. One of a newer version must not become none.
pub(crate) fn read_scope(text: Option<String>) -> Result<Option<JobScope>, StoreError> {
    let place = "only_jobs";
    let read = |text: String| {
        text.parse().map_err(|_| StoreError::Inconsistent { place, value: text.clone() })
    };
    text.map(read).transpose()
}

/// Records that a token is used, to the minute, so that a busy one is not a row of many versions. A row that another transaction has
/// locked is skipped.
///
/// # Errors
///
/// [`StoreError`].
pub async fn record_use(store: &Store, id: &str, now: Now) -> Result<(), StoreError> {
    sqlx::query!(
        "-- record_token_use
        UPDATE sexton.tokens SET last_used_at = coalesce($2, now()) WHERE id IN (
            SELECT id FROM sexton.tokens
            WHERE id = $1 AND coalesce(last_used_at <= coalesce($2, now()) - interval '1 minute', true)
            FOR UPDATE SKIP LOCKED)",
        id,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}
