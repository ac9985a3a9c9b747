//! `sexton tokens`: who may use the API, and what for.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::access::Role;
use sexton_model::duration;
use sexton_model::job_scope::{Grant, JobScope};
use sexton_operations::tokens::{self, Token};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago, instant};

/// Tokens of the API.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// List tokens by name, without their secrets
    List(List),
    /// Create a token, and print it this once
    Create(Create),
    /// Refuse a token from its next request on
    Revoke(Revoke),
}

/// Which tokens to list.
#[derive(Debug, Args)]
pub struct List {
    /// Include revoked tokens
    #[arg(long)]
    all: bool,
}

/// The token to create.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name, by which the audit knows what is done with it
    name: String,
    /// What it may do: viewer looks; operator also triggers, requeues, pauses, cancels and enqueues; editor also applies and deletes
    /// jobs and edits params; admin also manages tokens and channels
    #[arg(long, value_name = "ROLE", value_parser = parse_role)]
    role: Role,
    /// Restrict it to jobs: billing.* by the beginning of their names, or team=billing by a label; it may change no others
    #[arg(long, value_name = "SCOPE")]
    only_jobs: Option<JobScope>,
    /// How long it is accepted, such as 90d; until it is revoked if not given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    valid_for: Option<Duration>,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The token to revoke.
#[derive(Debug, Args)]
pub struct Revoke {
    /// Its name
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

pub(crate) fn parse_role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "write viewer, operator, editor or admin".to_owned())
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &TokensCommand, session: &Session) -> Result<(), Failure> {
    match command {
        TokensCommand::List(arguments) => list(arguments, session).await,
        TokensCommand::Create(arguments) => create(arguments, session).await,
        TokensCommand::Revoke(arguments) => revoke(arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let mut all = tokens::list(&store).await?;
    if !arguments.all {
        all.retain(|token| token.revoked_at.is_none());
    }
    if session.out.is_json() {
        return session.out.document(&json!({"items": all}));
    }
    if all.is_empty() {
        let hint = "There are no tokens. `sexton tokens create NAME --role viewer` creates one.";
        return session.out.print(hint);
    }
    let now = session.now(&store).await?;
    let mut table =
        Table::new(&["NAME", "ROLE", "JOBS", "CREATED BY", "LAST USED", "ACCEPTED"]).unclipped(0);
    for token in &all {
        table.row(vec![
            Cell::new(&token.name),
            Cell::new(&token.role),
            Cell::new(token.only_jobs.as_deref().unwrap_or("all")),
            Cell::new(&token.created_by),
            Cell::new(token.last_used_at.map_or_else(|| "never".to_owned(), |at| ago(at, now))),
            acceptance(token, now),
        ]);
    }
    session.out.table(table)
}

/// Until when it is accepted.
fn acceptance(token: &Token, now: DateTime<Utc>) -> Cell {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => Cell::toned(format!("revoked {}", ago(at, now)), Tone::Faint),
        (None, Some(at)) if at <= now => {
            Cell::toned(format!("expired {}", ago(at, now)), Tone::Faint)
        }
        (None, Some(at)) => Cell::new(format!("until {}", instant(at))),
        (None, None) => Cell::new("until revoked"),
    }
}

async fn create(arguments: &Create, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Create { name, role, only_jobs, valid_for, reason } = arguments;
    let (actor, reason) = (&session.actor, reason.as_deref());
    let grant = Grant { role: *role, only_jobs: only_jobs.clone() };
    let token = tokens::create(&store, name, grant, *valid_for, actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "role": role, "token": token}));
    }
    let use_it = "Send it as `Authorization: Bearer <token>`. The token is shown this once:";
    session.out.print(format!("{use_it}\n\n{token}"))
}

async fn revoke(arguments: &Revoke, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Revoke { name, reason } = arguments;
    tokens::revoke(&store, name, &session.actor, reason.as_deref()).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "done": "revoked"}));
    }
    session.out.print(format!("token {name} is revoked."))
}
