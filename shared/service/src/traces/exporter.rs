//! The bounded queue of ended spans, and the task that sends them.
//!
//! The queue takes what comes and drops what does not fit. One task sends batches, one at a time, so an unreachable
//! collector costs a bounded memory and one line of the log a minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use sexton_model::log_throttle::LogThrottle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::TraceSettings;
use super::span::Span;

/// The most spans that wait; each has about a kilobyte.
const MAX_WAITING: usize = 8_192;
/// The most spans of one request.
const MAX_BATCH: usize = 512;
/// How long a batch waits for more spans.
const BATCH_DELAY: Duration = Duration::from_millis(500);
/// Time limit of a request.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// There can be no client for the endpoint.
#[derive(Debug, thiserror::Error)]
#[error("OTEL_EXPORTER_OTLP_ENDPOINT: {0}")]
pub struct TracesError(String);

/// The queue of a process.
#[derive(Debug)]
pub(super) struct SpanQueue {
    sender: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
    ratio: f64,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl SpanQueue {
    /// Starts the task that sends. It connects when there is something to send.
    pub(super) fn start(settings: &TraceSettings, instance: &str) -> Result<Self, TracesError> {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(settings.endpoint.clone())
            .with_timeout(EXPORT_TIMEOUT);
        if settings.endpoint.to_ascii_lowercase().starts_with("https:") {
            // By itself the library trusts no authority at all.
            exporter = exporter.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        let exporter = exporter.build();
        let mut exporter = exporter.map_err(|error| TracesError(error.to_string()))?;
        let resource = Resource::builder_empty()
            .with_service_name(settings.service_name.clone())
            .with_attributes([
                KeyValue::new("service.instance.id", instance.to_owned()),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        exporter.set_resource(&resource);
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let (stop, dropped) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let sending = Sending {
            receiver,
            exporter,
            scope: InstrumentationScope::builder("sexton").build(),
            dropped: Arc::clone(&dropped),
            stop: stop.clone(),
            log_throttle: LogThrottle::default(),
        };
        let task = Mutex::new(Some(tokio::spawn(sending.run())));
        Ok(Self { sender, dropped, ratio: settings.ratio, stop, task })
    }

    pub(super) const fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Adds a span, or drops it if the queue is full.
    pub(super) fn push(&self, span: Span) {
        if self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends what waits, for at most `limit`.
    pub(super) async fn shut_down(&self, limit: Duration) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let abort = task.abort_handle();
            if timeout(limit, task).await.is_err() {
                abort.abort();
            }
        }
    }
}

/// The sending task.
struct Sending {
    receiver: mpsc::Receiver<Span>,
    exporter: SpanExporter,
    scope: InstrumentationScope,
    dropped: Arc<AtomicU64>,
    stop: CancellationToken,
    log_throttle: LogThrottle,
}

impl Sending {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                received = self.receiver.recv_many(&mut batch, MAX_BATCH) => {
                    if received == 0 {
                        return;
                    }
                }
            }
            self.fill(&mut batch).await;
            self.send(&mut batch).await;
        }
        self.receiver.close();
        while self.receiver.recv_many(&mut batch, MAX_BATCH).await > 0 {
            self.send(&mut batch).await;
        }
    }

    /// Waits a moment for more spans, because a request costs much more than a span in it.
    async fn fill(&mut self, batch: &mut Vec<Span>) {
        let mut late = std::pin::pin!(sleep(BATCH_DELAY));
        while batch.len() < MAX_BATCH {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = &mut late => break,
                received = self.receiver.recv_many(batch, MAX_BATCH - batch.len()) => {
                    if received == 0 {
                        break;
                    }
                }
            }
        }
    }

    async fn send(&self, batch: &mut Vec<Span>) {
        let spans: Vec<SpanData> =
            batch.drain(..).map(|span| span.into_data(&self.scope)).collect();
        let count = spans.len() as u64;
        let reason = match self.exporter.export(spans).await {
            Ok(()) => "the collector is too slow".to_owned(),
            Err(error) => {
                self.dropped.fetch_add(count, Ordering::Relaxed);
                format!("the collector does not take them: {error}")
            }
        };
        if self.dropped.load(Ordering::Relaxed) > 0 && self.log_throttle.permits(Instant::now()) {
            let lost = self.dropped.swap(0, Ordering::Relaxed);
            tracing::warn!(spans.lost = lost, "{lost} spans are lost: {reason}");
        }
    }
}
