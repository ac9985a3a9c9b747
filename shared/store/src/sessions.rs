//! Sessions of people who have logged in. A row has the hash of a session's secret, never the secret.
//!
//! A session ends at a log-out, when it is unused for 12 hours, after 7 days, with a change of its account, or by an operator; that of a
//! person whom an identity provider vouches for after 12 hours, since nobody says when the provider takes a role away.

mod end_all;
mod vouched;

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::access::{MAX_SESSIONS_PER_ACCOUNT, Role, SESSION_IDLE, SESSION_LIFETIME};
use sexton_model::job_scope::JobScope;

use crate::accounts::lock_if_unchanged;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::tokens::HASH_BYTES;
use crate::tokens::read_scope;
use crate::{Now, Store, StoreError};

pub use end_all::{SessionOwner, end_all};
pub use vouched::{VouchedPerson, start_vouched};

/// A session to be started.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    /// SHA-256 of its secret.
    pub secret_hash: &'a [u8; HASH_BYTES],
    /// The account that logs in.
    pub account: &'a str,
    /// The hash with which its password was compared.
    pub password_hash: &'a str,
}

/// Whom a session belongs to, if it is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedSession {
    /// The account, or the name that another system vouched for.
    pub name: String,
    /// Whether it is an account.
    pub is_account: bool,
    /// Of a person, the settings of the provider by which it began; `None`: an account, or a session of an older version.
    pub provider_hash: Option<Vec<u8>>,
    /// What it may do; `None`: a role of a newer version, which this one does not know.
    pub role: Option<Role>,
    /// The jobs that it may change; `None`: all.
    pub only_jobs: Option<JobScope>,
    /// When it ends in any case.
    pub expires_at: DateTime<Utc>,
    /// Whether it was not used within the last minute, as far as its row says.
    pub is_use_new: bool,
}

/// Starts a session of an account, ends its oldest ones beyond the limit, and records the log-in in the audit. Returns when it ends;
/// `None`: the account was disabled, or its password changed, since the hash was read.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn start(
    store: &Store,
    session: &NewSession<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let mut tx = store.begin().await?;
    // The comparison of a password takes a while. A change of the account in between has ended its sessions, and this one would outlive
    // it; one that comes later waits for this lock, and finds the session.
    let role = lock_if_unchanged(&mut tx, session.account, session.password_hash).await?;
    let Some(role) = role else { return Ok(None) };
    let at = instant(&mut tx, now).await?;
    sqlx::query!(
        "-- end_oldest_sessions
        UPDATE sexton.sessions SET ended_at = $2 WHERE secret_hash IN (
            SELECT secret_hash FROM sexton.sessions WHERE account = $1 AND ended_at IS NULL AND expires_at > $2
            ORDER BY created_at DESC OFFSET $3)",
        session.account,
        at,
        i64::from(MAX_SESSIONS_PER_ACCOUNT) - 1
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let expires_at = at + SESSION_LIFETIME;
    sqlx::query!(
        "-- start_session
        INSERT INTO sexton.sessions (secret_hash, account, created_at, last_used_at, expires_at) VALUES ($1, $2, $3, $3, $4)",
        session.secret_hash.as_slice(),
        session.account,
        at,
        expires_at
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    sqlx::query!(
        "-- record_log_in
        UPDATE sexton.accounts SET last_log_in_at = $2 WHERE name = $1",
        session.account,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let after = json!({"name": session.account, "role": role});
    record_jobless_action(&mut tx, "log_in", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(Some(expires_at))
}

/// Returns whom the session with this hash belongs to; `None`: it is not accepted. Writes nothing, so that people can look while the
/// database takes no writes.
///
/// # Errors
///
/// [`StoreError`].
pub async fn accept(
    store: &Store,
    secret_hash: &[u8; HASH_BYTES],
    now: Now,
) -> Result<Option<AcceptedSession>, StoreError> {
    let row = sqlx::query!(
        r#"-- accept_session
        SELECT coalesce(s.account, s.subject) AS "name!", s.account IS NOT NULL AS "is_account!", coalesce(a.role, s.role) AS "role!",
               s.provider_hash, a.only_jobs AS "only_jobs?", s.expires_at,
               s.last_used_at <= coalesce($2, now()) - interval '1 minute' AS "is_use_new!"
        FROM sexton.sessions s LEFT JOIN sexton.accounts a ON a.name = s.account
        WHERE s.secret_hash = $1 AND s.ended_at IS NULL AND s.expires_at > coalesce($2, now())
          AND s.last_used_at > coalesce($2, now()) - $3::bigint * interval '1 second' AND a.disabled_at IS NULL"#,
        secret_hash.as_slice(),
        now,
        SESSION_IDLE.num_seconds()
    )
    .fetch_optional(store.with_timeout())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(AcceptedSession {
        name: row.name,
        is_account: row.is_account,
        provider_hash: row.provider_hash,
        role: Role::parse(&row.role),
        only_jobs: read_scope(row.only_jobs)?,
        expires_at: row.expires_at,
        is_use_new: row.is_use_new,
    }))
}

/// Records that a session is used, to the minute. A row that another transaction has locked is skipped.
///
/// # Errors
///
/// [`StoreError`].
pub async fn record_use(
    store: &Store,
    secret_hash: &[u8; HASH_BYTES],
    now: Now,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- record_session_use
        UPDATE sexton.sessions SET last_used_at = coalesce($2, now()) WHERE secret_hash IN (
            SELECT secret_hash FROM sexton.sessions
            WHERE secret_hash = $1 AND last_used_at <= coalesce($2, now()) - interval '1 minute'
            FOR UPDATE SKIP LOCKED)",
        secret_hash.as_slice(),
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Ends a session. Returns `false` if no session with this hash was going on.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn end(
    store: &Store,
    secret_hash: &[u8; HASH_BYTES],
    now: Now,
) -> Result<bool, StoreError> {
    let ended = sqlx::query!(
        "-- end_session
        UPDATE sexton.sessions SET ended_at = coalesce($2, now()) WHERE secret_hash = $1 AND ended_at IS NULL",
        secret_hash.as_slice(),
        now
    )
    .execute(store.with_timeout())
    .await?
    .rows_affected();
    Ok(ended == 1)
}
