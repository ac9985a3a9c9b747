//! The API below `/api/v1`, over `operations` alone.
//!
//! Its documents are those that the command line prints with `--json`. Every answer that is no success is a [`Problem`]. Each handler
//! is described for OpenAPI where it is written; [`openapi`] is the whole description, and the file `server/openapi.json` its committed
//! form.

pub mod accounts;
pub mod alerts;
pub mod approvals;
pub mod audit;
pub mod backfills;
pub mod bulk_requests;
pub mod bulks;
pub mod catch_up;
pub mod channels;
pub mod check_files;
pub mod cron;
pub mod edits;
pub mod enqueue;
pub mod examination;
pub mod executions;
pub mod extract;
pub mod failures;
pub mod file_request;
mod filtered;
pub mod groups;
pub mod idempotency;
pub mod incidents;
pub mod job_definitions;
pub mod job_files;
pub mod job_previews;
pub mod jobs;
pub mod ledger;
pub mod lock_keys;
pub mod locks;
pub mod me;
pub mod monitors;
pub mod next_firings;
pub mod notifications;
pub mod openapi;
pub mod paging;
mod parameters;
pub mod ping_keys;
pub mod platform;
pub mod preconditions;
mod registry;
pub mod schedulers;
pub mod session;
pub mod tokens;
pub mod trigger_many;
pub mod unknown_messages;

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::examination::Examiner;
pub(crate) use self::extract::read_query;
pub(crate) use self::filtered::filtered_query;
pub use self::parameters::{
    Items, MAX_FILE_NAME_BYTES, PageParameters, PageSize, Reason, ReasonBody, RequiredReason,
    file_name, grant, job_scope, problem_of_field, problem_of_parameter, reason, required_reason,
};
use self::registry::Registry;
use crate::access::Backend;
use crate::problem::{Problem, ProblemCode};

/// Below which path the API is.
pub const BASE_PATH: &str = "/api/v1";
/// Longest body.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Longest body of people whom nobody knows yet.
const MAX_LOG_IN_BYTES: usize = 8 * 1024;
/// Longest time of a request, that of a body included.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// Requests that are answered at the same time; others wait. A page of large params may have tens of megabytes.
static TURNS: Semaphore = Semaphore::const_new(32);
const NO_REFERRER: (HeaderName, HeaderValue) =
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));

/// The description, as it is committed; its `servers` are those of a server without a base path.
const DESCRIPTION: &str = include_str!("../../openapi.json");

/// Registers the routes.
fn register<R: Registry>() -> R {
    let strangers =
        R::empty().routes(routes!(session::log_in, session::log_out)).limited_to(MAX_LOG_IN_BYTES);
    let api = R::empty()
        .routes(routes!(me::show))
        .routes(routes!(me::replace_password))
        .routes(routes!(accounts::list, accounts::create))
        .routes(routes!(accounts::set_password))
        .routes(routes!(accounts::set_role))
        .routes(routes!(accounts::disable))
        .routes(routes!(accounts::enable))
        .routes(routes!(accounts::end_sessions))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(jobs::list, job_definitions::create))
        .routes(routes!(schedulers::create))
        .routes(routes!(next_firings::of_jobs))
        .routes(routes!(trigger_many::trigger_jobs))
        .routes(routes!(jobs::show, job_definitions::replace, job_files::delete))
        .routes(routes!(job_files::apply))
        .routes(routes!(job_previews::lint))
        .routes(routes!(job_previews::preview))
        .routes(routes!(cron::next))
        .routes(routes!(cron::lint))
        .routes(routes!(ledger::firings))
        .routes(routes!(enqueue::enqueue))
        .routes(routes!(enqueue::enqueue_each))
        .routes(routes!(jobs::pause))
        .routes(routes!(jobs::resume))
        .routes(routes!(jobs::trigger))
        .routes(routes!(trigger_many::trigger_each))
        .routes(routes!(backfills::backfill))
        .routes(routes!(next_firings::of_job))
        .routes(routes!(next_firings::clock_changes_of_job))
        .routes(routes!(next_firings::show_policy))
        .routes(routes!(catch_up::show, catch_up::decide))
        .routes(routes!(executions::list))
        .routes(routes!(executions::show))
        .routes(routes!(ledger::execution))
        .routes(routes!(executions::cancel))
        .routes(routes!(executions::output))
        .routes(routes!(failures::list))
        .routes(routes!(failures::count))
        .routes(routes!(failures::show))
        .routes(routes!(failures::requeue))
        .routes(routes!(failures::discard))
        .routes(routes!(failures::restore))
        .routes(routes!(edits::edit))
        .routes(routes!(groups::list))
        .routes(routes!(groups::show))
        .routes(routes!(groups::remark))
        .routes(routes!(bulks::list, bulk_requests::create))
        .routes(routes!(bulk_requests::preview))
        .routes(routes!(bulk_requests::restore))
        .routes(routes!(bulks::show))
        .routes(routes!(bulks::items))
        .routes(routes!(bulks::stop))
        .routes(routes!(bulks::resume))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show))
        .routes(routes!(approvals::approve))
        .routes(routes!(approvals::reject))
        .routes(routes!(approvals::list_rules))
        .routes(routes!(approvals::set_rule, approvals::delete_rule))
        .routes(routes!(incidents::list))
        .routes(routes!(incidents::show))
        .routes(routes!(incidents::acknowledge))
        .routes(routes!(incidents::silence))
        .routes(routes!(incidents::unsilence))
        .routes(routes!(incidents::resolve))
        .routes(routes!(channels::list))
        .routes(routes!(channels::test))
        .routes(routes!(alerts::show))
        .routes(routes!(alerts::apply))
        .routes(routes!(notifications::list))
        .routes(routes!(notifications::requeue))
        .routes(routes!(monitors::list))
        .routes(routes!(monitors::list_checks))
        .routes(routes!(monitors::show_check, check_files::delete))
        .routes(routes!(check_files::apply))
        .routes(routes!(monitors::pause_check))
        .routes(routes!(monitors::resume_check))
        .routes(routes!(ping_keys::list, ping_keys::create))
        .routes(routes!(ping_keys::delete))
        .routes(routes!(platform::list_workers))
        .routes(routes!(platform::show_worker))
        .routes(routes!(platform::list_flows))
        .routes(routes!(platform::show_flow))
        .routes(routes!(platform::audit_head))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::export))
        .routes(routes!(platform::cancel_flow))
        .routes(routes!(locks::list))
        .routes(routes!(locks::break_row))
        .routes(routes!(locks::list_ranges))
        .routes(routes!(lock_keys::assign))
        .routes(routes!(lock_keys::remove))
        .routes(routes!(lock_keys::import))
        .routes(routes!(lock_keys::check))
        .routes(routes!(lock_keys::derive))
        .routes(routes!(unknown_messages::list))
        .routes(routes!(unknown_messages::show))
        .routes(routes!(unknown_messages::body))
        .routes(routes!(unknown_messages::discard))
        .routes(routes!(unknown_messages::restore))
        .routes(routes!(examination::show_status))
        .routes(routes!(examination::list_pools))
        .routes(routes!(examination::show_doctor))
        .routes(routes!(examination::repair))
        .routes(routes!(platform::list_actions))
        .with(strangers);
    api.below(BASE_PATH)
}

