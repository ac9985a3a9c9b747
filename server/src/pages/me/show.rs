//! The page about the visitor.

use askama::Template;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use sexton_model::access::Role;

use crate::access::{CallerKind, Viewer};
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// The address says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MeQuery {}

#[derive(Debug, Template)]
#[template(path = "me/show.html")]
struct MePage {
    frame: Frame,
}

impl MePage {
    fn name(&self) -> &str {
        self.frame.caller.as_ref().map_or("nobody", |caller| caller.name.as_str())
    }

    fn role(&self) -> &'static str {
        self.frame.caller.as_ref().map_or("none", |caller| caller.role.as_str())
    }

    /// How the server knows.
    fn how(&self) -> &'static str {
        match self.frame.caller.as_ref().map(|caller| caller.kind) {
            Some(CallerKind::Local) => {
                "Your browser runs on the server’s machine, and SERVE_LOCAL_ROLE lets it in without a log-in. Everybody on that machine is you."
            }
            Some(CallerKind::Token) => "The request carries a token of the API.",
            Some(CallerKind::Proxy) => "The proxy before this server has logged you in.",
            Some(CallerKind::Oidc) => {
                "The identity provider has logged you in. Your role is the one that SERVE_OIDC_ROLES gave you then."
            }
            Some(CallerKind::Account) => "You have logged in with an account.",
            None => "Nobody knows.",
        }
    }

    /// The jobs to which the visitor is restricted.
    fn only_jobs(&self) -> Option<String> {
        self.frame.caller.as_ref()?.only_jobs.as_ref().map(ToString::to_string)
    }

    /// When the session ends in any case, of people who can log out.
    fn session_ends(&self) -> Option<DateTime<Utc>> {
        self.frame.caller.as_ref().and_then(|caller| caller.session_expires_at)
    }

    fn roles(&self) -> [Role; 4] {
        Role::ALL
    }

    fn about(&self, role: Role) -> &'static str {
        match role {
            Role::Viewer => "Look at everything. Values that look like secrets are masked.",
            Role::Operator => {
                "Also trigger, requeue, discard, cancel, pause and resume; enqueue; acknowledge and silence incidents; test channels."
            }
            Role::Editor => "Also apply and delete jobs, and edit the params of failed executions.",
            Role::Admin => "Also decide who may do what: manage accounts and tokens.",
        }
    }

    fn request(&self) -> String {
        copy::request("GET", "/me", &serde_json::Value::Null)
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    _query: PageQuery<MeQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Other).await?;
    Ok(html(&MePage { frame }))
}
