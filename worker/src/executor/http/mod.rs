//! Runs a task as an HTTP request.
//!
//! # The request
//!
//! The worker sends the catalogue's method (POST by default) to the catalogue's URL, with the params as JSON if
//! the method has a body, and
//!
//! - `Idempotency-Key`: the execution's key, the same over retries and requeues, with `%` and everything
//!   outside visible ASCII percent-encoded.
//! - `traceparent`: W3C Trace Context. The execution is the trace, the attempt is a span in it.
//! - the catalogue's headers, whose values may be [secrets](sexton_outbound::secret).
//!
//! # The response
//!
//! 2xx is success. 408, 425, 429 and 5xx are retried, not before the response's `Retry-After` (at most
//! [`RETRY_AFTER_MAX`]). Every other status is a permanent failure, including redirects, which are never
//! followed. The body is kept as output, up to the catalogue's limit; the remainder is not read.
//!
//! # The connection
//!
//! Requests go to public addresses only, unless the catalogue allows the host, over a connection that ends with
//! the attempt: see [`sexton_outbound::http`].

mod request;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sexton_outbound::http::{
    HeaderName, HttpClient, HttpError, HttpResponse, Method, ResponseHead, ResponseMeaning,
    ResponseSink, Url,
};
use sexton_tls::TlsClient;

use self::request::RequestError;
use crate::executor::SECRET_MISSING;
use crate::executor::cancellation::wait_for_cancellation;
use crate::executor::{Executor, Outcome, TaskControl, TaskEnd, TaskRun, WallClock};
use crate::output::{Recorder, Stream, character_boundary};
use sexton_outbound::secret::{Secret, SecretSource, Value};

pub(crate) use self::request::is_reserved_header;
pub use sexton_outbound::http::RETRY_AFTER_MAX;

/// A request as the catalogue defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTask {
    /// The target: `http` or `https`, with a host, without user, password or fragment.
    pub url: Url,
    /// DELETE, GET, HEAD, PATCH, POST or PUT.
    pub method: Method,
    /// Additional headers.
    pub headers: Vec<(HeaderName, Value)>,
    /// Time limit for the request and the response.
    pub timeout: Duration,
    /// The most bytes of the response body that are read.
    pub max_response: usize,
    /// Whether the host may have an address that is not public.
    pub allowed: bool,
}

/// State that all requests of a worker share.
pub struct HttpHost {
    secrets: SecretSource,
    clock: WallClock,
    client: HttpClient,
}

impl HttpHost {
    /// Creates a host whose requests read their secrets from `secrets` and trust the roots of `tls`; `clock`
    /// dates the lines of output and resolves dates in `Retry-After`.
    pub const fn new(secrets: SecretSource, clock: WallClock, tls: TlsClient) -> Self {
        Self { secrets, clock, client: HttpClient::new(tls) }
    }
}

/// The executor of a task type that is an HTTP request.
pub struct HttpExecutor {
    host: Arc<HttpHost>,
    spec: HttpTask,
}

impl HttpExecutor {
    /// Creates an executor of `spec`.
    pub fn new(host: Arc<HttpHost>, spec: HttpTask) -> Self {
        Self { host, spec }
    }

    async fn call(
        &self,
        task: &TaskRun,
        timeout: Duration,
        response_recorder: &mut ResponseRecorder,
    ) -> Outcome {
        let Self { host, spec } = self;
        let mut masks = Vec::new();
        let request = match request::request(spec, task, timeout, &host.secrets, &mut masks).await {
            Ok(request) => {
                // A server may echo the request.
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
        match host.client.send(request, response_recorder).await {
            Ok(HttpResponse { head, is_truncated }) => {
                if is_truncated {
                    let remark = format!("the answer is longer than {} bytes", spec.max_response);
                    response_recorder.note(&format!("{remark}; the rest was not read"));
                }
                self.response_outcome(&head, response_recorder.words().as_deref())
            }
            Err(error) => self.error_outcome(error),
        }
    }

    /// Translates a response into the task's outcome; `words` are the body's first line of text.
    fn response_outcome(&self, head: &ResponseHead, words: Option<&str>) -> Outcome {
        let class = format!("http_{}", head.status.as_u16());
        let mut message = head.describe(words);
        if head.status.is_redirection() {
            message.push_str(": let the catalogue name the final address");
        }
        match head.meaning((self.host.clock)()) {
            ResponseMeaning::Accepted => Outcome::Succeeded,
            ResponseMeaning::RetryLater { after } => Outcome::Retry { class, message, after },
            ResponseMeaning::Rejected => Outcome::Permanent { class, message },
        }
    }

    fn error_outcome(&self, error: HttpError) -> Outcome {
        match error {
            HttpError::AddressRefused(message) => {
                let host = self.spec.url.host_str().unwrap_or_default();
                let message = format!("{message}: name {host} in `allow` to permit it");
                Outcome::Permanent { class: "address_refused".to_owned(), message }
            }
            HttpError::Unresolved(message) => failed("http_unresolved", message),
            HttpError::Unreachable(message) => failed("http_unreachable", message),
            HttpError::Tls(message) => failed("http_tls", message),
            HttpError::Broken(message) => failed("http_broken", message),
            HttpError::TimedOut(_) => Outcome::TimedOut,
        }
    }
}

/// Returns the forms in which a server may echo a header's value: whole, and without its scheme, as in `Bearer
/// abc`.
fn tokens(value: &str) -> impl Iterator<Item = &str> {
    let credentials = value.trim().split_once(' ').map(|(_, credentials)| credentials);
    std::iter::once(value).chain(credentials)
}

fn failed(class: &str, message: String) -> Outcome {
    Outcome::Failed { class: class.to_owned(), message }
}

#[async_trait]
impl Executor for HttpExecutor {
    async fn run(&self, task: &TaskRun, mut control: TaskControl) -> TaskEnd {
        let recorder = control.output().clone();
        // A server's response is never a report of the task's progress.
        recorder.keep_progress_lines();
        let mut response_recorder = ResponseRecorder {
            recorder: recorder.clone(),
            clock: Arc::clone(&self.host.clock),
            begin: Vec::new(),
        };
        // The timeout also covers the reading of the secrets before the request.
        let timeout = task.timeout.min(self.spec.timeout);
        let outcome = tokio::select! {
            biased;
            outcome = wait_for_cancellation(&mut control, timeout) => outcome,
            outcome = self.call(task, timeout, &mut response_recorder) => outcome,
        };
        TaskEnd { output: recorder.finish(), ..TaskEnd::new(outcome) }
    }
}

/// The most of a body's beginning that a failure message repeats, in bytes.
const EXCERPT_MAX_BYTES: usize = 500;

/// Records a response: its body as standard output, remarks about it as standard error.
struct ResponseRecorder {
    recorder: Recorder,
    clock: WallClock,
    begin: Vec<u8>,
}

impl ResponseRecorder {
    fn note(&self, text: &str) {
        self.recorder.push(Stream::Stderr, (self.clock)(), format!("{text}\n").as_bytes());
    }

    /// Returns the first line of the body that has text.
    fn words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.begin[..character_boundary(&self.begin)]);
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl ResponseSink for ResponseRecorder {
    fn head(&mut self, head: &ResponseHead) {
        self.note(&head.status.to_string());
    }

    fn body(&mut self, piece: &[u8]) {
        let room = EXCERPT_MAX_BYTES - self.begin.len();
        self.begin.extend_from_slice(&piece[..piece.len().min(room)]);
        self.recorder.push(Stream::Stdout, (self.clock)(), piece);
    }
}

#[cfg(test)]
mod tests;
