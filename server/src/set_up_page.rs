//! `/set-up`: the page that creates the first account, without scripts and without files.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;
use sexton_operations::passwords::Password;

use crate::access::Backend;
use crate::access::client::Client;
use crate::access::same_origin::refuse_other_sites;
use crate::access::session::{LogInRefusal, log_in};
use crate::access::set_up::{SetUpRefusal, create_admin, is_open};
use crate::problem::Problem;

/// Where the page is.
pub const PATH: &str = "/set-up";
const MAX_FORM_BYTES: usize = 8 * 1024;
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ),
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
];

#[derive(Debug, Deserialize)]
struct Form {
    code: String,
    name: String,
    password: Password,
}

/// Returns the page's route.
pub fn routes(backend: Backend) -> Router {
    Router::new()
        .route(PATH, get(show).post(submit))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .with_state(backend)
}

async fn show(State(backend): State<Backend>) -> Response {
    match is_open(&backend).await {
        Ok(true) => page(StatusCode::OK, &form("", None)),
        Ok(false) => page(StatusCode::NOT_FOUND, &paragraph(&SetUpRefusal::Over.to_string())),
        Err(error) => failed(&error.into()),
    }
}

async fn submit(
    State(backend): State<Backend>,
    client: Client,
    headers: HeaderMap,
    body: String,
) -> Response {
    if let Err(problem) = refuse_other_sites(&headers) {
        return failed(&problem);
    }
    let Ok(Form { code, name, password }) = serde_html_form::from_str(&body) else {
        return page(StatusCode::BAD_REQUEST, &form("", Some("a field is missing")));
    };
    let refused = match create_admin(&backend, &client, &code, &name, &password).await {
        Ok(()) => return created(&backend, &client, &name, &password).await,
        Err(refused) => refused,
    };
    let text = refused.to_string();
    match refused {
        SetUpRefusal::Over => page(StatusCode::NOT_FOUND, &paragraph(&text)),
        SetUpRefusal::LogIn(LogInRefusal::TooMany(wait)) => {
            failed(&Problem::rate_limited(text, wait))
        }
        SetUpRefusal::WrongCode | SetUpRefusal::LogIn(_) => {
            page(StatusCode::FORBIDDEN, &form(&name, Some(&text)))
        }
        SetUpRefusal::Failed(problem) => {
            let status = StatusCode::from_u16(problem.status);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            page(status, &form(&name, Some(&problem.detail)))
        }
    }
}

/// The person is logged in at once, unless that fails.
async fn created(backend: &Backend, client: &Client, name: &str, password: &Password) -> Response {
    let text = format!(
        "The account {name} exists, and is an admin. Others are created with sexton accounts create."
    );
    let page = page(StatusCode::CREATED, &paragraph(&text));
    match log_in(backend, client, name, password).await {
        Ok(cookie) => (cookie, page).into_response(),
        Err(_) => page,
    }
}

fn failed(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = page(status, &paragraph(&problem.detail));
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(axum::http::header::RETRY_AFTER, seconds.into());
    }
    response
}

fn page(status: StatusCode, content: &str) -> Response {
    let style = "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}\
                 label,input,button{display:block;width:100%;box-sizing:border-box}input{font:inherit;padding:.5rem;margin:0 0 1rem}\
                 button{font:inherit;padding:.6rem}[role=alert]{border-left:4px solid #c00;padding-left:.8rem}";
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Sexton: first account</title><style>{style}</style></head><body><main><h1>First account</h1>{content}</main></body>\
         </html>"
    );
    (status, HEADERS, Html(html)).into_response()
}

fn form(name: &str, problem: Option<&str>) -> String {
    let problem =
        problem.map_or_else(String::new, |text| format!("<p role=\"alert\">{}</p>", escape(text)));
    let name = escape(name);
    format!(
        "<p>Nobody can log in yet. This account will be an admin.</p>{problem}<form method=\"post\">\
         <label for=\"code\">Code, from the server's log</label>\
         <input id=\"code\" name=\"code\" required autocomplete=\"off\" autocapitalize=\"off\" spellcheck=\"false\">\
         <label for=\"name\">Name: lower-case letters, digits, dots, hyphens and underscores</label>\
         <input id=\"name\" name=\"name\" value=\"{name}\" required maxlength=\"63\" pattern=\"[a-z0-9][a-z0-9._\\-]*\" \
         autocomplete=\"username\" autocapitalize=\"off\" spellcheck=\"false\">\
         <label for=\"password\">Password, at least 12 characters</label>\
         <input id=\"password\" name=\"password\" type=\"password\" required minlength=\"12\" autocomplete=\"new-password\">\
         <button>Create</button></form>"
    )
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escape(text))
}

fn escape(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_typed_is_text_on_the_page() {
        let shown = form("\"><script>alert('x')</script>&", Some("<b>wrong</b>"));
        assert!(!shown.contains("<script") && !shown.contains("<b>"), "{shown}");
        assert!(
            shown.contains("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;"),
            "{shown}"
        );
    }
}
