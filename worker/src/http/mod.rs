//! Runs a task as an HTTP request.
//!
//! # What is sent
//!
//! The catalogue's method (POST unless it says otherwise) to the catalogue's URL, with the params as
//! JSON where the method has a body, and
//!
//! - `Idempotency-Key`: the execution's, the same over retries and requeues. What is not visible
//!   ASCII in it, and `%`, is percent-encoded.
//! - `traceparent`: W3C Trace Context. The execution is the trace, the attempt a span of it.
//! - the catalogue's headers, whose values may be [secrets](crate::secret).
//!
//! # What is answered
//!
//! 2xx: done. 408, 425, 429 and 5xx: tried again, after the answer's `Retry-After` at the soonest
//! ([`RETRY_AFTER_MAX`] at most). Redirects are never followed, and every other status is permanent,
//! too. The body is kept as output, up to the catalogue's limit; what is longer is not read.
//!
//! # Where it goes
//!
//! To public addresses, unless the catalogue allows the host: the addresses are looked at after the
//! name was resolved, and the connection goes to one that was looked at. No proxy is used, no cookie
//! kept, nothing decompressed.
//!
//! # Nothing is left
//!
//! Every attempt has a connection of its own, which is driven by the attempt itself and by no task in
//! the background. Whatever ends the attempt (the timeout, a cancel, a lost lease) closes it. That
//! costs a handshake for each attempt and leaves no pool to bound. A question to the system's
//! resolver cannot be taken back; its thread ends with the resolver's own patience.

mod address;
mod connect;
mod exchange;
mod request;
mod response;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use hyper::Method;
use hyper::header::HeaderName;
use rustls::ClientConfig;
use url::Url;

use self::connect::ConnectError;
use self::exchange::Sink;
use self::request::RequestError;
use self::response::Head;
use crate::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream, character_boundary};
use crate::secret::{SECRET_MISSING, Secret, SecretSource, Value};
use crate::tls;

pub(crate) use self::address::blocked_kind;
pub(crate) use self::request::is_reserved_header;
pub use self::response::RETRY_AFTER_MAX;

/// A request, as the catalogue has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTask {
    /// Where it goes: `http` or `https`, with a host, without user, password or fragment.
    pub url: Url,
    /// DELETE, GET, HEAD, PATCH, POST or PUT.
    pub method: Method,
    /// Further headers.
    pub headers: Vec<(HeaderName, Value)>,
    /// The longest it may take, the answer included.
    pub timeout: Duration,
    /// The most bytes of the answer's body that are read.
    pub max_response: usize,
    /// Whether the host may be at an address that is not public.
    pub allowed: bool,
}

/// What all requests of a worker share.
pub struct HttpHost {
    secrets: SecretSource,
    clock: WallClock,
    /// Made for the first request that needs it: reading the system's roots takes a while.
    tls: OnceLock<Arc<ClientConfig>>,
}

impl HttpHost {
    /// A host whose requests find their secrets in `secrets`; `clock` dates the lines of output, and
    /// a date in `Retry-After` is counted from its time.
    pub fn new(secrets: SecretSource, clock: WallClock) -> Self {
        Self { secrets, clock, tls: OnceLock::new() }
    }
}

/// Runs one task type as an HTTP request.
pub struct HttpExecutor {
    host: Arc<HttpHost>,
    spec: HttpTask,
}

impl HttpExecutor {
    /// An executor of `spec`.
    pub fn new(host: Arc<HttpHost>, spec: HttpTask) -> Self {
        Self { host, spec }
    }

    async fn call(&self, task: &TaskRun, response_recorder: &mut ResponseRecorder) -> Outcome {
        let Self { host, spec } = self;
        let mut masks = Vec::new();
        let request = match request::request(spec, task, &host.secrets, &mut masks).await {
            Ok(request) => {
                // A server may repeat what it was sent.
                response_recorder.recorder.mask(masks.iter().map(Secret::expose).flat_map(tokens));
                request
            }
            Err(error) => {
                let class = match error {
                    RequestError::Missing(_) => SECRET_MISSING,
                    RequestError::Unusable(_) => "secret_unusable",
                };
                return failed(class, error.message());
            }
        };
        let encrypted = spec.url.scheme() == "https";
        let client = if encrypted { Some(tls::shared_client(&host.tls).await) } else { None };
        let stream = match connect::connect(spec, client).await {
            Ok(stream) => stream,
            Err(ConnectError::Refused(message)) => {
                return Outcome::Permanent { class: "address_refused".to_owned(), message };
            }
            Err(ConnectError::Unresolved(message)) => return failed("http_unresolved", message),
            Err(ConnectError::Unreachable(message)) => return failed("http_unreachable", message),
            Err(ConnectError::Tls(message)) => return failed("http_tls", message),
        };
        let exchanged =
            exchange::exchange(stream, request, spec.max_response, &host.clock, response_recorder)
                .await;
        match exchanged {
            Ok(response) => {
                if response.cut {
                    let said = format!("the answer is longer than {} bytes", spec.max_response);
                    response_recorder
                        .note((host.clock)(), &format!("{said}; the rest was not read"));
                }
                response.head.outcome(response_recorder.words().as_deref())
            }
            Err(message) => failed("http_broken", message),
        }
    }
}

/// How a server may repeat a header's value: whole, or without the scheme that it begins with, as in
/// `Bearer abc`.
fn tokens(value: &str) -> impl Iterator<Item = &str> {
    let rest = value.trim().split_once(' ').map(|(_, rest)| rest);
    std::iter::once(value).chain(rest)
}

fn failed(class: &str, message: String) -> Outcome {
    Outcome::Failed { class: class.to_owned(), message }
}

#[async_trait]
impl Executor for HttpExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let recorder = control.output().clone();
        // Whatever the server says, it knows nothing of the task's progress.
        recorder.keep_progress_lines();
        let mut response_recorder =
            ResponseRecorder { recorder: recorder.clone(), begin: Vec::new() };
        let timeout = task.timeout.min(self.spec.timeout);
        let outcome = tokio::select! {
            biased;
            outcome = wait_for_cancellation(&mut control, timeout) => outcome,
            outcome = self.call(task, &mut response_recorder) => outcome,
        };
        TaskEnd { output: recorder.finish(), ..TaskEnd::new(outcome) }
    }
}

/// The most of a body's beginning that a failure repeats, in bytes.
const EXCERPT_MAX_BYTES: usize = 500;

/// What is kept of an answer: its body as standard output, what is said about it as standard error.
struct ResponseRecorder {
    recorder: Recorder,
    begin: Vec<u8>,
}

impl ResponseRecorder {
    fn note(&mut self, at: DateTime<Utc>, said: &str) {
        self.recorder.push(Stream::Stderr, at, format!("{said}\n").as_bytes());
    }

    /// The first line of the body that says anything.
    fn words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.begin[..character_boundary(&self.begin)]);
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl Sink for ResponseRecorder {
    fn head(&mut self, at: DateTime<Utc>, head: &Head) {
        self.note(at, &head.status.to_string());
    }

    fn body(&mut self, at: DateTime<Utc>, bytes: &[u8]) {
        let room = EXCERPT_MAX_BYTES - self.begin.len();
        self.begin.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.recorder.push(Stream::Stdout, at, bytes);
    }
}

#[cfg(test)]
mod tests;
