//! A request to a provider, and its answer as JSON.

use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::PROVIDER_TIMEOUT;
use crate::http::header::ACCEPT;
use crate::http::{
    HeaderMap, HeaderValue, HttpClient, HttpError, HttpRequest, Method, ResponseHead, ResponseSink,
    StatusCode,
};

/// Largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Longest word of an error, in characters.
const MAX_ERROR_CHARS: usize = 60;

/// An answer that was read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    head: ResponseHead,
    body: Option<Value>,
}

#[derive(Default)]
struct Body(Vec<u8>);

impl ResponseSink for Body {
    fn head(&mut self, _: &ResponseHead) {}

    fn body(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

impl Answer {
    /// Returns the object of an answer 200.
    pub(super) fn ok(self) -> Result<Value, super::ProviderError> {
        let unavailable = super::ProviderError::Unavailable;
        if self.head.status != StatusCode::OK {
            return Err(unavailable(self.head.describe(None)));
        }
        let body = self.body.filter(Value::is_object);
        body.ok_or_else(|| unavailable("its answer is no JSON object".to_owned()))
    }

    /// Returns the word of a refusal (RFC 6749, 5.2).
    pub(super) fn refusal(&self) -> Option<String> {
        if ![400, 401].contains(&self.head.status.as_u16()) {
            return None;
        }
        Some(error_word(self.body.as_ref()?.get("error")?.as_str()?))
    }
}

/// Shortens the word of an error to what may be in one.
pub fn error_word(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
    text.chars().filter(is_plain).take(MAX_ERROR_CHARS).collect()
}

fn describe(error: HttpError) -> String {
    match error {
        HttpError::AddressRefused(why) => {
            format!("{why}; only the host of SERVE_OIDC_ISSUER may have such an address")
        }
        HttpError::TimedOut(limit) => late(limit),
        error => error.to_string(),
    }
}

/// Says that a limit is over.
pub(super) fn late(limit: Duration) -> String {
    format!("it takes longer than {} s", limit.as_secs())
}

/// Sends a request. Redirects are not followed.
pub(super) async fn request(
    client: &HttpClient,
    (method, url, mut headers, body): (Method, Url, HeaderMap, String),
    allows_private_addresses: bool,
) -> Result<Answer, String> {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let request = HttpRequest {
        url,
        method,
        headers,
        body,
        allows_private_addresses,
        timeout: PROVIDER_TIMEOUT,
        max_body_bytes: MAX_ANSWER_BYTES,
    };
    let mut body = Body::default();
    let response = client.send(request, &mut body).await.map_err(describe)?;
    if response.is_truncated {
        return Err(format!("its answer is longer than {} KiB", MAX_ANSWER_BYTES / 1024));
    }
    Ok(Answer { head: response.head, body: serde_json::from_slice(&body.0).ok() })
}
