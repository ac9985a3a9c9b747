//! An OpenID provider: what it says about itself, the exchange of a code, and its keys.
//!
//! One request after another, each over a new connection, with a limit for the whole of it. What the provider says about itself and its keys
//! are kept for an hour. [`sexton_model::oidc`] judges what a token says; here its signature is checked.

mod answer;
mod keys;
mod metadata;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use sexton_model::oidc::{Expected, InvalidClaims, NoPerson, Person, ProviderSettings};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

pub use self::answer::error_word;
use self::keys::Keys;
use self::metadata::Metadata;
use crate::http::header::{AUTHORIZATION, CONTENT_TYPE};
use crate::http::{HeaderMap, HeaderValue, HttpClient, Method};

/// Time limit of everything that one request of a person needs of the provider.
pub const PROVIDER_TIMEOUT: Duration = Duration::from_secs(8);
/// How long it counts what the provider said about itself, and its keys.
const LIFETIME: Duration = Duration::from_hours(1);
/// How often a token that no known key has signed lets the keys be read again.
const KEYS_INTERVAL: Duration = Duration::from_mins(1);

/// Why nobody is logged in. The texts are for the person.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProviderError {
    /// It cannot be reached, or its answer is none: later it may work.
    #[error("the identity provider does not answer as it should: {0}")]
    Unavailable(String),
    /// It refuses the code: it was used already, or is too old, or the client is unknown.
    #[error(
        "the identity provider refuses the log-in ({0}); log in again, and if that stays, let an admin compare the client's settings"
    )]
    Refused(String),
    /// It vouches for something else.
    #[error("the identity provider's token is not accepted: {0}")]
    Invalid(String),
    /// It vouches for somebody who may do nothing here.
    #[error("{why}")]
    NoPerson {
        /// What is missing.
        why: NoPerson,
        /// By which the provider knows the person, at most 255 bytes.
        subject: String,
    },
}

impl From<InvalidClaims> for ProviderError {
    fn from(problem: InvalidClaims) -> Self {
        Self::Invalid(problem.to_string())
    }
}

/// What binds a log-in to the browser that began it.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// What the provider sends back with the code.
    pub state: &'a str,
    /// What it writes into the token.
    pub nonce: &'a str,
    /// SHA-256 of the verifier, as base64 for URLs (RFC 7636).
    pub code_challenge: &'a str,
    /// Where it sends the person back.
    pub redirect_uri: &'a str,
}

/// What a person came back with.
#[derive(Clone, Copy)]
pub struct Return<'a> {
    /// The provider's code.
    pub code: &'a str,
    /// [`Challenge::nonce`].
    pub nonce: &'a str,
    /// Of which the provider has the hash.
    pub verifier: &'a str,
    /// [`Challenge::redirect_uri`].
    pub redirect_uri: &'a str,
}

/// What is known of the provider for a while.
#[derive(Debug, Default)]
struct Known {
    metadata: Option<(Instant, Arc<Metadata>)>,
    keys: Option<KnownKeys>,
}

#[derive(Debug)]
struct KnownKeys {
    at: Instant,
    /// The last time that they were read, or should have been.
    tried_at: Instant,
    keys: Arc<Keys>,
}

/// An OpenID provider.
#[derive(Debug)]
pub struct IdentityProvider {
    settings: ProviderSettings,
    client: HttpClient,
    known: Mutex<Known>,
}

impl IdentityProvider {
    /// Makes it of its settings. Nothing is sent before somebody logs in.
    pub fn new(settings: ProviderSettings, client: HttpClient) -> Self {
        Self { settings, client, known: Mutex::default() }
    }