/// Makes the description from the code.
pub fn description() -> OpenApi {
    let (_, mut description) = register::<OpenApiRouter<Backend>>().split_for_parts();
    openapi::complete(&mut description);
    description
}

/// Returns the description of a server with a base path.
fn document(base_path: &str) -> Bytes {
    if base_path.is_empty() {
        return Bytes::from_static(DESCRIPTION.as_bytes());
    }
    // The first address in it is that of the server. A base path has no characters that JSON would escape.
    let address = format!("\"url\": \"{base_path}/\"");
    DESCRIPTION.replacen("\"url\": \"/\"", &address, 1).into()
}

/// Returns the routes below [`BASE_PATH`], ready to serve.
pub fn routes(backend: Backend) -> Router {
    let path = format!("{BASE_PATH}/openapi.json");
    // Once for all requests.
    let document = document(&backend.base_path());
    let document = move || async move { ([(CONTENT_TYPE, "application/json")], document) };
    let once = from_fn_with_state(backend.clone(), idempotency::once);
    register::<Router<Backend>>()
        .with_state(backend)
        .route(&path, axum::routing::get(document))
        .route(BASE_PATH, axum::routing::any(not_found))
        .route(&format!("{BASE_PATH}/"), axum::routing::any(not_found))
        .route(&format!("{BASE_PATH}/{{*path}}"), axum::routing::any(not_found))
        .method_not_allowed_fallback(not_allowed)
        .layer(once)
        .layer(from_fn(paging::linked))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn(guarded))
}

/// Returns the routes, of which some look at the platform's servers by `examiner`.
pub fn routes_with(backend: Backend, examiner: Examiner) -> Router {
    routes(backend).layer(Extension(examiner))
}

/// Limits the number of requests at the same time and the time of each, and forbids everybody on the way to keep or to guess at its answer.
async fn guarded(request: Request, next: Next) -> Response {
    // The slow log-ins of strangers would take all turns; the others are known before a body is read.
    let is_log_in = request.uri().path() == format!("{BASE_PATH}{}", session::PATH);
    let answering = async {
        // It is never closed.
        let _turn = if is_log_in { None } else { TURNS.acquire().await.ok() };
        next.run(request).await
    };
    let answered = timeout(REQUEST_TIMEOUT, answering).await;
    let mut response = answered.unwrap_or_else(|_| {
        let detail = "the request took more than 60 s; whether it changed anything is unknown";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemCode::TooSlow, detail).into_response()
    });
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(NO_REFERRER.0, NO_REFERRER.1);
    response
}

async fn not_found() -> Problem {
    let detail =
        format!("there is no such route; {BASE_PATH}/openapi.json describes those there are");
    Problem::new(StatusCode::NOT_FOUND, ProblemCode::Invalid, detail)
}

async fn not_allowed() -> Problem {
    let detail =
        format!("the route has no such method; {BASE_PATH}/openapi.json describes those there are");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, ProblemCode::Invalid, detail)
}
