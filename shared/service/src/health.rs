//! `/livez`, `/readyz` and `/metrics`, for orchestrators, operators and Prometheus.
//!
//! - `GET /readyz`: 200 if every [`Condition`] holds and the program is not stopping, else 503; the body lists the
//!   conditions, why they do not hold and since when.
//! - `GET /livez`: 200 unless a loop has been silent for too long, else 503; the body names it.
//!
//! - `GET /metrics`: the process's [metrics].
//!
//! The first two answer JSON. The server stays up through a shutdown, so that a program that finishes its work does not look
//! hung. Connections are few, short and answer one request each; the answers come from memory, so requests cost the
//! program nothing. It uses hyper directly: three paths need no router, and timeouts and limits are set on hyper in any
//! case.

mod liveness;
mod readiness;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http_server::{self, Limits, RequestBody};
use crate::metrics;

pub use liveness::{Heartbeat, Liveness};
pub use readiness::{Condition, Readiness};

/// Requests are few, and each connection brings one.
const LIMITS: Limits = Limits {
    connections: 32,
    head: Duration::from_secs(3),
    head_bytes: 8192,
    stalled: Duration::from_secs(3),
    connection: Duration::from_secs(5),
    last_answer: Duration::from_secs(5),
    keep_alive: false,
};

/// The state behind the answers.
#[derive(Clone, Debug)]
pub struct Health {
    /// The conditions behind `/readyz`.
    pub readiness: Readiness,
    /// The loops behind `/livez`.
    pub liveness: Liveness,
    /// Cancelled when the program begins to shut down; it is not ready from then on.
    pub stopping: CancellationToken,
}

/// A running health server. A drop ends it, with all its connections.
#[derive(Debug)]
pub struct HealthServer {
    address: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl HealthServer {
    /// Listens on `address` (port 0 takes a free one), logs it, and answers until dropped.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound; the message names it and the setting.
    pub async fn start(address: SocketAddr, health: Health) -> Result<Self, HealthError> {
        let bind = async {
            let listener = TcpListener::bind(address).await?;
            let bound = listener.local_addr()?;
            Ok((listener, bound))
        };
        let (listener, bound) = bind.await.map_err(|source| HealthError { address, source })?;
        tracing::info!(health.address = %bound, "health is answered on http://{bound}/readyz");
        let service = service_fn(move |request: Request<RequestBody>| {
            let answer = answer(request.method(), request.uri().path(), &health, Instant::now());
            async move { Ok::<_, Infallible>(answer) }
        });
        // It stays up through a shutdown.
        let never = CancellationToken::new();
        let acceptor = tokio::spawn(http_server::accept(listener, service, LIMITS, never));
        Ok(Self { address: bound, acceptor })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HealthServer {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// The health address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {address} for health checks: {source}; set HEALTH_ADDR to a free address, or \
     its port to 0 for any free one"
)]
pub struct HealthError {
    address: SocketAddr,
    source: io::Error,
}

fn answer(method: &Method, path: &str, health: &Health, now: Instant) -> Response<String> {
    match (path, method) {
        ("/livez", &Method::GET) => {
            let report = health.liveness.report(now);
            json(status(report.alive), &report)
        }
        ("/readyz", &Method::GET) => {
            let report = health.readiness.report(health.stopping.is_cancelled());
            json(status(report.ready), &report)
        }
        ("/metrics", &Method::GET) => {
            let mut response = Response::new(metrics::encode());
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        ("/livez" | "/readyz" | "/metrics", _) => {
            let error = serde_json::json!({"error": "only GET is answered here"});
            let mut response = json(StatusCode::METHOD_NOT_ALLOWED, &error);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            response
        }
        _ => {
            let error = serde_json::json!({"error": "only /livez, /readyz and /metrics are here"});
            json(StatusCode::NOT_FOUND, &error)
        }
    }
}

fn status(good: bool) -> StatusCode {
    if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

fn json(status: StatusCode, body: &impl Serialize) -> Response<String> {
    // Reports hold only texts and numbers; an empty body still has the status that counts.
    let body = serde_json::to_string(body).unwrap_or_default();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
