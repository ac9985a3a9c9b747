//! Builds the HTTP request of one attempt.

use std::fmt::Write as _;
use std::time::Duration;

use sexton_model::quoting;
use sexton_outbound::http::header::CONTENT_TYPE;
use sexton_outbound::http::{HeaderMap, HeaderName, HeaderValue, HttpRequest, Method};
use sexton_service::traces::TraceContext;
use uuid::Uuid;

use super::HttpTask;
use crate::executor::TaskRun;
use sexton_outbound::secret::{Secret, SecretMissing, SecretSource, Value};

/// The header with the execution's idempotency key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header with the attempt's place in a trace, as defined by W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The header with what the systems of that trace say.
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Headers that the client sets itself, or that would change the request's framing or target.
const RESERVED_HEADERS: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a catalogue cannot set the header.
pub(crate) fn is_reserved_header(name: &HeaderName) -> bool {
    RESERVED_HEADERS.contains(&name.as_str())
}

/// Returns whether a request with this method has the params as its body.
pub(crate) fn has_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

/// Why a request cannot be built.
pub(super) enum RequestError {
    /// A secret cannot be read.
    Missing(SecretMissing),
    /// A secret holds characters that no header can carry.
    Unusable(HeaderName),
}

/// Builds the request of `task` with the time limit `timeout`, and adds the secrets in it to `masks`.
pub(super) async fn request(
    spec: &HttpTask,
    task: &TaskRun,
    timeout: Duration,
    secrets: &SecretSource,
    masks: &mut Vec<Secret>,
) -> Result<HttpRequest, RequestError> {
    let body = if has_body(&spec.method) { task.params.to_string() } else { String::new() };
    let mut headers = HeaderMap::new();
    if has_body(&spec.method) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in &spec.headers {
        let text = secrets.text(value, masks).await.map_err(RequestError::Missing)?;
        let Ok(mut text) = HeaderValue::from_str(&text) else {
            return Err(RequestError::Unusable(name.clone()));
        };
        text.set_sensitive(matches!(value, Value::Secret(_)));
        headers.insert(name.clone(), text);
    }
    let key = header_text(&task.idempotency_key);
    let trace = task
        .trace
        .as_ref()
        .map_or_else(|| traceparent(task.execution_id, task.attempt), TraceContext::traceparent);
    let state = task.trace.as_ref().and_then(|trace| trace.state.clone());
    let texts = [(IDEMPOTENCY_KEY, key), (TRACEPARENT, trace)];
    for (name, text) in texts.into_iter().chain(state.map(|state| (TRACESTATE, state))) {
        // Both are visible ASCII.
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    Ok(HttpRequest {
        url: spec.url.clone(),
        method: spec.method.clone(),
        headers,
        body,
        allows_private_addresses: spec.allowed,
        timeout,
        max_body_bytes: spec.max_response,
    })
}

/// Encodes a text for a header: `%` and everything outside visible ASCII is percent-encoded, so that different
/// texts stay different.
fn header_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            0x21..=0x7e if byte != b'%' => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// Returns the `traceparent` in a worker that does not trace: the execution is the trace, the attempt is the span.
fn traceparent(execution_id: Uuid, attempt: u32) -> String {
    let span = Uuid::new_v5(&execution_id, &attempt.to_be_bytes()).simple().to_string();
    format!("00-{}-{}-01", execution_id.simple(), &span[..16])
}

impl RequestError {
    /// Returns the message for the attempt's failure.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Missing(missing) => missing.to_string(),
            Self::Unusable(name) => {
                let name = quoting::escaped(name.as_str());
                format!("the secret for the header {name} holds what no header can carry")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_characters_fits_in_a_header_and_stays_distinct() {
        let plain = "billing.invoices:cron-2025-12-12T08:00:00Z";
        assert_eq!(header_text(plain), plain);
        assert_eq!(header_text("a b"), "a%20b");
        assert_eq!(header_text("a%20b"), "a%2520b");
        assert_eq!(header_text("Zoë\r\nX: y"), "Zo%C3%AB%0D%0AX:%20y");
    }

    #[test]
    fn the_trace_is_the_execution_and_each_attempt_a_span_of_it() {
        let id = Uuid::from_u128(0x0193_b3c0_7d00_7000_8000_0000_0000_0007);
        let (first, second) = (traceparent(id, 1), traceparent(id, 2));
        assert_eq!(&first[..36], "00-0193b3c07d0070008000000000000007-");
        assert_eq!(first.len(), 55);
        assert_eq!(first, traceparent(id, 1));
        assert_ne!(first[36..52], second[36..52]);
        assert!(first.ends_with("-01"));
    }
}
