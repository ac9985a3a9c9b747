//! Log-in by an OpenID provider: the authorization code flow with PKCE.
//!
//! The browser goes to the provider with a state, and comes back with it and a code. Only the browser that began has the cookie that
//! belongs to the state, so nobody can log somebody else in as himself.

mod concurrency_limit;
mod pending_log_in;

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Utc};
use sexton_model::access::VOUCHED_SESSION_LIFETIME;
use sexton_model::network::limited_unit;
use sexton_model::oidc::{ProviderSettings, shortened};
use sexton_operations::accounts::AcceptedSession;
use sexton_operations::persons;
use sexton_outbound::http::{HttpClient, Url};
use sexton_outbound::oidc::{Challenge, IdentityProvider, ProviderError, Return, error_word};
use sexton_store::status;
use tokio::time::Instant;

use self::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
use self::pending_log_in::{LIFETIME, PendingLogIn};
use super::Backend;
use super::client::Client;
use super::cookie::{CookieNames, SetCookie};
use super::{identify, same_origin, session};
use crate::problem::{Problem, ProblemCode, retry_seconds};
use crate::rate_limit::RateLimit;

/// Where the provider sends people back, below the address of the console.
pub const CALLBACK_PATH: &str = "/log-in/oidc/callback";

const COOKIE: CookieNames = CookieNames { secure: "__Host-sexton_log_in", plain: "sexton_log_in" };
/// Callbacks from one address in a quarter of an hour that log nobody in; each costs a query, and perhaps requests to the provider.
const ATTEMPTS: u32 = 100;
const ATTEMPTS_PERIOD: Duration = Duration::from_mins(15);
/// How long a state is remembered as used: longer than its cookie is valid, which another clock may have dated a minute ahead.
const USED_STATE_PERIOD: Duration = Duration::from_mins(12);

/// A provider, and what this process remembers of its log-ins.
#[derive(Debug)]
pub struct ProviderLogIn {
    provider: IdentityProvider,
    binding: [u8; 32],
    concurrency: ConcurrencyLimit,
    attempts: RateLimit,
    /// States that came back: each is accepted once.
    used_states: RateLimit,
}

/// The answer of the provider, as the browser brings it.
#[derive(Clone, Copy, Debug)]
pub struct Callback<'a> {
    /// The state; empty: it is missing.
    pub state: &'a str,
    /// The code; empty: it is missing.
    pub code: &'a str,
    /// Why there is no code; empty: nothing was wrong.
    pub error: &'a str,
    /// The issuer, if the provider says it (RFC 9207); empty: it does not.
    pub issuer: &'a str,
}

/// Why nobody is logged in. The texts are for the person.
#[derive(Debug, thiserror::Error)]
pub enum ProviderRefusal {
    /// The settings name no provider.
    #[error("there is no log-in by an identity provider here; log in with an account")]
    Off,
    /// It was begun elsewhere, or long ago, or it is over.
    #[error(
        "this browser has begun no such log-in, or it took longer than 10 minutes, or it is over; log in again"
    )]
    NotBegun,
    /// Somebody is logged in already, and a page of another site would make it somebody else.
    #[error(
        "you are logged in, and a page of another site has led here; to log in as somebody else, log out first"
    )]
    OtherSite,
    /// The provider has not logged the person in.
    #[error("the identity provider has not logged you in ({0}); log in again, or with an account")]
    Denied(String),
    /// There were too many failed ones.
    #[error("there were too many failed attempts; try again in {} s", retry_seconds(*.0))]
    TooMany(Duration),
    /// The provider.
    #[error("{0}")]
    Provider(#[from] ProviderError),
    /// Anything else.
    #[error("{}", .0.detail)]
    Failed(Problem),
}

impl From<Problem> for ProviderRefusal {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
    }
}

impl From<ProviderRefusal> for Problem {
    fn from(refusal: ProviderRefusal) -> Self {
        let text = refusal.to_string();
        let forbidden = |text| Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, text);
        match refusal {
            ProviderRefusal::Off => Self::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, text),
            ProviderRefusal::TooMany(wait) => Self::rate_limited(text, wait),
            ProviderRefusal::Provider(ProviderError::Unavailable(_)) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Unavailable, text)
            }
            ProviderRefusal::NotBegun
            | ProviderRefusal::OtherSite
            | ProviderRefusal::Denied(_)
            | ProviderRefusal::Provider(_) => forbidden(text),
            ProviderRefusal::Failed(problem) => problem,
        }
    }
}

impl ProviderRefusal {
    /// Whether the log-in of the browser's cookie is over. Another page, or another site, may have sent a state that belongs to none.
    pub const fn ends_log_in(&self) -> bool {
        !matches!(self, Self::Off | Self::NotBegun | Self::OtherSite)
    }
}

impl ProviderLogIn {
    /// Makes the log-in of a provider of its settings.
    pub fn new(settings: ProviderSettings, client: HttpClient) -> Self {
        Self {
            binding: settings.binding(),
            concurrency: ConcurrencyLimit::default(),
            provider: IdentityProvider::new(settings, client),
            attempts: RateLimit::new(ATTEMPTS, ATTEMPTS_PERIOD, ATTEMPTS),
            used_states: RateLimit::new(1, USED_STATE_PERIOD, 1),
        }
    }

    /// The provider's host, for people.
    pub fn host(&self) -> &str {
        self.provider.settings().issuer.host()
    }

    /// Returns whether the session of a person began by the settings of now.
    pub(super) fn is_bound(&self, session: &AcceptedSession) -> bool {
        session.provider_hash.as_deref() == Some(&self.binding)
    }

