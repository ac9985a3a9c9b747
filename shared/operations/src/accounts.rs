//! Accounts by which people log in, and the sessions that they get.
//!
//! A new password, another role and a disabled account end the account's sessions at once.

use chrono::{DateTime, Utc};
use sexton_model::access::{ActorKind, MAX_ACCOUNTS, Role, is_token_name};
use sexton_model::job_scope::{Grant, ScopeChange};
use sexton_store::accounts::{self, AccountChange, AccountCreation, ChangeOutcome, NewAccount};
use sexton_store::sessions::{self, NewSession, SessionOwner};
use sexton_store::{Store, StoreError};

pub use sexton_store::accounts::Account;
pub use sexton_store::sessions::AcceptedSession;

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::passwords::{Password, TooManyHashes, hash, is_right};
use crate::secret_text;

/// Most accounts in a list: all that are enabled, and as many others.
const MAX_LISTED: i64 = 2 * MAX_ACCOUNTS as i64;
/// Random bytes of a session's secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// Why a log-in was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum LogInError {
    /// The name or the password is wrong, or the account is disabled: an answer that tells these apart would help guessers.
    #[error("the name or the password is wrong, or the account is disabled")]
    Wrong,
    /// Many people log in.
    #[error(transparent)]
    Busy(#[from] TooManyHashes),
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] OperationError),
}

impl From<StoreError> for LogInError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// A session that has begun.
#[derive(Clone, PartialEq, Eq)]
pub struct StartedSession {
    /// Its secret, which is stored nowhere.
    pub secret: String,
    /// When it ends in any case.
    pub expires_at: DateTime<Utc>,
}

/// Creates an account.
///
/// # Errors
///
/// [`InvalidRequest`]: the name or the password is not possible; [`Conflict`]: the name is taken, or there are too many accounts.
pub async fn create(
    store: &Store,
    name: &str,
    grant: impl Into<Grant>,
    password: &Password,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    let grant = &grant.into();
    check(name, password)?;
    check_grant(grant)?;
    let hash = hash(password).await?;
    let account = NewAccount { name, password_hash: &hash, grant };
    created(name, accounts::create(store, &account, actor.because(reason), None).await?)
}

/// Creates the first account, an admin, if there is none yet.
///
/// # Errors
///
/// As [`create`]; [`Conflict`]: there is an account already.
pub async fn create_first(
    store: &Store,
    name: &str,
    password: &Password,
    actor: &Actor,
) -> Result<(), OperationError> {
    check(name, password)?;
    let hash = hash(password).await?;
    let account = NewAccount { name, password_hash: &hash, grant: &Role::Admin.into() };
    created(name, accounts::create_first(store, &account, actor.because(None), None).await?)
}

/// Everything that is wrong, at once.
fn check(name: &str, password: &Password) -> Result<(), OperationError> {
    let shape = "is no name of an account; write lower-case letters, digits, dots, hyphens and underscores, at most 63";
    let name =
        (!is_token_name(name)).then(|| InvalidRequest::field("name", format!("{name:?} {shape}")));
    let mut problems: Vec<_> = [name, password.check().err()].into_iter().flatten().collect();
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0).into()),
        _ => {
            let all = problems.into_iter().map(OperationError::Invalid).collect();
            Err(InvalidRequest::Several(all).into())
        }
    }
}

/// Why an account does not become an admin.
const ADMIN: &str = "an admin cannot be restricted to jobs; say that the account may change all jobs, or take the role editor";

fn check_grant(grant: &Grant) -> Result<(), InvalidRequest> {
    grant.check().map_err(|problem| InvalidRequest::field("only_jobs", problem))
}

fn created(name: &str, outcome: AccountCreation) -> Result<(), OperationError> {
    let refused = match outcome {
        AccountCreation::Created => return Ok(()),
        AccountCreation::NameTaken => {
            format!(
                "there is an account {name:?} already, perhaps a disabled one; take another name"
            )
        }
        AccountCreation::TooMany => too_many(),
        AccountCreation::NotFirst => "there is an account already; log in with it".to_owned(),
    };
    Err(Conflict::Other(refused).into())
}

