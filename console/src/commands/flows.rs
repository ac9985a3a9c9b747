//! `sexton flows`: executions that depend on one another.

mod tree;

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::flows::{self, FlowDetails};
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_store::flows::{Flow, MAX_LISTED_MEMBERS};

use crate::confirm::confirm;
use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, precise};

pub(super) use tree::draw;

/// Executions that depend on one another.
#[derive(Debug, Subcommand)]
pub enum FlowsCommand {
    /// List flows, the newest first
    List(List),
    /// Show a flow: its members as a tree, and what each waits for
    Show(Reference),
    /// Cancel what waits and what runs of a flow; failed members stay, for an operator
    Cancel(Cancel),
}

/// Which flows to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only flows of this name; the flow of a job has the job's
    #[arg(long)]
    name: Option<String>,
    /// Only flows that have not ended
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// A flow.
#[derive(Debug, Args)]
pub struct Reference {
    /// Id of the flow or of a member, or a unique beginning of a member's
    id: String,
}

/// Which flow to cancel.
#[derive(Debug, Args)]
pub struct Cancel {
    #[command(flatten)]
    flow: Reference,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &FlowsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        FlowsCommand::List(arguments) => list(arguments, session).await,
        FlowsCommand::Show(flow) => show(flow, session).await,
        FlowsCommand::Cancel(arguments) => cancel(arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let PageOptions { limit, cursor } = &arguments.page;
    let name = arguments.name.clone();
    let page = flows::list(&store, name, arguments.open, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        return session.out.print("There are no such flows.");
    }
    let mut table =
        Table::new(&["ID", "NAME", "KEY", "BEGAN", "MEMBERS", "OPEN", "STATE"]).single_line_rows();
    for flow in &items {
        table.row(vec![
            Cell::new(flow.id.to_string()),
            Cell::new(&flow.name),
            flow.key.as_ref().map_or_else(Cell::none, Cell::new),
            Cell::new(ago(flow.created_at, now)),
            Cell::number(flow.members.into()),
            Cell::number(flow.open.into()),
            state(flow),
        ]);
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

fn state(flow: &Flow) -> Cell {
    match (flow.ended_at, flow.failed) {
        (Some(_), _) => Cell::toned("ended", Tone::Faint),
        (None, 0) if flow.problem.is_some() => Cell::toned("members are missing", Tone::Bad),
        (None, 0) => Cell::new("open"),
        (None, failed) => Cell::toned(format!("blocked: {failed} parked"), Tone::Bad),
    }
}

async fn show(flow: &Reference, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let details = flows::find(&store, &flow.id).await?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let FlowDetails { flow, all } = &details;
    let mut facts = Facts::default();
    facts.add("flow", flow.id.to_string());
    facts.add("name", &flow.name);
    facts.add_optional("key", flow.key.as_ref());
    facts.cell("state", state(flow));
    facts.add_optional(
        "problem",
        flow.problem.as_ref().map(|problem| {
            let next = if flow.ended_at.is_some() {
                "they were given up"
            } else {
                "tried again every minute"
            };
            format!("members could not be made, {next}: {problem}")
        }),
    );
    facts.add("members", format!("{}, of which {} have not ended", flow.members, flow.open));
    facts.add(
        "began",
        format!(
            "{} ({}) by {}",
            precise(flow.created_at),
            ago(flow.created_at, now),
            flow.created_by
        ),
    );
    facts.add_optional(
        "ended",
        flow.ended_at.map(|at| format!("{} ({})", precise(at), ago(at, now))),
    );
    session.out.facts(facts)?;
    session.out.print("")?;
    let ids =
        short_ids::of_executions(&store, all.iter().map(|member| member.execution_id)).await?;
    session.out.table(draw(all, &ids))?;
    if i64::from(flow.members) > MAX_LISTED_MEMBERS {
        session.out.print(format!(
            "… and {} more members",
            i64::from(flow.members) - MAX_LISTED_MEMBERS
        ))?;
    }
    Ok(())
}

async fn cancel(arguments: &Cancel, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let flow = flows::find(&store, &arguments.flow.id).await?.flow;
    let what =
        format!("{} members of {} that have not ended will be cancelled", flow.open, flow.name);
    confirm(&what, arguments.yes)?;
    let reason = arguments.reason.as_deref();
    let (flow, cancelled) =
        flows::cancel(&store, &arguments.flow.id, &session.actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"flow_id": flow.id, "cancelled": cancelled}));
    }
    let failed = match flow.failed {
        0 => String::new(),
        failed => format!("; {failed} parked as failed stay until you requeue or discard them"),
    };
    session.out.print(format!(
        "{} is cancelled. Waiting members that ended: {cancelled}; workers end those that run{failed}.",
        flow.name
    ))
}
