//! Sends one HTTP request over a new connection.
//!
//! # Addresses
//!
//! Requests go to public addresses only, unless [`HttpRequest::allows_private_addresses`]: the addresses are
//! checked after the name was resolved, and the connection goes to a checked one. The client uses no proxy,
//! keeps no cookies, follows no redirects and decompresses nothing.
//!
//! # After the request
//!
//! Nothing stays behind. The future of [`HttpClient::send`] drives the connection, without a task in the
//! background. Dropping it closes the connection. That costs a handshake for each request and leaves no pool to
//! bound. A query to the system's resolver cannot be cancelled; its thread ends with the resolver's own
//! timeout.

mod connect;
mod exchange;
mod response;

use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, USER_AGENT};
use sexton_tls::TlsClient;
use tokio::time::timeout;
use url::Position;

pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode};
pub use url::{Host, Url};

pub use self::exchange::ResponseSink;
pub use self::response::{RETRY_AFTER_MAX, ResponseHead, ResponseMeaning};

const AGENT: &str = concat!("sexton/", env!("CARGO_PKG_VERSION"));

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `http` or `https`, with a host, without user, password or fragment.
    pub url: Url,
    /// The method.
    pub method: Method,
    /// Additional headers. The client sets `Host` and `Connection`, and `User-Agent` unless it is here.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: String,
    /// Whether the host may have an address that is not public.
    pub allows_private_addresses: bool,
    /// Time limit for resolving, connecting, sending and the whole response together.
    pub timeout: Duration,
    /// The most bytes of the response's body that are read.
    pub max_body_bytes: usize,
}

/// A response that has been received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The head.
    pub head: ResponseHead,
    /// Whether the body was longer than [`HttpRequest::max_body_bytes`]; the remainder was not read.
    pub is_truncated: bool,
}

/// Why there is no response. Each text is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// All addresses of the host are of a kind to which requests must not go.
    #[error("{0}")]
    AddressRefused(String),
    /// The host's name does not resolve at present.
    #[error("{0}")]
    Unresolved(String),
    /// No address of the host accepts a connection.
    #[error("{0}")]
    Unreachable(String),
    /// The server has no valid certificate for its name, or does not speak TLS.
    #[error("{0}")]
    Tls(String),
    /// The server's response is invalid or incomplete.
    #[error("{0}")]
    Broken(String),
    /// The request's time limit is exceeded.
    #[error("no response within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Sends requests. Holds only the roots that its connections trust.
#[derive(Clone, Debug, Default)]
pub struct HttpClient {
    tls: TlsClient,
}

impl HttpClient {
    /// Creates a client whose `https` connections trust the roots of `tls`.
    pub const fn new(tls: TlsClient) -> Self {
        Self { tls }
    }

    /// Sends a request; `sink` receives the response as it arrives.
    ///
    /// # Errors
    ///
    /// [`HttpError`]. The server may have received the request and acted on it, except after
    /// [`AddressRefused`](HttpError::AddressRefused), [`Unresolved`](HttpError::Unresolved),
    /// [`Unreachable`](HttpError::Unreachable) and [`Tls`](HttpError::Tls).
    ///
    /// # Cancellation
    ///
    /// Dropping the future closes the connection, as a crash does.
    pub async fn send(
        &self,
        request: HttpRequest,
        sink: &mut impl ResponseSink,
    ) -> Result<HttpResponse, HttpError> {
        let limit = request.timeout;
        timeout(limit, self.send_unlimited(request, sink))
            .await
            .unwrap_or(Err(HttpError::TimedOut(limit)))
    }

    async fn send_unlimited(
        &self,
        request: HttpRequest,
        sink: &mut impl ResponseSink,
    ) -> Result<HttpResponse, HttpError> {
        let is_encrypted = request.url.scheme() == "https";
        let tls = if is_encrypted { Some(self.tls.config().await) } else { None };
        let stream = connect::connect(&request, tls).await?;
        let max_body_bytes = request.max_body_bytes;
        exchange::exchange(stream, message(request), max_body_bytes, sink)
            .await
            .map_err(HttpError::Broken)
    }
}

/// Returns the request in the HTTP library's form.
fn message(request: HttpRequest) -> Request<Full<Bytes>> {
    let HttpRequest { url, method, mut headers, body, .. } = request;
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    // The host of a parsed URL is visible ASCII.
    if let Ok(host) = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]) {
        headers.insert(HOST, host);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut message = Request::new(Full::from(body));
    *message.method_mut() = method;
    // The path of a parsed URL is always valid in a request.
    *message.uri_mut() =
        url[Position::BeforePath..Position::AfterQuery].parse().unwrap_or_default();
    *message.headers_mut() = headers;
    message
}

#[cfg(test)]
mod tests;