fn too_many() -> String {
    format!("there are {MAX_ACCOUNTS} accounts already; disable one that nobody uses")
}

/// Lists accounts: those that are enabled by name, and then the others.
///
/// # Errors
///
/// Those of the database.
pub async fn list(store: &Store) -> Result<Vec<Account>, OperationError> {
    Ok(accounts::list(store, MAX_LISTED).await?)
}

/// Returns whether there is any account, a disabled one among them.
///
/// # Errors
///
/// Those of the database.
pub async fn is_any(store: &Store) -> Result<bool, OperationError> {
    Ok(accounts::is_any(store).await?)
}

/// Gives an account another password. Returns how many sessions that ended.
///
/// # Errors
///
/// [`InvalidRequest`]: the password is not possible; [`NotFound::Account`].
pub async fn set_password(
    store: &Store,
    name: &str,
    password: &Password,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<u64, OperationError> {
    let hash = hash(password).await?;
    change(store, name, AccountChange::Password(&hash), actor, reason).await
}

/// Gives an account another role, or restricts it to other jobs. Returns how many sessions that ended.
///
/// # Errors
///
/// [`InvalidRequest`]: an admin would be restricted; [`NotFound::Account`]; [`Conflict`]: it is so, or it may do something
/// else than the person saw.
pub async fn set_role(
    store: &Store,
    name: &str,
    (role, only_jobs): (Role, &ScopeChange),
    actor: &Actor,
    reason: Option<&str>,
) -> Result<u64, OperationError> {
    change(store, name, AccountChange::Role(role, only_jobs), actor, reason).await
}

/// Lets nobody log in with an account any more. Returns how many sessions that ended.
///
/// # Errors
///
/// [`NotFound::Account`]; [`Conflict`]: it is disabled.
pub async fn disable(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<u64, OperationError> {
    change(store, name, AccountChange::Disable, actor, reason).await
}

/// Lets people log in with an account again.
///
/// # Errors
///
/// [`NotFound::Account`]; [`Conflict`]: it is enabled, or there are too many accounts.
pub async fn enable(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    let outcome = accounts::enable(store, name, actor.because(reason), None).await?;
    changed(name, outcome, "is enabled").map(drop)
}

async fn change(
    store: &Store,
    name: &str,
    change: AccountChange<'_>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<u64, OperationError> {
    let state = match change {
        AccountChange::Role(role, _) => {
            format!("has the role {} for the same jobs already", role.as_str())
        }
        AccountChange::Password(_) | AccountChange::Disable => "is disabled already".to_owned(),
    };
    let outcome = accounts::change(store, name, change, actor.because(reason), None).await?;
    changed(name, outcome, &state)
}

fn changed(name: &str, outcome: ChangeOutcome, state: &str) -> Result<u64, OperationError> {
    match outcome {
        ChangeOutcome::Changed { ended_sessions } => Ok(ended_sessions),
        ChangeOutcome::Unchanged => {
            Err(Conflict::Other(format!("the account {name:?} {state}")).into())
        }
        ChangeOutcome::NotFound => Err(NotFound::Account(name.to_owned()).into()),
        ChangeOutcome::TooMany => Err(Conflict::Other(too_many()).into()),
        ChangeOutcome::RestrictedAdmin => Err(InvalidRequest::field("only_jobs", ADMIN).into()),
        ChangeOutcome::GrantChanged => Err(Conflict::Other(format!(
            "somebody has changed what the account {name:?} may do since you saw it; look at it again"
        ))
        .into()),
    }
}

/// Logs in: starts a session if the password is the account's. The reads go to `reads`. `place` is where the person is, for the audit.
///
/// # Errors
///
/// [`LogInError`]; nothing was written.
pub async fn log_in(
    reads: &Store,
    writes: &Store,
    name: &str,
    password: &Password,
    place: &str,
) -> Result<StartedSession, LogInError> {
    // A text that can be no name is compared all the same.
    let known =
        if is_token_name(name) { accounts::read_password_hash(reads, name).await? } else { None };
    let is_right = is_right(password, known.as_deref()).await?;
    let Some(password_hash) = known.filter(|_| is_right) else { return Err(LogInError::Wrong) };
    let started = start_session(&writes.from_place(place), name, &password_hash).await?;
    started.ok_or(LogInError::Wrong)
}

/// Starts a session of the account whose password has this hash; `None`: it was disabled, or has another one, since.
async fn start_session(
    store: &Store,
    account: &str,
    password_hash: &str,
) -> Result<Option<StartedSession>, OperationError> {
    let secret = secret_text::random_text::<SECRET_BYTES>()?;
    let secret_hash = secret_text::hash(&secret);
    let new = NewSession { secret_hash: &secret_hash, account, password_hash };
    let actor = actor_name(account);
    let by = sexton_store::operator::AuditContext { actor: &actor, reason: None };
    let started = sessions::start(store, &new, by, None).await?;
    Ok(started.map(|expires_at| StartedSession { secret, expires_at }))
}

/// Gives an account another password, for the person who knows the current one. That ends all its sessions, and starts a new one. A crash
/// in between leaves the new password, and no session.
///
/// # Errors
///
/// [`LogInError::Wrong`]: the current one is wrong; [`LogInError::Failed`]: the new one is not possible, or the database does not answer; it
/// says so if the password has changed nevertheless.
pub async fn replace_password(
    reads: &Store,
    writes: &Store,
    name: &str,
    (current, new): (&Password, &Password),
    actor: &Actor,
) -> Result<StartedSession, LogInError> {
    new.check().map_err(OperationError::from)?;
    let known = accounts::read_password_hash(reads, name).await?;
    let is_right = is_right(current, known.as_deref()).await?;
    let Some(seen) = known.filter(|_| is_right) else { return Err(LogInError::Wrong) };
    let hash = hash(new).await?;
    let by = actor.because(None);
    match accounts::replace_password(writes, name, &seen, &hash, by, None).await? {
        ChangeOutcome::Changed { .. } => {}
        _ => return Err(LogInError::Wrong),
    }
    let started = start_session(writes, name, &hash).await.ok().flatten();
    let text = "the password has changed, and all sessions have ended; log in with the new one";
    started.ok_or_else(|| OperationError::Failed(text.to_owned()).into())
}

/// The name in the audit of what is done with an account.
pub fn actor_name(account: &str) -> String {
    ActorKind::Account.actor(account)
}

/// Returns whom a session belongs to; `None`: it is not accepted. Its use is recorded beside, by `writes`, and nobody waits for that.
///
/// # Errors
///
/// Those of the database.
pub async fn accept_session(
    store: &Store,
    writes: &Store,
    secret: &str,
) -> Result<Option<AcceptedSession>, StoreError> {
    let hash = secret_text::hash(secret);
    let accepted = sessions::accept(store, &hash, None).await?;
    if accepted.as_ref().is_some_and(|session| session.is_use_new) {
        let writes = writes.clone();
        tokio::spawn(async move {
            // The next request records it if this does not.
            let _ = sessions::record_use(&writes, &hash, None).await;
        });
    }
    Ok(accepted)
}

/// Ends all sessions of somebody whom the audit knows as `name`: `account NAME` or `oidc NAME`. Returns how many. Who may log in can do
/// so again.
///
/// # Errors
///
/// [`InvalidRequest`]: that is the name of neither; [`Conflict`]: no session of that name is going on, so perhaps it is misspelt.
pub async fn end_sessions(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<u64, OperationError> {
    let owner = match ActorKind::split(name) {
        (Some(ActorKind::Account), account) => SessionOwner::Account(account),
        (Some(ActorKind::Oidc), person) => SessionOwner::Person(person),
        _ => {
            let shape = "has no sessions; write `account NAME` or `oidc NAME`, as in the audit";
            return Err(InvalidRequest::field("name", format!("{name:?} {shape}")).into());
        }
    };
    match sessions::end_all(store, owner, actor.because(reason), None).await? {
        0 => Err(Conflict::Other(format!("no session of {name} is going on")).into()),
        ended => Ok(ended),
    }
}

/// Ends a session, if it was going on.
///
/// # Errors
///
/// Those of the database.
pub async fn end_session(store: &Store, secret: &str) -> Result<(), StoreError> {
    sessions::end(store, &secret_text::hash(secret), None).await.map(drop)
}
