//! `sexton executions`: what ran, runs and will run.

mod cancel;
mod explain;
pub(super) mod history;
mod list_and_show;
pub mod logs;
mod wait;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use sexton_model::state::State;
use sexton_operations::short_ids;
use sexton_store::Store;
use sexton_store::executions::Execution;
use sexton_store::operator::OperatorAction;

use crate::failure::Failure;
use crate::options::{FilterOptions, PageOptions};
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago, line, roughly};

pub(super) use list_and_show::{facts, render_hints};

/// What ran, runs and will run.
#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// List executions, the latest claim first
    List(Box<List>),
    /// Show an execution: params, attempts, and operators' actions
    Show(Show),
    /// Explain an execution: what it waits for, or what became of it, and when
    Explain(Reference),
    /// Show the output of an attempt; with -f follow it until the execution ends
    Logs(Logs),
    /// Wait until an execution has ended or is parked as failed; fails unless it succeeded
    Wait(wait::Wait),
    /// Cancel executions that wait or run; to give up failed ones use `sexton failed discard`
    Cancel(Box<cancel::Cancel>),
}

/// Which to show.
#[derive(Debug, Args)]
pub struct Show {
    /// Id of the execution, or a unique beginning of it
    id: String,
    /// Show values that look like secrets, which are masked otherwise
    #[arg(long)]
    unmasked: bool,
}

/// Which executions to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only executions in this state; repeatable
    #[arg(long, value_parser = parse_state, value_name = "STATE")]
    state: Vec<State>,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    page: PageOptions,
}

/// An execution.
#[derive(Debug, Args)]
pub struct Reference {
    /// Id of the execution, or a unique beginning of it
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
    /// Id of the execution, or a unique beginning of it
    id: String,
    /// Number of the attempt; default: the last
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    attempt: Option<i32>,
    /// Follow the output until the execution ends, or with --attempt until that attempt ends; with --json
    /// one document on each line
    #[arg(short, long)]
    follow: bool,
    /// Only standard output
    #[arg(long)]
    stdout: bool,
    /// Only standard error
    #[arg(long)]
    stderr: bool,
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
        ExecutionsCommand::Explain(execution) => explain::run(&execution, session).await,
        ExecutionsCommand::Logs(logs) => logs::run(&logs, session).await,
        ExecutionsCommand::Wait(arguments) => wait::run(&arguments, session).await,
        ExecutionsCommand::Cancel(arguments) => cancel::run(&arguments, session).await,
    }
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
        "pending" if execution.is_blocked() => {
            Cell::toned("waits for others of its flow", Tone::Faint)
        }
        "pending" if execution.is_waiter() => match execution.next_attempt_at {
            Some(due) if due > now => {
                Cell::toned(format!("enqueued for later: due {}", ago(due, now)), Tone::Faint)
            }
            _ => Cell::toned("waits until its job is free", Tone::Faint),
        },
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
