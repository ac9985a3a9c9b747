//! The end of all sessions of somebody, by an operator.

use serde_json::json;

use crate::accounts::lock_account;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action, set_lock_timeout};
use crate::sessions::vouched::lock_person;
use crate::{Now, Store, StoreError};

/// Whose sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionOwner<'a> {
    /// An account.
    Account(&'a str),
    /// A person whom an identity provider vouches for.
    Person(&'a str),
}

/// Ends all sessions of somebody, and records that in the audit. Returns how many; 0: there was none, and nothing was written.
///
/// Who may log in can do so again. It waits for a log-in that has the lock already, and ends its session, too; a later one begins its session afterwards.
///
/// # Errors
///
/// [`StoreError`]; nothing was written.
pub async fn end_all(
    store: &Store,
    owner: SessionOwner<'_>,
    by: AuditContext<'_>,
    now: Now,
) -> Result<u64, StoreError> {
    let (account, person) = match owner {
        SessionOwner::Account(name) => (Some(name), None),
        SessionOwner::Person(name) => (None, Some(name)),
    };
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    // A log-in ends sessions, too, in another order. This waits for it, and the next statement finds the session that it has begun.
    match owner {
        SessionOwner::Account(name) => drop(lock_account(&mut tx, name).await?),
        SessionOwner::Person(name) => lock_person(&mut tx, name).await?,
    }
    let at = instant(&mut tx, now).await?;
    let ended = sqlx::query!(
        "-- end_sessions_of
        UPDATE sexton.sessions SET ended_at = $3 WHERE (account = $1 OR subject = $2) AND ended_at IS NULL AND expires_at > $3",
        account,
        person,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected();
    if ended == 0 {
        return Ok(0);
    }
    let after = match owner {
        SessionOwner::Account(name) => json!({"account": name, "ended_sessions": ended}),
        SessionOwner::Person(name) => json!({"person": name, "ended_sessions": ended}),
    };
    record_jobless_action(&mut tx, "end_sessions", (None, Some(after)), by, at).await?;
    commit(tx).await?;
    Ok(ended)
}
