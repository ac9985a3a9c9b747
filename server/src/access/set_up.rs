//! The first account: while there is none, a code in the server's log lets one person create it.
//!
//! The code is in this process's memory alone. It ends with the first account, however that comes to be, after an hour, and with the
//! process; `sexton accounts create` on the command line needs none.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_operations::accounts;
use sexton_operations::actor::Actor;
use sexton_operations::error::OperationError;
use sexton_operations::passwords::Password;
use tokio::time::Instant;

use super::Backend;
use super::client::Client;
use super::session::LogInRefusal;
use crate::problem::Problem;

/// How long the code is accepted: logs are read by more people than should become admins later.
pub const CODE_LIFETIME: Duration = Duration::from_hours(1);
/// The name in the audit of the person with the code, and among failed attempts; no account can have it.
const ACTOR: &str = "first set-up";

/// The code, if there is one.
#[derive(Debug, Default)]
pub(super) struct SetUpCode(Mutex<Option<(Password, Instant)>>);

impl SetUpCode {
    fn set(&self, code: Option<(Password, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = code;
    }

    /// Whether there is a code; `with`: whether it is this one.
    fn is_open(&self, with: Option<&Password>) -> bool {
        let code = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = code.as_ref().filter(|(_, until)| Instant::now() < *until);
        // The time of a comparison shows the beginning of a code of 144 random bits at best; the attempts are limited.
        current.is_some_and(|(code, _)| with.is_none_or(|with| with == code))
    }
}

/// Why no first account was created. The texts are for the person at the page.
#[derive(Debug, thiserror::Error)]
pub enum SetUpRefusal {
    /// There is an account, or the code is over.
    #[error(
        "the set-up is over: log in, or run `sexton accounts create NAME --role admin` where the database is reached; a server \
         that starts without any account logs another code"
    )]
    Over,
    /// The code is not the one of this process's log.
    #[error("the code is wrong; the newest is in the log of this server, from its start")]
    WrongCode,
    /// The request is refused as a log-in would be.
    #[error(transparent)]
    LogIn(#[from] LogInRefusal),
    /// The name or the password is not possible, or the database does not answer.
    #[error("{}", .0.detail)]
    Failed(Problem),
}

impl From<OperationError> for SetUpRefusal {
    fn from(error: OperationError) -> Self {
        Self::Failed(error.into())
    }
}

/// Opens the set-up if there is no account, and returns its code for the log; `None`: there is an account.
///
/// # Errors
///
/// The database does not answer.
pub async fn open(backend: &Backend) -> Result<Option<String>, OperationError> {
    if accounts::is_any(&backend.stores.callers).await? {
        return Ok(None);
    }
    let code = Password::generate()?;
    backend.set_up.set(Some((code.clone(), Instant::now() + CODE_LIFETIME)));
    Ok(Some(code.expose().to_owned()))
}

/// Returns whether a code would be accepted: there is no account, and the code is not over.
///
/// # Errors
///
/// The database does not answer.
pub async fn is_open(backend: &Backend) -> Result<bool, OperationError> {
    if !backend.set_up.is_open(None) {
        return Ok(false);
    }
    if accounts::is_any(&backend.stores.callers).await? {
        backend.set_up.set(None);
        return Ok(false);
    }
    Ok(true)
}

/// Creates the first account, an admin. The caller has checked that no page of another site sends this.
///
/// # Errors
///
/// [`SetUpRefusal`]; nothing was created.
pub async fn create_admin(
    backend: &Backend,
    client: &Client,
    code: &str,
    name: &str,
    password: &Password,
) -> Result<(), SetUpRefusal> {
    if !client.may_send_passwords() {
        return Err(LogInRefusal::NotSecure.into());
    }
    if !is_open(backend).await? {
        return Err(SetUpRefusal::Over);
    }
    let attempts = backend.attempts();
    attempts.take_permits(ACTOR, client.address, Instant::now()).map_err(LogInRefusal::TooMany)?;
    if !backend.set_up.is_open(Some(&Password::new(code.trim().to_owned()))) {
        tracing::warn!(client.address = %client.address, "a set-up with a wrong code was refused");
        return Err(SetUpRefusal::WrongCode);
    }
    attempts.forgive(ACTOR, client.address);
    let origin = format!("console {}", client.address);
    let actor = Actor {
        name: ACTOR.to_owned(),
        host: backend.host.to_string(),
        process_id: std::process::id(),
        origin: Some(origin.clone()),
        is_interactive: true,
    };
    let store = backend.stores.writes.from_place(&origin);
    accounts::create_first(&store, name, password, &actor).await?;
    backend.set_up.set(None);
    tracing::info!(account = name, "the first account was created; the set-up is over");
    Ok(())
}
