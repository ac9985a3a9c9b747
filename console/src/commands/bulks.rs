//! `sexton bulks`: follows and stops bulk operations.

mod items;
mod request;
mod watch;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::bulks::blocked_questions::describe_blocked;
use sexton_operations::bulks::control::{self, BulkDetails};
use sexton_operations::bulks::verify::Verification;
use sexton_operations::bulks::watch::{find, summary};
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_service::fault;
use sexton_store::bulk::{BlockedQuestions, Bulk};

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, ago, line, precise};

pub use items::ListItems;
pub use request::BulkOptions;
pub(super) use request::request_bulk;
use request::verify_until_interrupted;
pub(super) use watch::follow;

/// Which bulks to list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    page: PageOptions,
}

/// Follow and stop bulk operations.
#[derive(Debug, Subcommand)]
pub enum BulksCommand {
    /// List bulks, newest first
    List(List),
    /// Show a bulk, and the executions that it did not act on
    Show(Reference),
    /// List a bulk's items, with what has become of their executions
    Items(ListItems),
    /// Watch a bulk until it ends
    Watch(Reference),
    /// Run a verify command for the executions that wait for an answer, and watch the bulk
    Verify(VerifyArguments),
    /// Stop a bulk; what is done stays done
    Stop(ControlArguments),
    /// Resume a stopped or paused bulk
    Resume(ControlArguments),
}

/// A bulk.
#[derive(Debug, Args)]
pub struct Reference {
    /// Number of the bulk
    id: i64,
}

/// What to steer, and why.
#[derive(Debug, Args)]
pub struct ControlArguments {
    /// Number of the bulk
    id: i64,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// What to ask.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Number of the bulk
    id: i64,
    /// Command to run, as for `failed requeue --verify`
    #[arg(value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    command: String,
    /// Reason, recorded in the audit log; default: that of the bulk
    #[arg(long)]
    reason: Option<String>,
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let PageOptions { limit, cursor } = &arguments.page;
    let page = control::list(&store, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items: bulks, next_cursor } = page;
    let waits = control::list_blocked(&store, &bulks).await?;
    if bulks.is_empty() {
        return session.out.print("There are no bulks.");
    }
    let now = session.now(&store).await?;
    let mut table = Table::new(&["ID", "WHAT", "STATE", "WHO", "WHEN", "HOW FAR"]);
    for bulk in &bulks {
        table.row(vec![
            Cell::number(bulk.id),
            Cell::new(&bulk.kind),
            Cell::new(&bulk.state),
            Cell::new(&bulk.actor),
            Cell::new(ago(bulk.created_at, now)),
            Cell::new(if waits.contains_key(&bulk.id) {
                format!("{}; waits for workers", summary(bulk))
            } else {
                summary(bulk)
            }),
        ]);
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &BulksCommand, session: &Session) -> Result<(), Failure> {
    match command {
        BulksCommand::List(arguments) => list(arguments, session).await,
        BulksCommand::Show(reference) => show(reference.id, session).await,
        BulksCommand::Items(arguments) => items::list(arguments, session).await,
        BulksCommand::Watch(reference) => {
            let store = session.store().await?;
            follow(&store, reference.id, false, session).await
        }
        BulksCommand::Verify(arguments) => {
            let store = session.store().await?;
            find(&store, arguments.id).await?;
            let by = session.actor.because(arguments.reason.as_deref());
            let verification = Verification { id: arguments.id, command: &arguments.command, by };
            let interrupted = verify_until_interrupted(&store, verification).await?;
            follow(&store, arguments.id, interrupted, session).await
        }
        BulksCommand::Stop(arguments) => stop(arguments, session).await,
        BulksCommand::Resume(arguments) => resume(arguments, session).await,
    }
}

async fn show(id: i64, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let BulkDetails { bulk, refused, waits } = control::show(&store, id).await?;
    if session.out.is_json() {
        let document = json!({"bulk": bulk, "refused": refused, "waits": waits});
        return session.out.document(&document);
    }
    let now = session.now(&store).await?;
    session.out.facts(facts(&bulk, waits.as_ref(), now))?;
    if refused.is_empty() {
        return Ok(());
    }
    session.out.print("\nNot done")?;
    let ids = refused.iter().map(|item| item.execution_id);
    let ids = short_ids::of_executions(&store, ids).await?;
    let mut table = Table::new(&["EXECUTION", "WHY"]);
    for item in &refused {
        let note = line(item.note.as_deref().unwrap_or_default(), 300);
        table.row(vec![Cell::new(ids.get(&item.execution_id)), Cell::new(note)]);
    }
    session.out.table(table)
}

fn facts(bulk: &Bulk, waits: Option<&BlockedQuestions>, now: DateTime<Utc>) -> Facts {
    let mut facts = Facts::default();
    facts.add("bulk", bulk.id.to_string());
    facts.add("what", &bulk.kind);
    facts.add("which", line(&bulk.selector.to_string(), 500));
    facts.add("state", &bulk.state);
    facts.add_optional("because", bulk.why.as_deref().map(|why| line(why, 500)));
    facts.add("how far", summary(bulk));
    facts.add_optional("waits", waits.map(describe_blocked));
    facts.add("who", &bulk.actor);
    facts.add_optional("from", bulk.from_where.as_ref());
    facts.add_optional("reason", bulk.reason.as_deref().map(|why| line(why, 500)));
    facts.add_optional("rate", bulk.rate.as_ref());
    facts.add_optional("canary", bulk.canary.map(|n| n.to_string()));
    facts.add_optional("to pool", bulk.pool.as_ref());
    facts.add("requested", format!("{} ({})", precise(bulk.created_at), ago(bulk.created_at, now)));
    facts.add_optional(
        "ended",
        bulk.ended_at.map(|at| format!("{} ({})", precise(at), ago(at, now))),
    );
    facts
}

async fn stop(arguments: &ControlArguments, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    control::stop(&store, arguments.id, &session.actor, arguments.reason.as_deref()).await?;
    fault::point("console.bulk_stopped");
    let bulk = find(&store, arguments.id).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"bulk": bulk}));
    }
    session.out.print(format!("Bulk {} is stopped: {}.", bulk.id, summary(&bulk)))
}

async fn resume(arguments: &ControlArguments, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    control::resume(&store, arguments.id, &session.actor, arguments.reason.as_deref()).await?;
    fault::point("console.bulk_resumed");
    follow(&store, arguments.id, false, session).await
}
