//! Accounts by which people log in. A row has a slow hash of the password, never the password.
//!
//! Whatever changes who may do what with an account (a new password, another role, its end) ends its sessions in the same transaction, and
//! a log-in that is under way meanwhile finds the account changed: see [`crate::sessions::start`].

mod changes;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sexton_model::access::MAX_ACCOUNTS;
use sexton_model::job_scope::Grant;
use sqlx::PgConnection;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::{Now, Store, StoreError};

pub(crate) use changes::lock as lock_account;
pub use changes::{AccountChange, ChangeOutcome, change, enable, replace_password};

/// An account, without its password.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Account {
    /// By which the person logs in, and the audit knows what is done with it.
    pub name: String,
    /// `viewer`, `operator`, `editor` or `admin`.
    pub role: String,
    /// The jobs that it may change: `billing.*` or `team=billing`; null: all.
    pub only_jobs: Option<String>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// Who created it.
    pub created_by: String,
    /// Since when its password is what it is.
    pub password_set_at: DateTime<Utc>,
    /// When somebody logged in with it last; `None`: never.
    pub last_log_in_at: Option<DateTime<Utc>>,
    /// Since when nobody can log in with it.
    pub disabled_at: Option<DateTime<Utc>>,
    /// Who disabled it.
    pub disabled_by: Option<String>,
}

/// An account to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewAccount<'a> {
    /// [`Account::name`].
    pub name: &'a str,
    /// Argon2id, in the PHC format.
    pub password_hash: &'a str,
    /// What it may do.
    pub grant: &'a Grant,
}

/// What became of an account to be created, or to be enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountCreation {
    /// It exists, and is enabled.
    Created,
    /// There is an account of this name.
    NameTaken,
    /// There are [`MAX_ACCOUNTS`] already that are enabled.
    TooMany,
    /// It should have been the first account, and is not.
    NotFirst,
}

/// Creates an account, and records that in the audit.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn create(
    store: &Store,
    account: &NewAccount<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<AccountCreation, StoreError> {
    insert(store, account, false, by, now).await
}

/// Creates an account if there is none at all, of several callers for one.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn create_first(
    store: &Store,
    account: &NewAccount<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<AccountCreation, StoreError> {
    insert(store, account, true, by, now).await
}

async fn insert(
    store: &Store,
    account: &NewAccount<'_>,
    is_first: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<AccountCreation, StoreError> {
    let mut tx = store.begin().await?;
    if is_first {
        // Nobody else creates one between the question and the insert.
        sqlx::query(
            "-- lock_accounts
            LOCK TABLE sexton.accounts IN SHARE ROW EXCLUSIVE MODE",
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
        if is_any_in(&mut tx).await? {
            return Ok(AccountCreation::NotFirst);
        }
    }
    let at = instant(&mut tx, now).await?;
    if count_enabled(&mut tx).await? >= i64::from(MAX_ACCOUNTS) {
        return Ok(AccountCreation::TooMany);
    }
    let only_jobs = account.grant.only_jobs.as_ref().map(ToString::to_string);
    let created = sqlx::query!(
        "-- create_account
        INSERT INTO sexton.accounts (name, password_hash, password_set_at, role, created_at, created_by, only_jobs)
        VALUES ($1, $2, $4, $3, $4, $5, $6) ON CONFLICT (name) DO NOTHING",
        account.name,
        account.password_hash,
        account.grant.role.as_str(),
        at,
        by.actor,
        only_jobs
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected();
    if created == 0 {
        return Ok(AccountCreation::NameTaken);
    }
    let after = json!({"name": account.name, "role": account.grant.role, "only_jobs": only_jobs});
    record_jobless_action(&mut tx, "create_account", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(AccountCreation::Created)
}

/// Lists accounts: those that are enabled by name, and then the others; at most `limit`.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list(store: &Store, limit: i64) -> Result<Vec<Account>, StoreError> {
    Ok(sqlx::query_as!(
        Account,
        "-- list_accounts
        SELECT name, role, only_jobs, created_at, created_by, password_set_at, last_log_in_at, disabled_at, disabled_by
        FROM sexton.accounts ORDER BY disabled_at IS NOT NULL, name LIMIT $1",
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns whether there is any account, a disabled one among them.
///
/// # Errors
///
/// [`StoreError`].
pub async fn is_any(store: &Store) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- is_any_account
        SELECT EXISTS (SELECT FROM sexton.accounts) AS "is_any!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns the hash of an account's password; `None`: there is no such account, or it is disabled.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read_password_hash(store: &Store, name: &str) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- read_password_hash
        SELECT password_hash FROM sexton.accounts WHERE name = $1 AND disabled_at IS NULL",
        name
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// Locks an account whose password still has the hash that was read before, and returns its role; `None`: it has changed, or is disabled.
pub(crate) async fn lock_if_unchanged(
    connection: &mut PgConnection,
    name: &str,
    password_hash: &str,
) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- lock_account_for_log_in
        SELECT role FROM sexton.accounts WHERE name = $1 AND password_hash = $2 AND disabled_at IS NULL FOR UPDATE",
        name,
        password_hash
    )
    .fetch_optional(WithTimeout(connection))
    .await?)
}

async fn is_any_in(connection: &mut PgConnection) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- is_any_account_yet
        SELECT EXISTS (SELECT FROM sexton.accounts) AS "is_any!""#
    )
    .fetch_one(WithTimeout(connection))
    .await?)
}

/// Two at the same time may exceed the limit by one, which does no harm.
async fn count_enabled(connection: &mut PgConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- count_accounts
        SELECT count(*) AS "enabled!" FROM sexton.accounts WHERE disabled_at IS NULL"#
    )
    .fetch_one(WithTimeout(connection))
    .await?)
}
