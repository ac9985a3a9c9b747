//! `sexton approvals`: actions that wait for another person.

mod rules;

use clap::{Args, Subcommand};
use sexton_operations::approvals::requests::{self, describe, describe_state};
use sexton_operations::decisions;
use sexton_operations::paging::Page;
use sexton_store::approvals::ApprovalRequest;

use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, ago, instant, line};

use rules::RulesCommand;

/// Approve or reject what others request.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List requests that wait, newest first
    List(List),
    /// Show what a request would do, and who has approved it
    Show(Reference),
    /// Approve a request; the last approval carries it out
    Approve(Approve),
    /// Reject a request, or take back one of yours
    Reject(Reject),
    /// Manage the rules by which actions wait
    #[command(subcommand)]
    Rules(RulesCommand),
}

/// Which requests to list.
#[derive(Debug, Args)]
pub struct List {
    /// Include requests that have ended or expired
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// A request.
#[derive(Debug, Args)]
pub struct Reference {
    /// Number of the request
    id: i64,
}

/// The request to approve.
#[derive(Debug, Args)]
pub struct Approve {
    /// Number of the request
    id: i64,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The request to reject.
#[derive(Debug, Args)]
pub struct Reject {
    /// Number of the request
    id: i64,
    /// Reason, recorded in the audit log
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &ApprovalsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        ApprovalsCommand::List(arguments) => list(arguments, session).await,
        ApprovalsCommand::Show(reference) => show(reference.id, session).await,
        ApprovalsCommand::Approve(arguments) => approve(arguments, session).await,
        ApprovalsCommand::Reject(arguments) => reject(arguments, session).await,
        ApprovalsCommand::Rules(command) => rules::run(command, session).await,
    }
}

/// Prints that an action waits for others, and ends the command with that status.
///
/// # Errors
///
/// [`Failure::Reported`], always.
pub(in crate::commands) fn report_waiting(
    request: &ApprovalRequest,
    session: &Session,
) -> Result<(), Failure> {
    let id = request.id;
    if session.out.is_json() {
        session.out.document(request)?;
    }
    let message = format!(
        "waits for approval {id}: {}\nUntil {} another person can approve it: sexton approvals approve {id}",
        describe(request),
        instant(request.expires_at)
    );
    Err(Failure::Reported { exit: Exit::Waits, message })
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let PageOptions { limit, cursor } = &arguments.page;
    let page = requests::list(&store, arguments.all, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        return session.out.print("No requests wait for approval.");
    }
    let now = session.now(&store).await?;
    let mut table = Table::new(&["ID", "STATE", "PEOPLE", "WHO", "WHEN", "WHAT", "WHY"]);
    for request in &items {
        table.row(vec![
            Cell::number(request.id),
            Cell::new(&request.state),
            Cell::new(people(request)),
            Cell::new(&request.requested_by),
            Cell::new(ago(request.requested_at, now)),
            Cell::new(describe(request)),
            Cell::new(line(request.reason.as_deref().unwrap_or_default(), 200)),
        ]);
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

fn people(request: &ApprovalRequest) -> String {
    format!("{} of {}", request.approvals.len() + 1, request.people)
}

async fn show(id: i64, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let request = requests::find(&store, id).await?;
    if session.out.is_json() {
        return session.out.document(&request);
    }
    render(&request, session)
}

fn render(request: &ApprovalRequest, session: &Session) -> Result<(), Failure> {
    let mut facts = Facts::default();
    facts.add("what", describe(request));
    facts.add("state", format!("it {}", describe_state(request)));
    facts.add("requested by", line(&request.requested_by, 200));
    facts.add_optional("why", request.reason.as_deref().map(|reason| line(reason, 500)));
    facts.add("requested", instant(request.requested_at));
    facts.add("expires", instant(request.expires_at));
    facts.add("people", people(request));
    facts.add("rules", request.rules.join(", "));
    for approval in &request.approvals {
        let reason = approval.reason.as_deref().unwrap_or_default();
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        facts.add("approved by", line(&format!("{}{why}", approval.actor), 500));
    }
    facts.add_optional("bulk", request.bulk_id.map(|bulk| bulk.to_string()));
    session.out.facts(facts)?;
    // A value is always JSON.
    let text = serde_json::to_string_pretty(&request.proposal).unwrap_or_default();
    session.out.print(format!("\n{}", sexton_operations::text::ascii_controls(&text)))
}

async fn approve(arguments: &Approve, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Approve { id, reason, yes } = arguments;
    if !*yes {
        let request = requests::find(&store, *id).await?;
        if !session.out.is_json() {
            render(&request, session)?;
        }
        confirm(&format!("request {id} will be approved"), *yes)?;
    }
    let request = decisions::approve(&store, *id, &session.actor, reason.as_deref()).await?;
    if session.out.is_json() {
        session.out.document(&request)?;
    }
    let text = format!("request {id} {}", describe_state(&request));
    if request.state == "failed" {
        return Err(Failure::Reported { exit: Exit::Failed, message: text });
    }
    if session.out.is_json() { Ok(()) } else { session.out.print(format!("{text}.")) }
}

async fn reject(arguments: &Reject, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Reject { id, reason } = arguments;
    let request = decisions::reject(&store, *id, &session.actor, Some(reason)).await?;
    if session.out.is_json() {
        return session.out.document(&request);
    }
    session.out.print(format!("request {id} is rejected."))
}
