//! Refusals and failures, as `application/problem+json` (RFC 9457).

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use sexton_model::access::Role;
use sexton_model::log_throttle::LogThrottle;
use sexton_operations::error::{Conflict, InvalidRequest, NotFound, OperationError};
use sexton_store::StoreError;
use utoipa::ToSchema;

/// When a client may come again after 503, in seconds.
const RETRY_SECONDS: u64 = 5;
/// One line a minute about a database that is away.
static UNAVAILABLE: LazyLock<LogThrottle> = LazyLock::new(LogThrottle::default);
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: (HeaderName, HeaderValue) =
    (axum::http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// What kind of refusal it is: one for each reaction of a client. The words do not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// 400, 404, 405, 413, 415, 422, 428: the request cannot be understood, or its values are not allowed. Correct it.
    Invalid,
    /// 401: the request names no caller. Send a token.
    Unauthenticated,
    /// 403: the sender may not do this. Ask for a token with the role that it names.
    Forbidden,
    /// 404: there is no such object.
    NotFound,
    /// 409, 412: the object's state does not allow it. Look at it again.
    Conflict,
    /// 429: too many requests, or too many failed log-ins. Send it again after `Retry-After`.
    RateLimited,
    /// 503: the database is away, or somebody else holds a lock. Send it again after `Retry-After`.
    Unavailable,
    /// 503: the database takes too long. Narrow the request, or send it again after `Retry-After`.
    TooSlow,
    /// 500: a fault of the server, which its log describes.
    Internal,
}

/// One thing that is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ProblemPlace {
    /// A JSON pointer into the request's body (RFC 6901), such as `/params/order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The name of a parameter in the path or the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// A file, and the line in it, for requests that bring one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is wrong there.
    #[serde(serialize_with = "without_colon")]
    pub detail: String,
}

/// Writes a text that may be read behind a name and a colon, as [`InvalidRequest::Field`] has it, by itself.
fn without_colon<S: Serializer>(detail: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(detail.trim_start_matches(": "))
}

/// Why a request was refused or failed. Unless `code` is `unavailable`, `too_slow` or `internal`, nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// What kind of refusal it is.
    pub code: ProblemCode,
    /// The meaning of the status, in a few words.
    pub title: String,
    /// What happened, and what helps.
    pub detail: String,
    /// Everything that is wrong with the request, each with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemPlace>,
    /// When to come again, in seconds, for the header.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// Makes the answer for `status`.
    pub fn new(status: StatusCode, code: ProblemCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default().to_owned();
        let retry = matches!(code, ProblemCode::Unavailable | ProblemCode::TooSlow);
        let retry_after = retry.then_some(RETRY_SECONDS);
        let (status, detail) = (status.as_u16(), detail.into());
        Self { status, code, title, detail, errors: Vec::new(), retry_after }
    }

    /// 400, with a place.
    pub fn invalid(place: ProblemPlace) -> Self {
        let name = place.parameter.as_ref().or(place.pointer.as_ref());
        // The empty pointer is the whole body.
        let detail = match name.filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}: {}", place.detail),
            None => place.detail.clone(),
        };
        let errors = vec![place];
        Self { errors, ..Self::new(StatusCode::BAD_REQUEST, ProblemCode::Invalid, detail) }
    }

    /// 401.
    pub fn unauthenticated(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ProblemCode::Unauthenticated, detail)
    }

    /// 403.
    pub fn forbidden(name: &str, role: Role, needed: Role) -> Self {
        let (role, needed) = (role.as_str(), needed.as_str());
        let detail = format!("{name} has the role {role}; this needs the role {needed}");
        Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail)
    }

    /// 403, of a caller who is restricted to jobs.
    fn out_of_scope(detail: &str) -> Self {
        let detail = format!("your token or account is {detail}");
        Self::new(StatusCode::FORBIDDEN, ProblemCode::Forbidden, detail)
    }

    /// 400, with everything that is wrong, each with its place.
    pub fn several(mut places: Vec<ProblemPlace>) -> Self {
        if places.len() == 1 {
            return Self::invalid(places.remove(0));
        }
        let lines = places.iter().map(|place| Self::invalid(place.clone()).detail);
        let detail = lines.collect::<Vec<_>>().join("\n");
        Self { errors: places, ..Self::new(StatusCode::BAD_REQUEST, ProblemCode::Invalid, detail) }
    }

    /// 429, with when to come again.
    pub fn rate_limited(detail: impl Into<String>, wait: Duration) -> Self {
        let seconds = retry_seconds(wait);
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, ProblemCode::RateLimited, detail);
        Self { retry_after: Some(seconds), ..problem }
    }

    /// Names parameters of operations as fields of the body that they came in.
    #[must_use]
    pub fn in_body(self, fields: &[(&str, &str)]) -> Self {
        self.below("", fields)
    }

    /// As [`Self::in_body`], for fields of the object at `pointer` in the body.
    #[must_use]
    pub fn below(mut self, pointer: &str, fields: &[(&str, &str)]) -> Self {
        for place in &mut self.errors {
            if let Some(name) = place.parameter.take() {
                let field = fields.iter().find(|(parameter, _)| *parameter == name);
                let field = field.map_or(name.as_str(), |(_, field)| field);
                place.pointer = Some(format!("{pointer}/{field}"));
            }
        }
        self
    }

    /// 503, with when to come again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::Unavailable, detail)
    }
}