    /// Its settings.
    pub const fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// Returns the address to which a browser goes to log in.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Unavailable`].
    pub async fn authorization_url(&self, challenge: &Challenge<'_>) -> Result<Url, ProviderError> {
        let metadata = limited(self.metadata()).await?;
        let mut url = metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", challenge.redirect_uri)
            .append_pair("scope", &self.settings.scopes)
            .append_pair("state", challenge.state)
            .append_pair("nonce", challenge.nonce)
            .append_pair("code_challenge", challenge.code_challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Exchanges a code for an ID token, and returns whom it vouches for. `now` is the database's time.
    ///
    /// # Errors
    ///
    /// [`ProviderError`].
    pub async fn person(
        &self,
        returned: &Return<'_>,
        now: DateTime<Utc>,
    ) -> Result<Person, ProviderError> {
        limited(async {
            let metadata = self.metadata().await?;
            let token = self.exchange(&metadata, returned).await?;
            let token = signature::SignedToken::parse(&token).map_err(ProviderError::Invalid)?;
            let claims = match self.keys(&metadata, false).await?.verify(&token) {
                Err(_) => self.keys(&metadata, true).await?.verify(&token),
                verified => verified,
            };
            let claims = claims.map_err(|problem| ProviderError::Invalid(problem.to_string()))?;
            let expected = Expected {
                issuer: self.settings.issuer.as_str(),
                client_id: &self.settings.client_id,
                nonce: returned.nonce,
            };
            claims.check(&expected, now)?;
            let person = self.settings.roles.person(&claims, &self.settings.name_claim);
            person.map_err(|why| {
                let subject = claims.text("sub").unwrap_or_default().to_owned();
                ProviderError::NoPerson { why, subject }
            })
        })
        .await
    }

    /// What the provider says about itself, at most an hour old. Those who need it at the same time wait for one request.
    async fn metadata(&self) -> Result<Arc<Metadata>, ProviderError> {
        let mut known = self.known.lock().await;
        if let Some((at, metadata)) = &known.metadata
            && at.elapsed() < LIFETIME
        {
            return Ok(Arc::clone(metadata));
        }
        let issuer = &self.settings.issuer;
        let url = issuer.discovery_url().ok_or_else(|| unavailable("it has no address".into()))?;
        let answer = self.request(Method::GET, url, HeaderMap::new(), String::new()).await?;
        let metadata = Metadata::parse(&answer.ok()?, issuer).map_err(unavailable)?;
        let metadata = Arc::new(metadata);
        known.metadata = Some((Instant::now(), Arc::clone(&metadata)));
        Ok(metadata)
    }

    /// Its keys, at most an hour old; newer ones if none of them fitted and they were not read within a minute.
    async fn keys(
        &self,
        metadata: &Metadata,
        has_none_fitted: bool,
    ) -> Result<Arc<Keys>, ProviderError> {
        let mut known = self.known.lock().await;
        if let Some(keys) = &mut known.keys {
            let is_due = has_none_fitted && keys.tried_at.elapsed() >= KEYS_INTERVAL;
            if keys.at.elapsed() < LIFETIME && !is_due {
                return Ok(Arc::clone(&keys.keys));
            }
            keys.tried_at = Instant::now();
        }
        let url = metadata.keys_uri.clone();
        let answer = self.request(Method::GET, url, HeaderMap::new(), String::new()).await?;
        let keys = Arc::new(Keys::parse(&answer.ok()?).map_err(unavailable)?);
        let at = Instant::now();
        known.keys = Some(KnownKeys { at, tried_at: at, keys: Arc::clone(&keys) });
        Ok(keys)
    }

    /// Exchanges a code for the text of an ID token.
    async fn exchange(
        &self,
        metadata: &Metadata,
        returned: &Return<'_>,
    ) -> Result<String, ProviderError> {
        let (headers, body) = self.token_request(metadata, returned)?;
        let url = metadata.token_endpoint.clone();
        let answer = self.request(Method::POST, url, headers, body).await?;
        if let Some(code) = answer.refusal() {
            return Err(ProviderError::Refused(code));
        }
        let token =
            answer.ok()?.get("id_token").and_then(|token| token.as_str()).map(str::to_owned);
        token.ok_or_else(|| unavailable("it sends no ID token".to_owned()))
    }

    fn token_request(
        &self,
        metadata: &Metadata,
        returned: &Return<'_>,
    ) -> Result<(HeaderMap, String), ProviderError> {
        let id = &self.settings.client_id;
        let mut body = Serializer::new(String::new());
        body.append_pair("grant_type", "authorization_code")
            .append_pair("code", returned.code)
            .append_pair("redirect_uri", returned.redirect_uri)
            .append_pair("code_verifier", returned.verifier);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        match &self.settings.client_secret {
            Some(secret) if metadata.takes_secret_in_header => {
                headers.insert(AUTHORIZATION, basic(id, secret.expose())?);
            }
            Some(secret) => {
                body.append_pair("client_id", id).append_pair("client_secret", secret.expose());
            }
            None => {
                body.append_pair("client_id", id);
            }
        }
        Ok((headers, body.finish()))
    }

    async fn request(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<answer::Answer, ProviderError> {
        // The operator has chosen this host, and the provider the others.
        let is_private = self.settings.issuer.has_host_of(&url);
        answer::request(&self.client, (method, url, headers, body), is_private)
            .await
            .map_err(unavailable)
    }
}

fn unavailable(why: String) -> ProviderError {
    ProviderError::Unavailable(why)
}

async fn limited<T>(
    work: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let late = |_| Err(unavailable(answer::late(PROVIDER_TIMEOUT)));
    timeout(PROVIDER_TIMEOUT, work).await.unwrap_or_else(late)
}

/// RFC 6749, 2.3.1: both are encoded as in forms first.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, ProviderError> {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let text = STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
    let value = HeaderValue::from_str(&format!("Basic {text}"));
    let mut value = value.map_err(|_| unavailable("the client's id fits no header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
