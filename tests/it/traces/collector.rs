//! A collector of the tests: the real service of the protocol, which keeps what it receives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::process::FINAL_TIMEOUT;

/// A span as it arrived. Ids are hexadecimal.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) service: String,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) trace: String,
    pub(super) span: String,
    /// Empty: the trace begins with it.
    pub(super) parent: String,
    pub(super) state: String,
    /// Trace and span of each.
    pub(super) links: Vec<(String, String)>,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) failed: bool,
}

impl Received {
    /// Returns what others link to.
    pub(super) fn place(&self) -> (String, String) {
        (self.trace.clone(), self.span.clone())
    }

    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// The running collector.
pub(super) struct Collector {
    address: SocketAddr,
    connected: Arc<AtomicBool>,
    spans: Arc<Mutex<Vec<Received>>>,
    received: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

struct Service {
    spans: Arc<Mutex<Vec<Received>>>,
    received: watch::Sender<usize>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = watch::channel(0);
        let spans = Arc::<Mutex<Vec<Received>>>::default();
        let service = Service { spans: Arc::clone(&spans), received: sender };
        let connected = Arc::<AtomicBool>::default();
        let incoming = TcpIncoming::from(listener).inspect({
            let connected = Arc::clone(&connected);
            move |_| connected.store(true, Ordering::Relaxed)
        });
        let serving = Server::builder()
            .add_service(TraceServiceServer::new(service))
            .serve_with_incoming(incoming);
        let server = tokio::spawn(async { serving.await.unwrap() });
        Self { address, connected, spans, received, server }
    }

    /// Returns its URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns its port.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns whether anything has ever connected.
    pub(super) fn was_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Returns what has arrived.
    pub(super) fn spans(&self) -> Vec<Received> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits until as many spans as `wanted` fit, and returns all that do.
    pub(super) async fn wait_for(
        &mut self,
        what: &str,
        wanted: usize,
        fits: impl Fn(&Received) -> bool,
    ) -> Vec<Received> {
        let waiting = async {
            loop {
                self.received.borrow_and_update();
                let found: Vec<Received> =
                    self.spans.lock().unwrap().iter().filter(|one| fits(one)).cloned().collect();
                if found.len() >= wanted {
                    return found;
                }
                self.received.changed().await.unwrap();
            }
        };
        let found = timeout(FINAL_TIMEOUT, waiting).await;
        found.unwrap_or_else(|_| panic!("{what} did not come; there are {:#?}", self.spans()))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let of_resource = resource.resource.map(|one| one.attributes).unwrap_or_default();
            let service = texts(of_resource).remove("service.name").unwrap_or_default();
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let links = span.links.iter();
                let received = Received {
                    service: service.clone(),
                    kind: span.kind(),
                    trace: hex(&span.trace_id),
                    span: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    links: links.map(|one| (hex(&one.trace_id), hex(&one.span_id))).collect(),
                    failed: span.status.is_some_and(|status| status.code == 2),
                    name: span.name,
                    state: span.trace_state,
                    attributes: texts(span.attributes),
                };
                self.spans.lock().unwrap().push(received);
            }
        }
        self.received.send_modify(|count| *count += 1);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |one: KeyValue| {
        let value = match one.value.and_then(|value| value.value) {
            Some(any_value::Value::StringValue(text)) => text,
            Some(any_value::Value::IntValue(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (one.key, value)
    };
    attributes.into_iter().map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
