//! Changes of accounts. Each that decides who may do what ends the account's sessions in its transaction.

use serde_json::json;
use sexton_model::access::{MAX_ACCOUNTS, Role};
use sexton_model::job_scope::{Grant, ScopeChange};
use sqlx::PgConnection;

use super::{count_enabled, lock_if_unchanged};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::tokens::read_scope;
use crate::{Now, Store, StoreError};

/// A change of an account that ends its sessions.
#[derive(Clone, Copy, Debug)]
pub enum AccountChange<'a> {
    /// Another password, as its hash.
    Password(&'a str),
    /// Another role, or other jobs to which it is restricted.
    Role(Role, &'a ScopeChange),
    /// Nobody can log in any more.
    Disable,
}

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeOutcome {
    /// It is changed, and so many sessions have ended.
    Changed {
        /// The sessions.
        ended_sessions: u64,
    },
    /// It was so already.
    Unchanged,
    /// There is no such account.
    NotFound,
    /// There are too many that are enabled.
    TooMany,
    /// It would be an admin that is restricted to jobs.
    RestrictedAdmin,
    /// It has another role, or is restricted to other jobs, than the person saw.
    GrantChanged,
}

/// Changes an account, ends its sessions, and records that in the audit, which never has the password or its hash.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn change(
    store: &Store,
    name: &str,
    change: AccountChange<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<ChangeOutcome, StoreError> {
    let mut tx = store.begin().await?;
    let Some(before) = lock(&mut tx, name).await? else { return Ok(ChangeOutcome::NotFound) };
    let write = match change {
        AccountChange::Password(hash) => Write::Password(hash),
        AccountChange::Role(role, only_jobs) => {
            let Ok(only_jobs) = only_jobs.apply(before.grant()?) else {
                return Ok(ChangeOutcome::GrantChanged);
            };
            let grant = Grant { role, only_jobs };
            if grant.check().is_err() {
                return Ok(ChangeOutcome::RestrictedAdmin);
            }
            if before.role == role.as_str() && before.only_jobs == scope_text(&grant) {
                return Ok(ChangeOutcome::Unchanged);
            }
            Write::Grant(grant)
        }
        AccountChange::Disable if before.is_disabled => return Ok(ChangeOutcome::Unchanged),
        AccountChange::Disable => Write::Disable,
    };
    let ended_sessions = write_change(&mut tx, name, &before, write, by, now).await?;
    commit(tx).await?;
    Ok(ChangeOutcome::Changed { ended_sessions })
}

/// Like [`change`] to another password, for the person who has shown the one with the hash `seen`.
/// [`ChangeOutcome::NotFound`]: the account was disabled, or its password changed, since.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn replace_password(
    store: &Store,
    name: &str,
    seen: &str,
    password_hash: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<ChangeOutcome, StoreError> {
    let mut tx = store.begin().await?;
    if lock_if_unchanged(&mut tx, name, seen).await?.is_none() {
        return Ok(ChangeOutcome::NotFound);
    }
    let Some(before) = lock(&mut tx, name).await? else { return Ok(ChangeOutcome::NotFound) };
    let write = Write::Password(password_hash);
    let ended_sessions = write_change(&mut tx, name, &before, write, by, now).await?;
    commit(tx).await?;
    Ok(ChangeOutcome::Changed { ended_sessions })
}

impl LockedAccount {
    /// What the account may do. A role of a newer version is an error, not another one.
    fn grant(&self) -> Result<Grant, StoreError> {
        let role = Role::parse(&self.role).ok_or_else(|| StoreError::Inconsistent {
            place: "accounts.role",
            value: self.role.clone(),
        })?;
        Ok(Grant { role, only_jobs: read_scope(self.only_jobs.clone())? })
    }
}

/// A change as it is written.
enum Write<'a> {
    Password(&'a str),
    Grant(Grant),
    Disable,
}

/// Writes a change of a locked account. Returns how many sessions it ended.
async fn write_change(
    connection: &mut PgConnection,
    name: &str,
    before: &LockedAccount,
    change: Write<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<u64, StoreError> {
    let at = instant(&mut *connection, now).await?;
    // A statement for each: operators of the database may write a hash, and not read one.
    match &change {
        Write::Password(hash) => {
            sqlx::query!(
                "-- set_account_password
                UPDATE sexton.accounts SET password_hash = $2, password_set_at = $3 WHERE name = $1",
                name,
                hash,
                at
            )
            .execute(WithTimeout(&mut *connection))
            .await?;
        }
        Write::Grant(grant) => {
            sqlx::query!(
                "-- set_account_role
                UPDATE sexton.accounts SET role = $2, only_jobs = $3 WHERE name = $1",
                name,
                grant.role.as_str(),
                scope_text(grant)
            )
            .execute(WithTimeout(&mut *connection))
            .await?;
        }
        Write::Disable => {
            sqlx::query!(
                "-- disable_account
                UPDATE sexton.accounts SET disabled_at = $2, disabled_by = $3 WHERE name = $1",
                name,
                at,
                by.actor
            )
            .execute(WithTimeout(&mut *connection))
            .await?;
        }
    }
    let ended_sessions = sqlx::query!(
        "-- end_sessions_of_account
        UPDATE sexton.sessions SET ended_at = $2 WHERE account = $1 AND ended_at IS NULL AND expires_at > $2",
        name,
        at
    )
    .execute(WithTimeout(&mut *connection))
    .await?
    .rows_affected();
    let (action, after) = match &change {
        Write::Password(_) => ("set_account_password", json!({"name": name})),
        Write::Grant(grant) => {
            let after = json!({"name": name, "role": grant.role, "only_jobs": scope_text(grant)});
            ("set_account_role", after)
        }
        Write::Disable => ("disable_account", json!({"name": name})),
    };
    let before = json!({"name": name, "role": before.role, "only_jobs": before.only_jobs});
    record_jobless_action(connection, action, (Some(before), Some(after)), by, at).await?;
    Ok(ended_sessions)
}

fn scope_text(grant: &Grant) -> Option<String> {
    grant.only_jobs.as_ref().map(ToString::to_string)
}

/// Lets people log in with an account again, and records that in the audit. Its old sessions stay ended.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn enable(
    store: &Store,
    name: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<ChangeOutcome, StoreError> {
    let mut tx = store.begin().await?;
    let Some(before) = lock(&mut tx, name).await? else { return Ok(ChangeOutcome::NotFound) };
    if !before.is_disabled {
        return Ok(ChangeOutcome::Unchanged);
    }
    if count_enabled(&mut tx).await? >= i64::from(MAX_ACCOUNTS) {
        return Ok(ChangeOutcome::TooMany);
    }
    let at = instant(&mut tx, now).await?;
    sqlx::query!(
        "-- enable_account
        UPDATE sexton.accounts SET disabled_at = NULL, disabled_by = NULL WHERE name = $1",
        name
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    let after = json!({"name": name, "role": before.role, "only_jobs": before.only_jobs});
    record_jobless_action(&mut tx, "enable_account", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(ChangeOutcome::Changed { ended_sessions: 0 })
}

pub(crate) struct LockedAccount {
    role: String,
    only_jobs: Option<String>,
    is_disabled: bool,
}

/// Locks an account's row, which each log-in with it locks, too; `None`: there is none.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    name: &str,
) -> Result<Option<LockedAccount>, StoreError> {
    Ok(sqlx::query_as!(
        LockedAccount,
        r#"-- lock_account
        SELECT role, only_jobs, disabled_at IS NOT NULL AS "is_disabled!" FROM sexton.accounts WHERE name = $1 FOR UPDATE"#,
        name
    )
    .fetch_optional(WithTimeout(connection))
    .await?)
}
