//! Accepts HTTP/1.1 connections within limits.
//!
//! Where all places are taken, a new connection ends the one whose client has been silent for longest: so clients that send or read slowly,
//! however many, keep out nobody. A connection on which a whole request is being answered stays; if all are such, new ones wait in the
//! system's queue. A drop of [`accept`] ends them all.

mod listening;
mod open_files;
mod places;
mod request_body;
#[cfg(test)]
mod tests;
mod watched;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use sexton_model::log_throttle::LogThrottle;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use listening::listen;
pub use open_files::raise_open_files;
use places::{Activity, Places};
pub use request_body::RequestBody;
use watched::Watched;

/// Pause after a failed accept (mostly for lack of file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// How soon it is looked again for a connection that may give way.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// What a client may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time.
    pub connections: usize,
    /// From the first byte of a request to the end of its head; with `keep_alive` also between two requests.
    pub head: Duration,
    /// Longest head, in bytes; 8192 or more.
    pub head_bytes: usize,
    /// Longest time in which a client takes nothing of its answer.
    pub stalled: Duration,
    /// Age at which a connection ends, when the request that has begun is answered.
    pub connection: Duration,
    /// Longest time for that answer, and for the one after `stopping`.
    pub last_answer: Duration,
    /// Whether a connection may bring several requests.
    pub keep_alive: bool,
}

/// Who sent a request, as the connection says; among the request's extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer(pub SocketAddr);

/// Accepts connections and answers their requests until `stopping` is cancelled; then answers those that have begun and ends.
pub async fn accept<S, B>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    stopping: CancellationToken,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + 'static,
{
    // Owned here, so that the connections end with the acceptor.
    let (mut connections, mut places) = (JoinSet::new(), Places::default());
    let (throttle, since) = (LogThrottle::default(), Instant::now());
    loop {
        let is_full = places.count() >= limits.connections;
        let may_accept = !is_full || places.is_any_silent();
        tokio::select! {
            () = stopping.cancelled() => break,
            Some(ended) = connections.join_next_with_id() => {
                places.leave(ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
            () = tokio::time::sleep(FULL_PAUSE), if !may_accept => {}
            accepted = listener.accept(), if may_accept => {
                match accepted {
                    Ok((stream, peer)) => {
                        if is_full {
                            places.end_longest_silent();
                        }
                        let activity = Arc::new(Activity::new(since));
                        let (service, shared) = (service.clone(), Arc::clone(&activity));
                        let service = service_fn(move |request: Request<Incoming>| {
                            let (mut head, body) = request.into_parts();
                            head.extensions.insert(Peer(peer));
                            let (body, answering) = RequestBody::new(body, Arc::clone(&shared));
                            let answer = service.call(Request::from_parts(head, body));
                            async move {
                                let answer = answer.await;
                                answering.end();
                                answer
                            }
                        });
                        let stream = Stream { stream, activity: Arc::clone(&activity) };
                        let task = connections.spawn(handle(stream, service, limits, stopping.clone()));
                        places.take(activity, task);
                    }
                    Err(error) => {
                        if throttle.permits(Instant::now()) {
                            tracing::warn!(%error, "connections cannot be accepted; raise the limit of open files, if that is it");
                        }
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// A connection, and what is known about it.
struct Stream {
    stream: TcpStream,
    activity: Arc<Activity>,
}

async fn handle<S, B>(stream: Stream, service: S, limits: Limits, stopping: CancellationToken)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send,
    S::Future: Send,
    B: Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + 'static,
{
    // Without it an answer waits up to 40 ms for the acknowledgement of what was sent before.
    let Stream { stream, activity } = stream;
    let _ = stream.set_nodelay(true);
    let stream = Watched::new(stream, activity, limits.stalled);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // Errors of clients are ignored: nothing is lost, and no action here helps.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopping.cancelled() => {}
        () = tokio::time::sleep(limits.connection) => {}
    }
    // The request that has begun is answered: its client could not know what became of it.
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(limits.last_answer, connection).await;
}
