//! Sessions of people whom an identity provider vouches for.

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::access::{MAX_SESSIONS_PER_ACCOUNT, Role, VOUCHED_SESSION_LIFETIME};
use sqlx::PgConnection;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::exclusive_lock::LOCK_CLASS;
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action, set_lock_timeout};
use crate::tokens::HASH_BYTES;
use crate::{Now, Store, StoreError};

/// A person whom an identity provider has logged in.
#[derive(Clone, Copy, Debug)]
pub struct VouchedPerson<'a> {
    /// The name in the audit; 1 to 200 characters.
    pub name: &'a str,
    /// What the person may do while the session lasts.
    pub role: Role,
    /// The provider.
    pub issuer: &'a str,
    /// By which it knows the person, whatever the name is.
    pub subject: &'a str,
    /// SHA-256 of the settings by which the person got in.
    pub provider_hash: &'a [u8; HASH_BYTES],
}

/// Starts a session, ends the person's oldest ones beyond the limit, and records the log-in in the audit, with the provider's id of the person.
/// Returns when it ends.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn start_vouched(
    store: &Store,
    secret_hash: &[u8; HASH_BYTES],
    person: &VouchedPerson<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<DateTime<Utc>, StoreError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    lock_person(&mut tx, person.name).await?;
    let at = instant(&mut tx, now).await?;
    sqlx::query!(
        "-- end_oldest_sessions_of_person
        UPDATE sexton.sessions SET ended_at = $2 WHERE secret_hash IN (
            SELECT secret_hash FROM sexton.sessions WHERE subject = $1 AND ended_at IS NULL AND expires_at > $2
            ORDER BY created_at DESC OFFSET $3)",
        person.name,
        at,
        i64::from(MAX_SESSIONS_PER_ACCOUNT) - 1
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let expires_at = at + VOUCHED_SESSION_LIFETIME;
    sqlx::query!(
        "-- start_session_of_person
        INSERT INTO sexton.sessions (secret_hash, subject, role, created_at, last_used_at, expires_at, provider_hash)
        VALUES ($1, $2, $3, $4, $4, $5, $6)",
        secret_hash.as_slice(),
        person.name,
        person.role.as_str(),
        at,
        expires_at,
        person.provider_hash.as_slice()
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let after = json!({"name": person.name, "role": person.role, "issuer": person.issuer, "subject": person.subject});
    record_jobless_action(&mut tx, "log_in", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(expires_at)
}

/// Locks a person until the transaction ends: no row stands for one. Log-ins of the same moment wait here for each other, and each finds what the
/// one before has started. Two people may share a number, and then wait for each other, too.
///
/// The numbers are negative, and so apart from those of work that one replica does at a time.
pub(super) async fn lock_person(
    connection: &mut PgConnection,
    name: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "-- lock_person
        SELECT pg_advisory_xact_lock($1, hashtext($2) | (-2147483648)::int)",
        LOCK_CLASS,
        name
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
