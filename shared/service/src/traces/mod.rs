//! Traces: spans of the steps of a program, sent by OTLP to a collector.
//!
//! - [`context`]: the place of a span in its trace, as W3C Trace Context writes it.
//! - [`span`]: a span that has ended.
//! - `exporter`: the bounded queue of ended spans, and the task that sends them.
//!
//! They are off unless a collector is set. Then [`is_on`] is all that they cost, and nothing connects anywhere. A
//! step never waits for the collector: a span that finds the queue full is dropped, and counted in the next line of
//! the log.

pub mod context;
mod exporter;
pub mod span;

use std::sync::OnceLock;
use std::time::Duration;

pub use self::context::TraceContext;
use self::exporter::SpanQueue;
pub use self::exporter::TracesError;
pub use self::span::{Span, SpanKind};
pub use opentelemetry::KeyValue;

/// How long the remaining spans may take at the end of the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Where spans go, and how many of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// The collector, `http://HOST:PORT` or `https://HOST:PORT`.
    pub endpoint: String,
    /// The name of this service.
    pub service_name: String,
    /// The share of new traces that are recorded; 0 to 1.
    pub ratio: f64,
}

static QUEUE: OnceLock<SpanQueue> = OnceLock::new();

/// Starts the sending of spans, for the whole process, in the current runtime. Without settings they stay off.
///
/// # Errors
///
/// [`TracesError`] if there can be no client for the endpoint. An unreachable collector is no error.
pub fn init(settings: Option<&TraceSettings>, instance: &str) -> Result<(), TracesError> {
    if let Some(settings) = settings {
        let queue = SpanQueue::start(settings, instance)?;
        // A second start in one process keeps the first queue.
        let _ = QUEUE.set(queue);
    }
    Ok(())
}

/// Returns whether spans are sent.
pub fn is_on() -> bool {
    QUEUE.get().is_some()
}

/// Returns whether a new trace is recorded. The answer depends on the trace's id alone, so that every process gives the
/// same.
pub fn is_sampled(trace_id: [u8; 16]) -> bool {
    QUEUE.get().is_some_and(|queue| context::is_within(trace_id, queue.ratio()))
}

/// Sends a span, unless its trace is not recorded. Never waits.
pub fn record(span: Span) {
    if let Some(queue) = QUEUE.get()
        && span.context.sampled
    {
        queue.push(span);
    }
}

/// Sends the remaining spans, for at most three seconds. What is recorded later is dropped.
pub async fn shut_down() {
    if let Some(queue) = QUEUE.get() {
        queue.shut_down(FLUSH_TIMEOUT).await;
    }
}
