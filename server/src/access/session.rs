//! Sessions of people who have logged in, by a cookie, and the log-in with an account.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use sexton_model::access::SESSION_LIFETIME;
use sexton_operations::accounts::{self, LogInError, StartedSession};
use sexton_operations::passwords::Password;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::client::Client;
use super::cookie::CookieNames;
use super::{Allowed, Backend};
use crate::problem::{Problem, ProblemCode, retry_seconds};

pub use super::cookie::SetCookie;

/// The cookie by HTTPS.
pub const SECURE_COOKIE: &str = "__Host-sexton_session";

/// The cookie of a session.
pub(super) const COOKIE: CookieNames =
    CookieNames { secure: SECURE_COOKIE, plain: "sexton_session" };

/// Log-ins at the same time; more are refused. Their reads share the connections by which everybody else is known.
static LOG_INS: Semaphore = Semaphore::const_new(16);

/// Why a log-in was refused or failed. The texts are for the person who logs in.
#[derive(Debug, thiserror::Error)]
pub enum LogInRefusal {
    /// The name or the password is wrong, or the account is disabled.
    #[error("the name or the password is wrong, or the account is disabled")]
    Wrong,
    /// There were too many wrong ones.
    #[error("there were too many failed attempts; try again in {} s", retry_seconds(*.0))]
    TooMany(Duration),
    /// Somebody on the way could read the password.
    #[error(
        "a log-in needs HTTPS, or http://localhost on the server's machine; behind a proxy with TLS set SERVE_TRUSTED_PROXIES \
         to its address, or SERVE_BEHIND_TLS=true"
    )]
    NotSecure,
    /// Anything else.
    #[error("{}", .0.detail)]
    Failed(Problem),
}

impl From<LogInRefusal> for Problem {
    fn from(refusal: LogInRefusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            LogInRefusal::Wrong => Self::unauthenticated(&text),
            LogInRefusal::TooMany(wait) => Self::rate_limited(text, wait),
            LogInRefusal::NotSecure => {
                Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, text)
            }
            LogInRefusal::Failed(problem) => problem,
        }
    }
}

/// Logs in with an account, and ends the session that the browser had. The caller has checked that no page of another site sends this
/// ([`super::same_origin::refuse_other_sites`]).
///
/// # Errors
///
/// [`LogInRefusal`].
pub async fn log_in(
    backend: &Backend,
    client: &Client,
    headers: &HeaderMap,
    (name, password): (&str, &Password),
) -> Result<SetCookie, LogInRefusal> {
    if !client.may_send_passwords() {
        return Err(LogInRefusal::NotSecure);
    }
    let Ok(_place) = LOG_INS.try_acquire() else {
        let detail = "too many people log in at the same time";
        return Err(LogInRefusal::Failed(Problem::unavailable(detail)));
    };
    let attempts = backend.attempts();
    attempts.take_permits(name, client.address, Instant::now()).map_err(LogInRefusal::TooMany)?;
    let place = format!("console {}", client.address);
    let stores = &backend.stores;
    let started = accounts::log_in(&stores.callers, &stores.writes, name, password, &place).await;
    if !matches!(started, Err(LogInError::Wrong)) {
        attempts.forgive(name, client.address);
    }
    if matches!(started, Err(LogInError::Wrong)) {
        // Without the name, which may be a password that was typed into the wrong field.
        tracing::warn!(client.address = %client.address, "a log-in failed");
    }
    let cookie = session_cookie(client, &started.map_err(refusal)?)?;
    end_earlier(backend, client, headers).await;
    Ok(cookie)
}

/// Ends the session that the browser had before it began another one. Where that fails it ends by its age.
pub(super) async fn end_earlier(backend: &Backend, client: &Client, headers: &HeaderMap) {
    let Some(secret) = secret(headers, client) else { return };
    if let Err(error) = accounts::end_session(&backend.stores.writes, secret).await {
        tracing::warn!("an earlier session of a browser could not be ended: {error}");
    }
}

fn session_cookie(client: &Client, started: &StartedSession) -> Result<SetCookie, LogInRefusal> {
    COOKIE
        .set(client, &started.secret, SESSION_LIFETIME.num_seconds())
        .map_err(LogInRefusal::Failed)
}

fn refusal(error: LogInError) -> LogInRefusal {
    match error {
        LogInError::Wrong => LogInRefusal::Wrong,
        LogInError::Busy(busy) => LogInRefusal::Failed(Problem::unavailable(busy.to_string())),
        LogInError::Failed(error) => LogInRefusal::Failed(error.into()),
    }
}

/// Gives the account of a session another password, which ends all its sessions, and logs in with it.
///
/// # Errors
///
/// [`LogInRefusal`]; [`LogInRefusal::Wrong`]: the current password is wrong.
pub async fn replace_password<P>(
    allowed: &Allowed<P>,
    client: &Client,
    current: &Password,
    new: &Password,
) -> Result<SetCookie, LogInRefusal> {
    let (backend, actor) = (&allowed.backend, allowed.actor());
    let Some(name) = allowed.caller().account.as_deref() else {
        let detail = format!("{} has no password that could change", actor.name);
        let problem = Problem::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail);
        return Err(LogInRefusal::Failed(problem));
    };
    let attempts = backend.attempts();
    attempts.take_permits(name, client.address, Instant::now()).map_err(LogInRefusal::TooMany)?;
    let (callers, writes) = (&backend.stores.callers, allowed.writes());
    let replaced = accounts::replace_password(callers, &writes, name, (current, new), actor).await;
    if !matches!(replaced, Err(LogInError::Wrong)) {
        attempts.forgive(name, client.address);
    }
    session_cookie(client, &replaced.map_err(refusal)?)
}

/// Ends the session of a request, if it has one, and removes its cookie.
///
/// # Errors
///
/// [`Problem`]: the database does not answer; the session goes on.
pub async fn log_out(
    backend: &Backend,
    client: &Client,
    headers: &HeaderMap,
) -> Result<SetCookie, Problem> {
    if let Some(secret) = secret(headers, client) {
        accounts::end_session(&backend.stores.writes, secret).await?;
    }
    COOKIE.set(client, "", 0)
}

/// The secret of the session that a request names by its cookie.
pub(super) fn secret<'a>(headers: &'a HeaderMap, client: &Client) -> Option<&'a str> {
    COOKIE.read(headers, client)
}
