//! One HTTP request over a connection of its own.
//!
//! # Where it goes
//!
//! To public addresses, unless [`HttpRequest::allows_private_addresses`]: the addresses are checked after the
//! name was resolved, and the connection goes to one that was checked. No proxy is used, no cookie kept, no
//! redirect followed, nothing decompressed.
//!
//! # What is left
//!
//! Nothing. The future of [`HttpClient::send`] drives the connection, and no task in the background does.
//! Dropping it closes the connection. That costs a handshake for each request and leaves no pool to bound. A
//! question to the system's resolver cannot be cancelled; its thread ends with the resolver's own timeout.

mod connect;
mod exchange;
mod response;

use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, USER_AGENT};
use tokio::time::timeout;
use url::Position;

pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode};
pub use url::{Host, Url};

pub use self::exchange::ResponseSink;
pub use self::response::{RETRY_AFTER_MAX, ResponseHead, ResponseMeaning};
use crate::tls::TlsClient;

const AGENT: &str = concat!("sexton/", env!("CARGO_PKG_VERSION"));

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `http` or `https`, with a host, without user, password or fragment.
    pub url: Url,
    /// The method.
    pub method: Method,
    /// Further headers. `Host` and `Connection` are set by the client; `User-Agent` too, unless it is here.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: String,
    /// Whether the host may be at an address that is not public.
    pub allows_private_addresses: bool,
    /// The longest that resolving, connecting, sending and the whole response may take together.
    pub timeout: Duration,
    /// The most bytes of the response's body that are read.
    pub max_body_bytes: usize,
}

/// A response that has been received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Its head.
    pub head: ResponseHead,
    /// Whether the body was longer than [`HttpRequest::max_body_bytes`]; the rest was not read.
    pub is_truncated: bool,
}

/// Why there is no response. Each text is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Every address of the host is one that a request must not go to.
    #[error("{0}")]
    AddressRefused(String),
    /// The host's name leads to no address at present.
    #[error("{0}")]
    Unresolved(String),
    /// Nobody answers at the host's addresses.
    #[error("{0}")]
    Unreachable(String),
    /// The server does not prove its name, or speaks no TLS.
    #[error("{0}")]
    Tls(String),
    /// The server sent something that is no response, or only a part of one.
    #[error("{0}")]
    Broken(String),
    /// The request's time is over.
    #[error("no response within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Sends requests. Holds nothing but the roots that its connections trust.
#[derive(Clone, Debug, Default)]
pub struct HttpClient {
    tls: TlsClient,
}

impl HttpClient {
    /// A client whose `https` connections trust what `tls` trusts.
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

/// The request as it is sent.
fn message(request: HttpRequest) -> Request<Full<Bytes>> {
    let HttpRequest { url, method, mut headers, body, .. } = request;
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    // A host of a parsed URL is visible ASCII.
    if let Ok(host) = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]) {
        headers.insert(HOST, host);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut message = Request::new(Full::from(body));
    *message.method_mut() = method;
    // A parsed URL has no path that could not be sent.
    *message.uri_mut() =
        url[Position::BeforePath..Position::AfterQuery].parse().unwrap_or_default();
    *message.headers_mut() = headers;
    message
}

#[cfg(test)]
mod tests;
