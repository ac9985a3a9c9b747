//! `/log-in/oidc`: to the identity provider and back.
//!
//! A link leads there, not a form: the content security policy lets no form lead to another site.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::{LogInPage, LogInQuery, Stranger, destination, in_status};
use crate::access::client::Client;
use crate::access::provider::{self, Callback, ProviderRefusal};
use crate::pages::shell::frame::html;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Site;

/// The path that leads to the provider.
pub(super) const PATH: &str = "/log-in/oidc";

/// The way to the identity provider, on the page of the log-in.
#[derive(Debug)]
pub(super) struct ProviderLink {
    pub(super) host: String,
    pub(super) url: String,
}

impl ProviderLink {
    /// `None`: there is no provider. The address is the one to which the provider sends people back, so that the cookie is there then.
    pub(super) fn of(site: &Site, next: &str) -> Option<Self> {
        let provider = site.backend.provider()?;
        let next: String = byte_serialize(next.as_bytes()).collect();
        let url = provider.public_url(&format!("{}{PATH}?next={next}", site.base));
        Some(Self { host: provider.host().to_owned(), url })
    }
}

/// What a provider sends along. It may send more, which counts for nothing (RFC 6749, 4.1.2).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallbackQuery {
    state: String,
    code: String,
    error: String,
    iss: String,
}

pub(super) async fn begin(
    State(site): State<Site>,
    Stranger(client): Stranger,
    headers: HeaderMap,
    query: PageQuery<LogInQuery>,
) -> Result<Response, Refusal> {
    let next = &query.values.next;
    match provider::begin_log_in(&site.backend, &client, &headers, (&site.base, next)).await {
        Ok((cookie, url)) => Ok((cookie, Redirect::to(url.as_str())).into_response()),
        Err(refusal) => Ok(refused(&site, next, refusal)),
    }
}

pub(super) async fn finish(
    State(site): State<Site>,
    Stranger(client): Stranger,
    headers: HeaderMap,
    query: PageQuery<CallbackQuery>,
) -> Result<Response, Refusal> {
    let CallbackQuery { state, code, error, iss } = &query.values;
    let callback = Callback { state, code, error, issuer: iss };
    let finished =
        provider::finish_log_in(&site.backend, &client, &headers, (&site.base, callback)).await;
    match finished {
        Ok((session, next)) => {
            let to = Redirect::to(&destination(&site.base, &next));
            Ok(forgetting(&client, (session, to)))
        }
        Err(refusal) if refusal.ends_log_in() => {
            Ok(forgetting(&client, refused(&site, "", refusal)))
        }
        Err(refusal) => Ok(refused(&site, "", refusal)),
    }
}

/// Removes the cookie of a log-in that is over, whatever became of it.
fn forgetting(client: &Client, answer: impl IntoResponse) -> Response {
    match provider::forget(client) {
        Ok(forget) => (forget, answer).into_response(),
        Err(_) => answer.into_response(),
    }
}

/// The page of the log-in, on which people can log in with an account.
fn refused(site: &Site, next: &str, refusal: ProviderRefusal) -> Response {
    let mut page = LogInPage::new(site, next);
    page.problem = Some(refusal.to_string());
    in_status(refusal, html(&page))
}