/// A wait in whole seconds, for people and headers.
pub fn retry_seconds(wait: Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}

impl ProblemPlace {
    fn field(name: &str, detail: &str) -> Self {
        Self { parameter: Some(name.to_owned()), ..Self::general(detail.to_owned()) }
    }

    /// What is wrong at `pointer` in the request's body.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), ..Self::general(detail.into()) }
    }

    /// What is wrong in a line of a file; `detail` names the file.
    fn in_file(line: Option<usize>, detail: String) -> Self {
        Self { line: line.map(|line| line as u64), ..Self::general(detail) }
    }

    const fn general(detail: String) -> Self {
        Self { pointer: None, parameter: None, line: None, detail }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A struct of texts is always JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, PROBLEM_JSON), NO_STORE], body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<OperationError> for Problem {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Invalid(invalid) => invalid.into(),
            OperationError::NotFound(missing) => missing.into(),
            OperationError::Conflict(conflict) => conflict.into(),
            OperationError::OutOfScope(text) => Self::out_of_scope(&text),
            OperationError::Failed(text) => Self::unavailable(text),
            OperationError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidRequest> for Problem {
    fn from(invalid: InvalidRequest) -> Self {
        let detail = invalid.to_string();
        let errors = places(invalid);
        Self { errors, ..Self::new(StatusCode::BAD_REQUEST, ProblemCode::Invalid, detail) }
    }
}

/// Everything that is wrong, each with its place.
fn places(invalid: InvalidRequest) -> Vec<ProblemPlace> {
    match invalid {
        InvalidRequest::Field { field, problem } | InvalidRequest::Ahead { field, problem } => {
            vec![ProblemPlace::field(field, &problem)]
        }
        InvalidRequest::Params { mismatches, .. } => mismatches
            .iter()
            .map(|one| ProblemPlace::at(one.pointer_in_body(), one.describe()))
            .collect(),
        InvalidRequest::Items(problems) => problems
            .into_iter()
            .map(|one| match one.index {
                Some(index) => ProblemPlace::at(format!("/items/{index}"), one.problem),
                None => ProblemPlace::general(one.problem),
            })
            .collect(),
        InvalidRequest::JobsFile(problems) => problems
            .iter()
            .map(|problem| ProblemPlace::in_file(problem.line, problem.to_string()))
            .collect(),
        InvalidRequest::AlertsFile(problems) => problems
            .iter()
            .map(|problem| ProblemPlace::in_file(problem.line, problem.to_string()))
            .collect(),
        InvalidRequest::RangesFile(problems) => problems
            .into_iter()
            .map(|problem| {
                let line = Some(problem.line as u64);
                ProblemPlace { line, ..ProblemPlace::general(problem.to_string()) }
            })
            .collect(),
        InvalidRequest::Several(all) => all
            .into_iter()
            .flat_map(|one| match one {
                OperationError::Invalid(invalid) => places(invalid),
                other => vec![ProblemPlace::general(other.to_string())],
            })
            .collect(),
        other => vec![ProblemPlace::general(other.to_string())],
    }
}

impl From<NotFound> for Problem {
    fn from(missing: NotFound) -> Self {
        let similar = match &missing {
            NotFound::Job { similar, .. } | NotFound::Group { similar, .. } => similar.join(", "),
            NotFound::ServedPool { served, .. } => served.join(", "),
            _ => String::new(),
        };
        let detail = match (&missing, similar.is_empty()) {
            (_, true) => missing.to_string(),
            (NotFound::ServedPool { .. }, false) => {
                format!("{missing}; workers consume from {similar}")
            }
            (_, false) => format!("{missing}; similar: {similar}"),
        };
        Self::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, detail)
    }
}

impl From<Conflict> for Problem {
    fn from(conflict: Conflict) -> Self {
        let detail = match &conflict {
            Conflict::Execution { last: Some((action, when)), .. } => {
                let (what, who) = (&action.action, &action.actor);
                format!("{conflict}; the last action on it was {what} by {who}, {when}")
            }
            _ => conflict.to_string(),
        };
        let status = match conflict {
            Conflict::JobChanged { .. } => StatusCode::PRECONDITION_FAILED,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, ProblemCode::Conflict, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                if UNAVAILABLE.permits(Instant::now()) {
                    tracing::warn!("the API cannot answer: {error}");
                }
                Self::unavailable("the database does not answer; the server's log says more")
            }
            StoreError::TooSlow(_) => {
                let detail = "the database takes too long for this: somebody may hold a lock. Narrow what you look for by job, state or \
                              time, or send it again; of a change, look first whether it was made";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooSlow, detail)
            }
            StoreError::OutOfScope(_) => Self::out_of_scope(&error.to_string()),
            StoreError::Data(_) => {
                let detail = "the database refuses a value of the request".to_owned();
                Self::invalid(ProblemPlace::general(detail))
            }
            _ => {
                tracing::error!("the API cannot answer: {error}");
                let detail = "the server cannot answer; its log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, detail)
            }
        }
    }
}
