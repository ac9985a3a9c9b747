//! `/log-in`, also by an identity provider, `/log-out`, and `/set-up` of the first account.

mod provider;
mod set_up;

use askama::Template;
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use sexton_operations::error::OperationError;
use sexton_operations::passwords::Password;
use url::Url;

use self::provider::ProviderLink;
use super::shell::form::Form;
use super::shell::frame::{Frame, Section, html};
use super::shell::query::PageQuery;
use super::shell::refusal::{Refusal, with_status_of};
use super::shell::visit::Site;
use crate::access::client::Client;
use crate::access::provider::CALLBACK_PATH;
use crate::access::same_origin::refuse_other_sites;
use crate::access::session::{self, LogInRefusal};
use crate::access::set_up::is_open;
use crate::problem::Problem;

/// Longest form of people whom nobody knows yet.
const MAX_FORM_BYTES: usize = 8 * 1024;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/log-in", get(show).post(log_in))
        .route(provider::PATH, get(provider::begin))
        .route(CALLBACK_PATH, get(provider::finish))
        .route("/log-out", post(log_out))
        .route(set_up::PATH, get(set_up::show).post(set_up::create))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// Where to go then.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogInQuery {
    next: String,
}

/// The form of a log-in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogInForm {
    #[serde(default)]
    name: String,
    #[serde(default = "no_password")]
    password: Password,
    #[serde(default)]
    next: String,
}

fn no_password() -> Password {
    Password::new(String::new())
}

#[derive(Debug, Template)]
#[template(path = "log_in/show.html")]
struct LogInPage {
    frame: Frame,
    name: String,
    next: String,
    problem: Option<String>,
    provider: Option<ProviderLink>,
}

impl LogInPage {
    fn new(site: &Site, next: &str) -> Self {
        let frame = Frame::of_nobody(site, Section::Other);
        let provider = ProviderLink::of(site, next);
        Self { frame, name: String::new(), next: next.to_owned(), problem: None, provider }
    }
}

/// The client of a request without a caller. Nobody on the way may read what it sends.
struct Stranger(Client);

impl FromRequestParts<Site> for Stranger {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Refusal> {
        let path = format!("{}{}", site.base, parts.uri);
        let client = Client::from_request_parts(parts, &site.backend).await;
        let client = client.map_err(|problem| Refusal::new(problem, site, path.clone()))?;
        // Before the form is shown, so that nobody types a password into it.
        if !client.may_send_passwords() {
            return Err(Refusal::new(LogInRefusal::NotSecure.into(), site, path));
        }
        let is_reading = parts.method == Method::GET;
        if !is_reading {
            refuse_other_sites(&parts.headers)
                .map_err(|problem| Refusal::new(problem, site, path))?;
        }
        Ok(Self(client))
    }
}

async fn show(
    State(site): State<Site>,
    _: Stranger,
    query: PageQuery<LogInQuery>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let open = is_open(&site.backend).await;
    let path = format!("{}{uri}", site.base);
    let refuse = |error: OperationError| Refusal::new(error.into(), &site, path).of_reading(true);
    if open.map_err(refuse)? {
        return Ok(Redirect::to(&format!("{}{}", site.base, set_up::PATH)).into_response());
    }
    Ok(html(&LogInPage::new(&site, &query.values.next)))
}

async fn log_in(
    State(site): State<Site>,
    Stranger(client): Stranger,
    headers: HeaderMap,
    Form(LogInForm { name, password, next }): Form<LogInForm>,
) -> Result<Response, Refusal> {
    match session::log_in(&site.backend, &client, &headers, (name.trim(), &password)).await {
        Ok(cookie) => Ok((cookie, Redirect::to(&destination(&site.base, &next))).into_response()),
        Err(refusal) => {
            let mut page = LogInPage::new(&site, &next);
            (page.name, page.problem) = (name, Some(refusal.to_string()));
            Ok(in_status(refusal, html(&page)))
        }
    }
}

/// Gives a page the status of what it says.
fn in_status(problem: impl Into<Problem>, page: Response) -> Response {
    with_status_of(&problem.into(), page)
}

async fn log_out(
    State(site): State<Site>,
    Stranger(client): Stranger,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let cookie = session::log_out(&site.backend, &client, &headers).await;
    let refuse = |problem| Refusal::new(problem, &site, format!("{}/me", site.base));
    let cookie = cookie.map_err(refuse)?;
    Ok((cookie, Redirect::to(&format!("{}/log-in", site.base))).into_response())
}

/// Only addresses of this console: a link may lead nobody elsewhere.
fn destination(base: &str, next: &str) -> String {
    let is_plain = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_plain && is_below(base, next) { next.to_owned() } else { format!("{base}/") }
}

/// As browsers read it: `/console/../other` leads to `/other`.
fn is_below(base: &str, next: &str) -> bool {
    let read = Url::parse("http://here.invalid/").and_then(|here| here.join(next));
    let Ok(url) = read else { return false };
    let rest = url.path().strip_prefix(base);
    url.host_str() == Some("here.invalid")
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_addresses_of_this_console_alone() {
        for next in ["/", "/failed?job=a&q=%2F%2Fb", "/jobs/a.b#c", "/a/../jobs"] {
            assert_eq!(destination("", next), next);
        }
        for next in [
            "",
            "jobs",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/a b",
            "/ä",
            "javascript:x",
        ] {
            assert_eq!(destination("", next), "/", "{next}");
        }
        for next in ["/ops/x", "/ops/x/", "/ops/x/jobs?a=b", "/ops/x?a=b"] {
            assert_eq!(destination("/ops/x", next), next);
        }
        for next in ["/", "/jobs", "/ops/xy", "/ops", "/ops/x/../y", "/ops/x/%2e%2E/y", "//ops/x"] {
            assert_eq!(destination("/ops/x", next), "/ops/x/", "{next}");
        }
    }
}
