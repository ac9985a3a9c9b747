//! `/settings/tokens`: the tokens of the API. A new one is shown once, in the answer to the form that creates it.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::duration;
use sexton_operations::tokens::{self, Token};

use crate::access::Admin;
use crate::api::{ReasonBody, grant, problem_of_parameter};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which tokens to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TokensQuery {
    /// Also those that are not accepted any more.
    all: bool,
}

#[derive(Debug, Template)]
#[template(path = "settings/tokens.html")]
struct TokensPage {
    frame: Frame,
    query: TokensQuery,
    tokens: Vec<Token>,
    /// The name and the text of one that was just created.
    created: Option<(String, String)>,
    role: Role,
}

impl TokensPage {
    fn roles(&self) -> [Role; 4] {
        Role::ALL
    }

    fn state(&self, token: &Token) -> &'static str {
        state(token, self.frame.now)
    }

    fn is_accepted(&self, token: &Token) -> bool {
        self.state(token) == "active"
    }

    fn command(&self) -> String {
        copy::command(&["tokens", "create", "ci", "--role", "operator", "--valid-for", "90d"])
    }

    fn request(&self) -> String {
        let body = json!({"name": "ci", "role": "operator", "valid_for_s": 7_776_000});
        copy::request("POST", "/tokens", &body)
    }

    fn revoke_command(&self, token: &Token) -> String {
        copy::command(&["tokens", "revoke", &token.name])
    }

    fn revoke_request(&self, token: &Token) -> String {
        copy::request("DELETE", &format!("/tokens/{}", token.name), &Value::Null)
    }
}

fn state(token: &Token, now: DateTime<Utc>) -> &'static str {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        _ => "active",
    }
}

pub(super) async fn list(
    visit: Visit<Admin>,
    query: PageQuery<TokensQuery>,
) -> Result<Response, Refusal> {
    let query = query.values;
    let mut tokens = tokens::list(visit.reads()).await.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Settings).await?;
    if !query.all {
        tokens.retain(|token| state(token, frame.now) == "active");
    }
    Ok(html(&TokensPage { frame, query, tokens, created: None, role: Role::Admin }))
}

/// A token to be created.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenForm {
    name: String,
    role: Role,
    /// Absent: it may change all jobs.
    only_jobs: Option<String>,
    /// A duration such as `90d`; absent: until it is revoked.
    valid_for: Option<String>,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

/// Answers with the token instead of leading to the list: it is stored nowhere, so nothing that may fail comes after its creation. Sent
/// again, the form is refused, for the name is taken.
pub(super) async fn create(
    visit: Visit<Admin>,
    Form(form): Form<TokenForm>,
) -> Result<Response, Refusal> {
    let TokenForm { name, role, only_jobs, valid_for, reason } = form;
    let grant = grant(role, only_jobs.as_deref()).map_err(|problem| visit.refuse(problem))?;
    let valid_for = valid_for.as_deref().map(|text| duration::parse(text.trim())).transpose();
    let valid_for = valid_for
        .map_err(|error| visit.refuse(problem_of_parameter("valid_for", &error.to_string())))?;
    let frame = visit.frame(Section::Settings).await?;
    let (store, name, reason) = (visit.writes(), name.trim(), reason.as_deref());
    let created = tokens::create(&store, name, grant, valid_for, visit.actor(), reason).await;
    let text = created.map_err(|error| visit.refuse(error))?;
    let (query, created) = (TokensQuery::default(), Some((name.to_owned(), text)));
    Ok(html(&TokensPage { frame, query, tokens: Vec::new(), created, role: Role::Admin }))
}

pub(super) async fn revoke(
    visit: Visit<Admin>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let revoked = tokens::revoke(&visit.writes(), &name, visit.actor(), reason.as_deref()).await;
    revoked.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url("/settings/tokens")).into_response())
}
