//! `/log-in` and `/log-out`.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use sexton_operations::error::OperationError;
use sexton_operations::passwords::Password;

use super::shell::form::Form;
use super::shell::frame::{Frame, Section, html};
use super::shell::query::PageQuery;
use super::shell::refusal::Refusal;
use super::shell::visit::Site;
use crate::access::client::Client;
use crate::access::same_origin::refuse_other_sites;
use crate::access::session::{self, LogInRefusal};
use crate::access::set_up;
use crate::problem::Problem;
use crate::set_up_page;

/// Returns the routes.
pub(super) fn routes() -> Router<Site> {
    Router::new().route("/log-in", get(show).post(log_in)).route("/log-out", post(log_out))
}

/// Where to go then.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogInQuery {
    next: String,
}

/// Who logs in.
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
}

impl LogInPage {
    fn new(site: &Site, next: &str) -> Self {
        let frame = Frame::of_nobody(site, Section::Other);
        Self { frame, name: String::new(), next: next.to_owned(), problem: None }
    }
}

/// Returns the client of a request.
fn client(site: &Site, extensions: &Extensions, headers: &HeaderMap) -> Result<Client, Refusal> {
    let client = Client::of(extensions, headers, &site.backend);
    let unknown = || Problem::unauthenticated("nobody knows where this request comes from");
    client.ok_or_else(|| Refusal::new(unknown(), site, String::new()))
}

async fn show(State(site): State<Site>, query: PageQuery<LogInQuery>) -> Result<Response, Refusal> {
    let open = set_up::is_open(&site.backend).await;
    let refuse = |error: OperationError| Refusal::new(error.into(), &site, query.text().to_owned());
    if open.map_err(refuse)? {
        return Ok(Redirect::to(&format!("{}{}", site.base, set_up_page::PATH)).into_response());
    }
    Ok(html(&LogInPage::new(&site, &query.values.next)))
}

async fn log_in(
    State(site): State<Site>,
    extensions: Extensions,
    headers: HeaderMap,
    Form(LogInForm { name, password, next }): Form<LogInForm>,
) -> Result<Response, Refusal> {
    refuse_other_sites(&headers).map_err(|problem| Refusal::new(problem, &site, String::new()))?;
    let client = client(&site, &extensions, &headers)?;
    match session::log_in(&site.backend, &client, name.trim(), &password).await {
        Ok(cookie) => Ok((cookie, Redirect::to(&destination(&site, &next))).into_response()),
        Err(refusal) => {
            let mut page = LogInPage::new(&site, &next);
            (page.name, page.problem) = (name, Some(refusal.to_string()));
            Ok((status(&refusal), html(&page)).into_response())
        }
    }
}

fn status(refusal: &LogInRefusal) -> StatusCode {
    match refusal {
        LogInRefusal::Wrong => StatusCode::UNAUTHORIZED,
        LogInRefusal::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
        LogInRefusal::NotSecure => StatusCode::FORBIDDEN,
        LogInRefusal::Failed(problem) => {
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

async fn log_out(
    State(site): State<Site>,
    extensions: Extensions,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let refuse = |problem| Refusal::new(problem, &site, String::new());
    refuse_other_sites(&headers).map_err(refuse)?;
    let client = client(&site, &extensions, &headers)?;
    let cookie = session::log_out(&site.backend, &client, &headers).await.map_err(refuse)?;
    Ok((cookie, Redirect::to(&format!("{}/log-in", site.base))).into_response())
}

/// Only addresses of this console: a link may lead nobody elsewhere.
fn destination(site: &Site, next: &str) -> String {
    let is_here = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && next.starts_with(&*site.base);
    if is_here { next.to_owned() } else { format!("{}/", site.base) }
}
