//! Answers pings.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http_body_util::BodyExt as _;
use sexton_model::check::MAX_BODY_BYTES;
use sexton_operations::pings::{self, Creation, NewPing, PingTarget, key_hash};
use sexton_store::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::address::{Addressee, PingAddress, parse};
use super::recorder::{Recorded, Recorder};
use crate::rate_limit::RateLimit;

/// Bytes of a body that are read, and all but the first thrown away, so that a client that sends more still gets its answer.
const MAX_READ_BYTES: usize = 1024 * 1024;
/// Longest time for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time to create a check, the wait for others that do among it.
const CREATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Characters of a client's name that are kept.
const MAX_AGENT_CHARS: usize = 200;

/// What a ping needs.
#[derive(Clone, Debug)]
pub struct Pings {
    /// The database.
    pub store: Store,
    /// Writes pings.
    pub recorder: Recorder,
    /// Limits the pings of a check.
    pub limit: Arc<RateLimit>,
    /// Whose turn it is to create a check.
    pub creations: Arc<Semaphore>,
}

/// Returns the routes below `/ping/`.
pub fn routes(pings: Pings) -> Router {
    Router::new().route("/ping/{*path}", any(ping)).with_state(pings)
}

async fn ping(
    State(pings): State<Pings>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    if ![Method::GET, Method::HEAD, Method::POST].contains(request.method()) {
        return answer(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered here");
    }
    let address = match parse(&path, query.as_deref().unwrap_or_default()) {
        Ok(address) => address,
        Err(error @ super::address::AddressError::NotFound) => {
            return answer(StatusCode::NOT_FOUND, &error.to_string());
        }
        Err(error) => return answer(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    if let Err(wait) = pings.limit.take(&address.addressee, Instant::now()) {
        return later(
            StatusCode::TOO_MANY_REQUESTS,
            "rate limited: too many pings of this check",
            wait,
        );
    }
    let agent = agent(request.headers());
    let Ok(body) = timeout(BODY_TIMEOUT, read(request.into_body())).await else {
        return answer(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    };
    let ping = new_ping(&address, body, agent);
    match pings.recorder.record(ping.clone()).await {
        Recorded::Yes => answer(StatusCode::OK, "OK"),
        Recorded::Unavailable => unavailable(),
        Recorded::NoCheck if address.create => create(&pings, ping).await,
        Recorded::NoCheck => answer(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Creates the check that a ping wants, and records the ping.
async fn create(pings: &Pings, ping: NewPing) -> Response {
    let PingTarget::Name { key, name } = &ping.target else {
        return answer(StatusCode::NOT_FOUND, "not found");
    };
    // One after the other: those of one key wait for each other anyway, and must not take up the connections that record pings.
    let creating = async {
        let _turn = pings.creations.acquire().await;
        pings::create(&pings.store, key, name).await
    };
    let created = match timeout(CREATE_TIMEOUT, creating).await {
        Ok(Ok(Creation::Exists { created })) => created,
        Ok(Ok(Creation::UnknownKey)) => return answer(StatusCode::NOT_FOUND, "not found"),
        Ok(Ok(Creation::TooMany)) => {
            let full = "this key has as many checks as it may create; delete some, or define this one with `sexton checks apply`";
            return answer(StatusCode::FORBIDDEN, full);
        }
        Ok(Ok(Creation::NameTaken)) => {
            return answer(
                StatusCode::CONFLICT,
                "a check of this name belongs to another key, or to none",
            );
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "a check could not be created for a ping");
            return unavailable();
        }
        Err(_) => return unavailable(),
    };
    match pings.recorder.record(ping).await {
        Recorded::Yes if created => answer(StatusCode::CREATED, "Created"),
        Recorded::Yes => answer(StatusCode::OK, "OK"),
        Recorded::NoCheck => answer(StatusCode::NOT_FOUND, "not found"),
        Recorded::Unavailable => unavailable(),
    }
}

fn new_ping(address: &PingAddress, body: Option<String>, agent: Option<String>) -> NewPing {
    let target = match &address.addressee {
        Addressee::Id(id) => PingTarget::Id(*id),
        Addressee::Name { key, name } => {
            PingTarget::Name { key: key_hash(key), name: name.clone() }
        }
    };
    NewPing {
        target,
        kind: address.kind,
        exit_code: address.exit_code,
        rid: address.rid,
        body,
        agent,
    }
}

/// Reads the beginning of a body. What a client breaks off counts as what it sent: the ping matters more.
async fn read(mut body: Body) -> Option<String> {
    let mut kept = Vec::new();
    let mut read = 0;
    while !body.is_end_stream()
        && let Some(Ok(frame)) = body.frame().await
    {
        let Ok(data) = frame.into_data() else { continue };
        let room = MAX_BODY_BYTES - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        read += data.len();
        if read >= MAX_READ_BYTES {
            break;
        }
    }
    let text = String::from_utf8_lossy(&kept).replace('\0', "\u{fffd}");
    (!text.is_empty()).then_some(text)
}

fn agent(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    Some(agent.chars().take(MAX_AGENT_CHARS).collect())
}

fn unavailable() -> Response {
    let wait = Duration::from_secs(5);
    later(
        StatusCode::SERVICE_UNAVAILABLE,
        "the database did not record the ping in time; send it again",
        wait,
    )
}

fn later(status: StatusCode, text: &str, wait: Duration) -> Response {
    let mut response = answer(status, text);
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn answer(status: StatusCode, text: &str) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        // Web pages may ping, too.
        (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    let mut response = (status, headers, text.to_owned()).into_response();
    let limit = HeaderValue::from(MAX_BODY_BYTES);
    response.headers_mut().insert("ping-body-limit", limit);
    response
}
