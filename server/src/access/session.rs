//! Sessions of people who have logged in with an account, by a cookie.
//!
//! The cookie's name says how it came. `__Host-` lets browsers accept it only by HTTPS, and from this very host; without HTTPS it has another
//! name, and is set only where no network carries it.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponseParts, ResponseParts};
use sexton_model::access::SESSION_LIFETIME;
use sexton_operations::accounts::{self, LogInError, StartedSession};
use sexton_operations::passwords::Password;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::client::Client;
use super::{Allowed, Backend};
use crate::problem::{Problem, ProblemCode, retry_seconds};

/// The cookie by HTTPS.
pub const SECURE_COOKIE: &str = "__Host-sexton_session";
/// The cookie by HTTP, to a name of this machine.
pub const PLAIN_COOKIE: &str = "sexton_session";

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

/// A header that sets or removes the cookie of a session. It is a part of an answer, as in `(cookie, Redirect::to("/"))`.
#[derive(Clone, PartialEq, Eq)]
pub struct SetCookie(HeaderValue);

impl IntoResponseParts for SetCookie {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.headers_mut().append(SET_COOKIE, self.0);
        Ok(parts)
    }
}

impl SetCookie {
    fn new(is_secure: bool, secret: &str, max_age: i64) -> Result<Self, Problem> {
        let (name, secure) =
            if is_secure { (SECURE_COOKIE, "; Secure") } else { (PLAIN_COOKIE, "") };
        let text =
            format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age}{secure}");
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, "no cookie")
        })?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

/// Logs in with an account. The caller has checked that no page of another site sends this
/// ([`super::same_origin::refuse_other_sites`]).
///
/// # Errors
///
/// [`LogInRefusal`].
pub async fn log_in(
    backend: &Backend,
    client: &Client,
    name: &str,
    password: &Password,
) -> Result<SetCookie, LogInRefusal> {
    if !client.may_send_passwords() {
        return Err(LogInRefusal::NotSecure);
    }
    let Ok(_place) = LOG_INS.try_acquire() else {
        let detail = "too many people log in at the same time";
        return Err(LogInRefusal::Failed(Problem::unavailable(detail)));
    };
    let attempts = backend.attempts();
    attempts.begin(name, client.address, Instant::now()).map_err(LogInRefusal::TooMany)?;
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
    begin(client, &started.map_err(refusal)?)
}

fn begin(client: &Client, started: &StartedSession) -> Result<SetCookie, LogInRefusal> {
    SetCookie::new(client.is_secure, &started.secret, SESSION_LIFETIME.num_seconds())
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
    attempts.begin(name, client.address, Instant::now()).map_err(LogInRefusal::TooMany)?;
    let (callers, writes) = (&backend.stores.callers, allowed.writes());
    let replaced = accounts::replace_password(callers, &writes, name, (current, new), actor).await;
    if !matches!(replaced, Err(LogInError::Wrong)) {
        attempts.forgive(name, client.address);
    }
    begin(client, &replaced.map_err(refusal)?)
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
    SetCookie::new(client.is_secure, "", 0)
}

/// The secret of the session that a request names by its cookie.
pub(super) fn secret<'a>(headers: &'a HeaderMap, client: &Client) -> Option<&'a str> {
    let name = if client.is_secure { SECURE_COOKIE } else { PLAIN_COOKIE };
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(found, secret)| (found == name && !secret.is_empty()).then_some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(is_secure: bool) -> Client {
        let address = [127, 0, 0, 1].into();
        Client { address, is_secure, is_to_this_machine: true, is_from_proxy: false }
    }

    #[test]
    fn only_the_cookie_that_fits_the_connection_counts() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "theme=dark; sexton_session=plain".parse().unwrap());
        headers.append(COOKIE, "__Host-sexton_session=secure;x".parse().unwrap());
        assert_eq!(secret(&headers, &client(true)), Some("secure"));
        assert_eq!(secret(&headers, &client(false)), Some("plain"));
        headers.insert(COOKIE, "sexton_session=plain; xsexton_session=other".parse().unwrap());
        assert_eq!(secret(&headers, &client(true)), None);
        headers.insert(COOKIE, "sexton_session=".parse().unwrap());
        assert_eq!(secret(&headers, &client(false)), None);
    }

    #[test]
    fn pages_and_other_sites_do_not_see_the_cookie() {
        let set = |is_secure| SetCookie::new(is_secure, "secret", 60).unwrap().0;
        assert_eq!(
            set(true),
            "__Host-sexton_session=secret; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure"
        );
        assert_eq!(set(false), "sexton_session=secret; Path=/; HttpOnly; SameSite=Lax; Max-Age=60");
        assert!(set(true).is_sensitive());
    }
}
