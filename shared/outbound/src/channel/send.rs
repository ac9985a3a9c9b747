//! Sends a delivery to its channel, within a time limit.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::channel::{ChannelSettings, Email, PAGERDUTY_URL};
use sexton_model::notification::Message;
use sexton_model::target_url::{http_url, smtp_server};
use sexton_tls::TlsClient;
use tokio::time::timeout;
use url::Url;

use super::text::cut;
use super::{Delivery, alertmanager, email, pagerduty, slack, webhook};
use crate::http::header::{AUTHORIZATION, CONTENT_TYPE};
use crate::http::{
    HeaderMap, HeaderValue, HttpClient, HttpError, HttpRequest, Method, ResponseHead,
    ResponseMeaning, ResponseSink,
};
use crate::mail::{Login, MailClient, MailError};
use crate::secret::{Secret, SecretMissing, SecretRef, SecretSource};

/// Time limit of one sending.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 4_096;
/// Longest description of a failure, in characters.
const MAX_ERROR_CHARS: usize = 500;

/// Why a delivery was not accepted, as far as its sender knows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// In words, without a secret.
    pub message: String,
    /// Whether the same delivery cannot succeed unless somebody changes something.
    pub is_refused: bool,
    /// The shortest wait, if the receiver named one.
    pub retry_after: Option<Duration>,
}

impl SendError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_refused: false, retry_after: None }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { is_refused: true, ..Self::new(message) }
    }
}

impl From<SecretMissing> for SendError {
    fn from(missing: SecretMissing) -> Self {
        Self::new(missing.to_string())
    }
}

/// Sends deliveries. Clones share the roots and the secrets.
#[derive(Clone)]
pub struct Sender {
    secrets: SecretSource,
    tls: TlsClient,
    limit: Duration,
}

impl Sender {
    /// Creates a sender that reads secrets from `secrets` and trusts the roots of `tls`.
    pub const fn new(secrets: SecretSource, tls: TlsClient) -> Self {
        Self { secrets, tls, limit: SEND_TIMEOUT }
    }

    /// Sets another time limit than [`SEND_TIMEOUT`].
    #[must_use]
    pub const fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the secrets of a channel that cannot be read here.
    pub async fn missing_secrets(&self, settings: &ChannelSettings) -> Vec<SecretMissing> {
        let mut missing = Vec::new();
        for reference in settings.secrets() {
            missing.extend(self.secrets.read(reference).await.err());
        }
        missing
    }

    /// Sends a delivery; `now` is the instant of the try.
    ///
    /// # Errors
    ///
    /// [`SendError`]. The receiver may have the delivery all the same; it recognises a repetition by the id.
    ///
    /// # Cancellation
    ///
    /// Dropping the future closes the connection.
    pub async fn send(
        &self,
        settings: &ChannelSettings,
        delivery: &Delivery,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let mut known = Vec::new();
        let sent = self.limited(self.send_unlimited(settings, delivery, now, &mut known)).await;
        Self::without_secrets(sent, &known)
    }

    /// Gives up what takes longer than the time limit.
    pub(crate) async fn limited(
        &self,
        sending: impl Future<Output = Result<(), SendError>>,
    ) -> Result<(), SendError> {
        let seconds = self.limit.as_secs_f64();
        timeout(self.limit, sending).await.unwrap_or_else(|_| {
            Err(SendError::new(format!("the receiver did not accept it within {seconds} s")))
        })
    }

    /// Takes secrets out of a failure's description.
    pub(crate) fn without_secrets(
        sent: Result<(), SendError>,
        known: &[Secret],
    ) -> Result<(), SendError> {
        sent.map_err(|error| SendError { message: masked(&error.message, known), ..error })
    }

    /// Makes a request.
    pub(crate) fn post(
        &self,
        content_type: &'static str,
        url: Url,
        body: String,
        allow_private: bool,
    ) -> HttpRequest {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        HttpRequest {
            url,
            method: Method::POST,
            headers,
            body,
            allows_private_addresses: allow_private,
            timeout: self.limit,
            max_body_bytes: MAX_ANSWER_BYTES,
        }
    }

