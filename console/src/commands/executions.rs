//! `sexton executions`: what ran, runs and will run.

pub(super) mod history;
mod list_and_show;
pub mod logs;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_operations::executions::cancel;
use sexton_operations::{execution_ids, short_ids};
use sexton_store::Store;
use sexton_store::executions::Execution;
use sexton_store::operator::{Cancelled, OperatorAction};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago, line, roughly};

pub(super) use list_and_show::{facts, render_hints};

/// What ran, runs and will run.
#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// List executions, newest first
    List(List),
    /// Show one execution: its attempts, its params, what was done to it
    Show(Show),
    /// Show what an attempt wrote, and with -f what is written until the execution ends
    Logs(Logs),
    /// End an execution that waits or runs; one that has failed is discarded instead
    Cancel(Cancel),
}

/// Which to show.
#[derive(Debug, Args)]
pub struct Show {
    /// The id, or its beginning as far as it is unique
    id: String,
    /// With what params and edits hold under names such as password or token
    #[arg(long)]
    unmasked: bool,
}

/// Which executions to list; all that is given must hold.
#[derive(Debug, Args)]
pub struct List {
    /// Of this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// In this state; may be given several times
    #[arg(long, value_parser = parse_state, value_name = "STATE")]
    state: Vec<State>,
    /// Nominal time at or after this: 2025-12-01T08:00:00Z, 2025-12-01 or, so long ago, 36h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Nominal time before this
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// With this in its params, as in customer=4891 or order.id=7; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    params: Vec<String>,
    /// With an attempt by this worker: the instance's name or the process's id
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only older ones than this: where the page before ended
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

/// An execution.
#[derive(Debug, Args)]
pub struct Reference {
    /// The execution's id, or its beginning as far as it is unique
    id: String,
}

impl Reference {
    /// As given.
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

/// Whose output to show.
#[derive(Debug, Args)]
pub struct Logs {
    /// The execution's id, or its beginning as far as it is unique
    id: String,
    /// The attempt's number; default: the last
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Go on until the execution ends, over all its attempts (with --attempt: until that one ends);
    /// with --json one document a line
    #[arg(short, long)]
    follow: bool,
    /// Only what was written to standard output
    #[arg(long)]
    stdout: bool,
    /// Only what was written to standard error
    #[arg(long)]
    stderr: bool,
}

/// What to cancel.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The execution's id, or its beginning as far as it is unique
    id: String,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

fn parse_state(text: &str) -> Result<State, String> {
    State::parse(text).ok_or_else(|| {
        let all: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
        format!("write one of {}", all.join(", "))
    })
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: ExecutionsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        ExecutionsCommand::List(list) => list_and_show::list(&list, session).await,
        ExecutionsCommand::Show(arguments) => list_and_show::show(&arguments, session).await,
        ExecutionsCommand::Logs(logs) => logs::run(&logs, session).await,
        ExecutionsCommand::Cancel(arguments) => cancel_execution(&arguments, session).await,
    }
}

async fn cancel_execution(arguments: &Cancel, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = ExecutionId::new(execution_ids::resolve(&store, &arguments.id).await?);
    let reason = arguments.reason.as_deref();
    let (state, text) = match cancel::cancel(&store, id, &session.actor, reason).await? {
        Cancelled::Immediately => ("cancelled", format!("{id} is cancelled.")),
        Cancelled::Requested => {
            ("running", format!("{id} is running; its worker was asked to end it."))
        }
    };
    if session.out.is_json() {
        let document = json!({"id": id, "state": state, "cancel_requested": state == "running"});
        return session.out.document(&document);
    }
    session.out.print(text)
}

/// Executions for people, with shortened ids.
pub(super) async fn table(
    store: &Store,
    executions: &[Execution],
    now: DateTime<Utc>,
) -> Result<Table, Failure> {
    let ids = short_ids::of_executions(store, executions.iter().map(|it| it.id)).await?;
    let mut table =
        Table::new(&["ID", "JOB", "STATE", "ATTEMPTS", "SCHEDULED", "WHAT NEXT, OR WHY"])
            .single_line_rows();
    for execution in executions {
        table.row(vec![
            Cell::new(ids.get(&execution.id)),
            Cell::new(&execution.job_name),
            Cell::state(&execution.state),
            execution.attempts_made.map_or_else(Cell::none, Cell::number),
            Cell::new(roughly(execution.scheduled_for, now)),
            remark(execution, now),
        ]);
    }
    Ok(table)
}

fn remark(execution: &Execution, now: DateTime<Utc>) -> Cell {
    let error = || line(execution.error_message.as_deref().unwrap_or(""), 200);
    match execution.state.as_str() {
        "pending" if execution.is_waiter() => {
            Cell::toned("waits until its job is free", Tone::Faint)
        }
        "pending" if execution.ticket_published_at.is_none() => {
            Cell::toned("its ticket is not published yet", Tone::Faint)
        }
        "pending" => Cell::toned("waits for a worker", Tone::Faint),
        "running" if execution.replaced_by.is_some() => {
            Cell::toned("a newer firing takes its place", Tone::Warning)
        }
        "running" if execution.cancel_requested => Cell::toned("cancel requested", Tone::Warning),
        "running" => {
            let started = execution.started_at.map(|at| format!("started {}", ago(at, now)));
            let progress = execution.progress.as_ref().and_then(history::progress);
            let parts: Vec<String> = [progress, started].into_iter().flatten().collect();
            Cell::toned(parts.join("; "), Tone::Faint)
        }
        "retrying" => {
            let when = execution.next_attempt_at.map_or_else(String::new, |at| ago(at, now));
            Cell::new(format!("retry {when}: {}", error()))
        }
        "failed" | "discarded" => Cell::new(error()),
        "cancelled" if execution.replaced_by.is_some() => {
            Cell::toned("a newer firing took its place", Tone::Faint)
        }
        "skipped" => Cell::toned(execution.skip_reason.as_deref().unwrap_or(""), Tone::Faint),
        _ => Cell::toned(
            execution.finished_at.map_or_else(String::new, |at| format!("ended {}", ago(at, now))),
            Tone::Faint,
        ),
    }
}

/// What operators did, for people.
pub(super) fn render_actions(
    actions: &[OperatorAction],
    now: DateTime<Utc>,
    session: &Session,
) -> Result<(), Failure> {
    if actions.is_empty() {
        return Ok(());
    }
    session.out.print("\nDone by operators")?;
    let mut table = Table::new(&["WHEN", "WHO", "WHAT", "WHY"]);
    for action in actions {
        table.row(vec![
            Cell::new(ago(action.at, now)),
            Cell::new(&action.actor),
            Cell::new(&action.action),
            Cell::new(action.reason.as_deref().unwrap_or("")),
        ]);
    }
    session.out.table(table)
}
