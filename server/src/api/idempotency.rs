//! `Idempotency-Key`: a POST that is sent again with its key is not carried out again.
//!
//! The key is claimed before the request is carried out, and its answer is kept afterwards. From the claim on the work goes on if the client
//! leaves, so that a client who sends the request again gets the answer. A request that was refused frees its key: it has changed nothing. After
//! a failure of the server nobody knows whether it was carried out, and the key says so.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MATCH, LOCATION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value};
use sexton_operations::digest::{SHA256_BYTES, sha256};
use sexton_operations::request_keys::{
    KeptAnswer, KeyClaim, MAX_KEPT_BYTES, RequestKey, check_key, claim, finish, release,
};
use sexton_store::Store;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{BASE_PATH, MAX_BODY_BYTES, REQUEST_TIMEOUT};
use crate::access::{Allowed, Backend, Viewer};
use crate::problem::{Problem, ProblemCode, ProblemPlace};

/// The header with the key.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of an answer that was kept.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Headers of answers that are kept.
const KEPT_HEADERS: [HeaderName; 3] = [CONTENT_TYPE, ETAG, LOCATION];
/// Requests with keys that are carried out at the same time, those whose clients have left among them.
static KEYED: Semaphore = Semaphore::const_new(32);
/// After this a request without an answer gets none: the claim of its key has taken 40 s at most, its work [`REQUEST_TIMEOUT`], and the
/// record of its answer 40 s. The database's answers are waited for no longer, and the rest is for the steps between.
const IN_FLIGHT_MS: i64 = 150_000;

/// POST requests of viewers that only read, below [`BASE_PATH`]. They are carried out whenever they are sent, and their keys are ignored.
const READING_POSTS: [&str; 5] =
    ["/cron:lint", "/cron:next", "/jobs:lint", "/jobs:preview", "/lock-keys:derive"];

/// Marks an answer with a secret, which is stored nowhere.
#[derive(Clone, Copy, Debug)]
pub struct NotKept;

/// A key, and what is needed to claim it and to record its answer.
struct KeyedRequest {
    store: Store,
    caller: String,
    key: String,
    request: [u8; SHA256_BYTES],
}

fn only_reads(path: &str) -> bool {
    path.strip_prefix(BASE_PATH).is_some_and(|route| READING_POSTS.contains(&route))
}

/// Returns whether a POST to a path may have a key. One of [`READING_POSTS`] needs none. One that brings a password has none: even its hash is
/// stored nowhere.
pub(super) fn takes_key(path: &str) -> bool {
    !only_reads(path)
        && !["/session", "/password", "/accounts"].iter().any(|end| path.ends_with(end))
}

/// Carries a request out, unless it was carried out before with the same key.
pub(super) async fn once(State(backend): State<Backend>, request: Request, next: Next) -> Response {
    let has_key =
        request.method() == Method::POST && request.headers().contains_key(IDEMPOTENCY_KEY);
    if !has_key || only_reads(request.uri().path()) {
        return next.run(request).await;
    }
    if !takes_key(request.uri().path()) {
        return wrong_key("requests with a password take no key").into_response();
    }
    carry_out(backend, request, next).await.unwrap_or_else(Problem::into_response)
}

async fn carry_out(backend: Backend, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let allowed = Allowed::<Viewer>::from_request_parts(&mut parts, &backend).await?;
    let key = read_key(&parts.headers)?;
    let bytes = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| {
        let detail = "the body is longer than 4 MiB, or did not arrive";
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, ProblemCode::Invalid, detail)
    })?;
    let keyed = KeyedRequest {
        store: allowed.writes(),
        caller: allowed.caller().name.clone(),
        key,
        request: hash(&parts, &bytes),
    };
    // Before the claim: a client that leaves while it waits has claimed nothing. The semaphore is never closed.
    let turn = KEYED.acquire().await;
    let request = Request::from_parts(parts, Body::from(bytes));
    let work = backend.background_work().spawn(async move {
        let _turn = turn;
        claim_and_answer(&keyed, request, next).await
    });
    work.await.unwrap_or_else(|_| {
        let detail = "the request was cut short; whether it changed anything is unknown";
        Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, detail))
    })
}

/// Claims the key, and answers: if it is new, by carrying the request out.
async fn claim_and_answer(
    keyed: &KeyedRequest,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match claim(&keyed.store, keyed.as_key()).await? {
        KeyClaim::New => {}
        KeyClaim::Finished(answer) => return replay(answer),
        KeyClaim::Unfinished { age_ms } => return Ok(unfinished(age_ms)),
        KeyClaim::OtherRequest => return Err(other_request()),
    }
    let answered = timeout(REQUEST_TIMEOUT, next.run(request)).await;
    let response = answered.unwrap_or_else(|_| {
        let detail = "the request took more than 60 s; whether it changed anything is unknown";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooSlow, detail).into_response()
    });
    Ok(record(keyed, response).await)
}