    fn permit(&self, client: &Client) -> Result<ConcurrencyPermit, Problem> {
        let permit = self.concurrency.take(client.address);
        permit.ok_or_else(|| Problem::unavailable("too many people log in at the same time"))
    }

    /// An address of the console, as browsers reach it.
    pub fn public_url(&self, path: &str) -> String {
        format!("{}{path}", self.provider.settings().public_url.as_str().trim_end_matches('/'))
    }
}

/// Begins a log-in: returns the cookie that ties it to this browser, and the address at the provider to which the browser goes.
///
/// `base` stands before every path; `next` is the address to which the person goes after the log-in.
///
/// # Errors
///
/// [`ProviderRefusal`].
pub async fn begin_log_in(
    backend: &Backend,
    client: &Client,
    headers: &HeaderMap,
    (base, next): (&str, &str),
) -> Result<(SetCookie, Url), ProviderRefusal> {
    let log_in = backend.provider().ok_or(ProviderRefusal::Off)?;
    let _permit = log_in.permit(client)?;
    // The provider may log people in without a dialogue, as the person whom that page wants.
    if same_origin::refuse_other_sites(headers).is_err()
        && let Some(secret) = session::secret(headers, client)
        && identify::by_session(secret, backend).await?.is_some()
    {
        return Err(ProviderRefusal::OtherSite);
    }
    let pending = PendingLogIn::new(next, now(backend).await?).map_err(Problem::from)?;
    let challenge = Challenge {
        state: &pending.state(),
        nonce: &pending.nonce(),
        code_challenge: &pending.challenge(),
        redirect_uri: &log_in.public_url(&format!("{base}{CALLBACK_PATH}")),
    };
    let url = log_in.provider.authorization_url(&challenge).await;
    let url = url.inspect_err(|error| log(client, error))?;
    Ok((COOKIE.set(client, pending.cookie(), LIFETIME.num_seconds())?, url))
}

/// Ends a log-in: starts the session of the person whom the provider names, and ends the one that the browser had.
///
/// Returns the cookie of the new session, and the address to which the person wanted to go, which the caller checks.
///
/// # Errors
///
/// [`ProviderRefusal`]; no session has begun.
pub async fn finish_log_in(
    backend: &Backend,
    client: &Client,
    headers: &HeaderMap,
    (base, callback): (&str, Callback<'_>),
) -> Result<(SetCookie, String), ProviderRefusal> {
    let log_in = backend.provider().ok_or(ProviderRefusal::Off)?;
    let pending = COOKIE.read(headers, client).and_then(PendingLogIn::read);
    let pending = pending.filter(|pending| pending.state() == callback.state);
    let pending = pending.ok_or(ProviderRefusal::NotBegun)?;
    let settings = log_in.provider.settings();
    if !callback.issuer.is_empty() && callback.issuer != settings.issuer.as_str() {
        return Err(ProviderRefusal::NotBegun);
    }
    // Before the database is read: anybody can make such a cookie.
    let _permit = log_in.permit(client)?;
    let address = limited_unit(client.address);
    log_in.attempts.take(&address, Instant::now()).map_err(ProviderRefusal::TooMany)?;
    let now = now(backend).await?;
    if !pending.is_valid_at(now) {
        return Err(ProviderRefusal::NotBegun);
    }
    if log_in.used_states.take(&pending.state(), Instant::now()).is_err() {
        return Err(ProviderRefusal::NotBegun);
    }
    if !callback.error.is_empty() || callback.code.is_empty() {
        return Err(ProviderRefusal::Denied(error_word(callback.error)));
    }
    let returned = Return {
        code: callback.code,
        nonce: &pending.nonce(),
        verifier: &pending.verifier(),
        redirect_uri: &log_in.public_url(&format!("{base}{CALLBACK_PATH}")),
    };
    let person = log_in.provider.person(&returned, now).await;
    let person = person.inspect_err(|error| log(client, error))?;
    log_in.attempts.give_back(&address);
    let place = format!("console {}", client.address);
    let by = (settings.issuer.as_str(), &log_in.binding);
    let writes = &backend.stores.writes;
    let started = persons::log_in(writes, &person, by, &place).await.map_err(Problem::from)?;
    session::end_earlier(backend, client, headers).await;
    let max_age = VOUCHED_SESSION_LIFETIME.num_seconds();
    Ok((session::COOKIE.set(client, &started.secret, max_age)?, pending.next().to_owned()))
}

/// Removes the cookie of a log-in that is over.
///
/// # Errors
///
/// [`Problem`]: never in practice.
pub fn forget(client: &Client) -> Result<SetCookie, Problem> {
    COOKIE.set(client, "", 0)
}

/// The database's time, by which all servers judge alike.
async fn now(backend: &Backend) -> Result<DateTime<Utc>, Problem> {
    let _permit = backend.lookup_permit()?;
    Ok(status::clock(&backend.stores.callers).await?)
}

/// Logs a failure, of the person only the id: by it an admin finds the person at the provider.
fn log(client: &Client, error: &ProviderError) {
    let address = client.address;
    match error {
        ProviderError::NoPerson { why, subject } => {
            let (kind, subject) = (why.kind(), shortened(subject));
            tracing::warn!(
                client.address = %address, refusal.kind = kind, person.subject = subject,
                "a log-in by the identity provider failed: {kind}, for the subject {subject:?}"
            );
        }
        error => {
            tracing::warn!(client.address = %address, "a log-in by the identity provider failed: {error}");
        }
    }
}