    async fn send_unlimited(
        &self,
        settings: &ChannelSettings,
        delivery: &Delivery,
        now: DateTime<Utc>,
        known: &mut Vec<Secret>,
    ) -> Result<(), SendError> {
        let mut headers = HeaderMap::new();
        let (url, body, allow_private) = match settings {
            ChannelSettings::Webhook(settings) => {
                let body = webhook::body(delivery).to_string();
                let secret = self.read(settings.secret.as_ref(), known).await?;
                sign(&mut headers, delivery, secret.as_deref(), &body, now)?;
                (settings.url.clone(), body, settings.allow_private)
            }
            ChannelSettings::Email(settings) => {
                let password = self.read(settings.password.as_ref(), known).await?;
                return self.mail(settings, delivery, password, now).await;
            }
            ChannelSettings::Slack(settings) => {
                let url = self.read(Some(&settings.url), known).await?.unwrap_or_default();
                (url, slack::body(delivery).to_string(), settings.allow_private)
            }
            ChannelSettings::Pagerduty(settings) => {
                let key = self.read(Some(&settings.routing_key), known).await?.unwrap_or_default();
                let message = only(delivery)?;
                let url = settings.url.clone().unwrap_or_else(|| PAGERDUTY_URL.to_owned());
                (url, pagerduty::body(message, &key).to_string(), settings.allow_private)
            }
            ChannelSettings::Alertmanager(settings) => {
                if let Some(value) = self.read(settings.authorization.as_ref(), known).await? {
                    let value = HeaderValue::from_str(&value).map_err(|_| {
                        SendError::refused("the secret of `authorization` is no header's value")
                    })?;
                    headers.insert(AUTHORIZATION, value);
                }
                let url = format!("{}/api/v2/alerts", settings.url.trim_end_matches('/'));
                let body = alertmanager::body(delivery.messages()).to_string();
                (url, body, settings.allow_private)
            }
        };
        let url = http_url(url.trim())
            // A parser's message may repeat a part of the URL, which may be a secret.
            .map_err(|_| SendError::refused("the channel's URL is none of an HTTP server"))?;
        let mut request = self.post("application/json", url, body, allow_private);
        request.headers.extend(headers);
        self.request(request, now).await
    }

    /// Reads a secret, and remembers it for masking.
    pub(crate) async fn read(
        &self,
        reference: Option<&SecretRef>,
        known: &mut Vec<Secret>,
    ) -> Result<Option<String>, SendError> {
        let Some(reference) = reference else { return Ok(None) };
        let secret = self.secrets.read(reference).await?;
        let text = secret.expose().to_owned();
        known.push(secret);
        Ok(Some(text))
    }

    /// Sends a request, and judges the answer.
    pub(crate) async fn request(
        &self,
        request: HttpRequest,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let mut answer = Answer::default();
        let response = HttpClient::new(self.tls.clone()).send(request, &mut answer).await;
        let head = response.map_err(|error| match error {
            HttpError::AddressRefused(message) => {
                let message = format!("{message}; allow_private = true permits it");
                SendError::refused(message)
            }
            error => SendError::new(error.to_string()),
        })?;
        let message = head.head.describe(answer.first_line().as_deref());
        match head.head.meaning(now) {
            ResponseMeaning::Accepted => Ok(()),
            ResponseMeaning::RetryLater { after } => {
                Err(SendError { retry_after: after, ..SendError::new(message) })
            }
            ResponseMeaning::Rejected => Err(SendError::refused(message)),
        }
    }

    async fn mail(
        &self,
        settings: &Email,
        delivery: &Delivery,
        password: Option<String>,
        now: DateTime<Utc>,
    ) -> Result<(), SendError> {
        let server = smtp_server(&settings.smtp).map_err(SendError::refused)?;
        let mail = email::compose(settings, delivery, now)
            .map_err(|invalid| SendError::refused(invalid.to_string()))?;
        let login = settings.user.clone().zip(password);
        let login = login.map(|(user, password)| Login { user, password });
        let client = MailClient::new(server, self.tls.clone());
        let accepted =
            client.send(&mail, login, self.limit).await.map_err(|error| match error {
                MailError::Refused { is_permanent: true, message, .. }
                | MailError::Unencrypted(message)
                | MailError::Unsupported(message) => SendError::refused(message),
                error => SendError::new(error.to_string()),
            })?;
        accepted.quit().await;
        Ok(())
    }
}

/// Adds the headers of Standard Webhooks.
fn sign(
    headers: &mut HeaderMap,
    delivery: &Delivery,
    secret: Option<&str>,
    body: &str,
    now: DateTime<Utc>,
) -> Result<(), SendError> {
    let (id, timestamp) = (delivery.id().to_string(), now.timestamp());
    let mut add = |name: &'static str, value: &str| {
        // Digits, hyphens and base64 are visible ASCII.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    add("webhook-id", &id);
    add("webhook-timestamp", &timestamp.to_string());
    if let Some(secret) = secret {
        let signature =
            webhook::signature(secret, &id, timestamp, body).map_err(SendError::refused)?;
        add("webhook-signature", &signature);
    }
    Ok(())
}

fn only(delivery: &Delivery) -> Result<&Message, SendError> {
    delivery.messages().first().ok_or_else(|| SendError::refused("there is nothing to send"))
}

/// Returns a text without the secrets that a receiver may have repeated, bounded.
fn masked(text: &str, known: &[Secret]) -> String {
    let text =
        known.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "…"));
    cut(&text, MAX_ERROR_CHARS)
}

/// The beginning of an answer's body.
#[derive(Default)]
struct Answer(Vec<u8>);

impl Answer {
    fn first_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl ResponseSink for Answer {
    fn head(&mut self, _: &ResponseHead) {}

    fn body(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}