impl KeyedRequest {
    fn as_key(&self) -> RequestKey<'_> {
        RequestKey { caller: &self.caller, key: &self.key, request: &self.request }
    }
}

fn read_key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut all = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = all.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    if all.next().is_some() {
        return Err(wrong_key("is there twice"));
    }
    check_key(key)?;
    Ok(key.to_owned())
}

/// 400, with the header as the place.
fn wrong_key(detail: &str) -> Problem {
    Problem::invalid(place_of_key(detail))
}

fn place_of_key(detail: &str) -> ProblemPlace {
    ProblemPlace {
        pointer: None,
        parameter: Some("Idempotency-Key".to_owned()),
        line: None,
        detail: detail.to_owned(),
    }
}

/// What makes two requests the same: where they go, on which condition, and what they bring.
fn hash(parts: &Parts, body: &Bytes) -> [u8; SHA256_BYTES] {
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let condition = parts.headers.get(IF_MATCH).map_or(&b""[..], HeaderValue::as_bytes);
    // No line of a request has a line feed in it.
    sha256(&[target.as_bytes(), b"\n", condition, b"\n", body])
}

/// Records what became of a request.
async fn record(keyed: &KeyedRequest, response: Response) -> Response {
    let status = response.status();
    let (response, recorded) = if status.is_success() {
        keep(keyed, response).await
    } else if status.is_server_error() {
        let unknown = KeptAnswer { status: status.as_u16(), headers: Value::Null, body: None };
        (response, finish(&keyed.store, keyed.as_key(), &unknown).await)
    } else {
        (response, release(&keyed.store, keyed.as_key()).await)
    };
    if let Err(error) = recorded {
        tracing::warn!("the answer to a request with an Idempotency-Key was not recorded: {error}");
    }
    response
}

async fn keep(
    keyed: &KeyedRequest,
    response: Response,
) -> (Response, Result<(), sexton_operations::error::OperationError>) {
    let is_secret = response.extensions().get::<NotKept>().is_some();
    let (parts, body) = response.into_parts();
    // Handlers answer from memory.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let headers: Map<String, Value> = KEPT_HEADERS
        .iter()
        .filter_map(|name| {
            let text = parts.headers.get(name)?.to_str().ok()?;
            Some((name.to_string(), Value::from(text)))
        })
        .collect();
    let is_kept = !is_secret && bytes.len() <= MAX_KEPT_BYTES;
    let answer = KeptAnswer {
        status: parts.status.as_u16(),
        headers: Value::Object(headers),
        body: is_kept.then(|| bytes.to_vec()),
    };
    let recorded = finish(&keyed.store, keyed.as_key(), &answer).await;
    (Response::from_parts(parts, Body::from(bytes)), recorded)
}

/// Answers as the request was answered that came first.
fn replay(answer: KeptAnswer) -> Result<Response, Problem> {
    let KeptAnswer { status, headers, body } = answer;
    let conflict =
        |detail: String| Problem::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail);
    if status >= 500 {
        return Err(conflict(format!(
            "the request that came first with this key ended with {status}, and whether it was carried out is unknown: look, then send it \
             with another key"
        )));
    }
    let Some(body) = body else {
        return Err(conflict(format!(
            "the request was carried out with {status}; its answer is not kept, because it has more than 64 KiB or a secret. Look for \
             what it made"
        )));
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    for name in KEPT_HEADERS {
        let text = headers.get(name.as_str()).and_then(Value::as_str);
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn unfinished(age_ms: i64) -> Response {
    let is_in_flight = age_ms < IN_FLIGHT_MS;
    let detail = if is_in_flight {
        "the request that came first with this key is still being carried out; send it again after `Retry-After` seconds"
    } else {
        "the server ended while it carried out the request that came first with this key, and whether it did is unknown: look, then send \
         it with another key"
    };
    let mut response =
        Problem::new(StatusCode::CONFLICT, ProblemCode::Conflict, detail).into_response();
    if is_in_flight {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn other_request() -> Problem {
    let detail = "the key stands for another request; take a new key for each request";
    let errors = vec![place_of_key(detail)];
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Problem { errors, ..Problem::new(status, ProblemCode::Invalid, detail) }
}
