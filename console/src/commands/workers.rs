//! `sexton workers`: the worker processes, and what each runs.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use sexton_operations::short_ids::{self, ShortIds};
use sexton_operations::workers::{self, ListedWorker, WorkerDetails, WorkerState};
use sexton_store::workers::{RunningExecution, Worker, WorkerFilter};
use uuid::Uuid;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago, duration, precise, roughly};

/// Show workers and what they run.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List workers with their slots and heartbeats
    List(List),
    /// Show a worker and what each of its slots runs
    Show(Show),
}

/// Which workers to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only workers that consume from this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Also workers that are gone, until retention removes them
    #[arg(long)]
    all: bool,
    /// Maximum number of workers
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
}

/// Which worker to show.
#[derive(Debug, Args)]
pub struct Show {
    /// Name, id, or a unique beginning of the id; a name stands for its newest process
    worker: String,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &WorkersCommand, session: &Session) -> Result<(), Failure> {
    match command {
        WorkersCommand::List(arguments) => list(arguments, session).await,
        WorkersCommand::Show(arguments) => show(arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let filter = WorkerFilter {
        with_gone: arguments.all,
        pool: arguments.pool.as_deref(),
        ..WorkerFilter::default()
    };
    let found = workers::list(&store, &filter, arguments.limit, None).await?;
    if session.out.is_json() {
        return session.out.document(&found);
    }
    if found.is_empty() {
        return session.out.print("There are no such workers.");
    }
    let ids = short_ids::of_workers(&store, found.iter().map(|it| it.worker.id)).await?;
    let now = session.now(&store).await?;
    session.out.table(table(&found, &ids, now))?;
    if found.len() as i64 == arguments.limit {
        session.out.print("There may be more: raise --limit, or give --pool")?;
    }
    Ok(())
}

fn table(found: &[ListedWorker], ids: &ShortIds<Uuid>, now: DateTime<Utc>) -> Table {
    let headings = ["ID", "NAME", "STATE", "BUSY", "POOLS", "VERSION", "STARTED", "HEARTBEAT"];
    let mut table = Table::new(&headings).unclipped(0).unclipped(1);
    for ListedWorker { worker, state } in found {
        table.row(vec![
            Cell::new(ids.get(&worker.id)),
            Cell::new(&worker.name),
            state_cell(*state, worker.ready),
            Cell::new(format!("{}/{}", worker.running, worker.slots)),
            Cell::new(describe_pools(worker)),
            Cell::new(&worker.version),
            Cell::new(roughly(worker.started_at, now)),
            Cell::new(format!("{} ago", duration(worker.silent_ms))),
        ]);
    }
    table
}

fn state_cell(state: WorkerState, ready: bool) -> Cell {
    match state {
        WorkerState::Alive if !ready => Cell::toned("alive, not ready", Tone::Warning),
        WorkerState::Alive => Cell::toned("alive", Tone::Good),
        WorkerState::Silent => Cell::toned("silent", Tone::Bad),
        WorkerState::Gone => Cell::toned("gone", Tone::Faint),
    }
}

/// The pools, with their numbers of slots if each has its own.
fn describe_pools(worker: &Worker) -> String {
    let slots = worker.pool_slots.iter().flatten().map(Some).chain(std::iter::repeat(None));
    let pools = worker.pools.iter().zip(slots);
    let pools = pools.map(|(pool, slots)| match slots {
        Some(slots) if worker.pools.len() > 1 => format!("{pool}:{slots}"),
        _ => pool.clone(),
    });
    pools.collect::<Vec<_>>().join(",")
}

async fn show(arguments: &Show, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let details = workers::show(&store, &arguments.worker, None).await?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let now = session.now(&store).await?;
    session.out.facts(facts(&details, now))?;
    session.out.print("")?;
    if details.executions.is_empty() {
        return session.out.print("All its slots are free.");
    }
    let ids = short_ids::of_executions(&store, details.executions.iter().map(|it| it.id)).await?;
    session.out.table(executions_table(&details.executions, &ids, now))
}

fn facts(details: &WorkerDetails, now: DateTime<Utc>) -> Facts {
    let ListedWorker { worker, state } = &details.listed;
    let at = |at: DateTime<Utc>| format!("{} ({})", precise(at), ago(at, now));
    let mut facts = Facts::default();
    facts.add("worker", &worker.name);
    facts.add("id", worker.id.to_string());
    facts.cell("state", state_cell(*state, worker.ready));
    facts.add("pools", describe_pools(worker));
    facts.add("slots", format!("{} of {} busy", worker.running, worker.slots));
    facts.add("task types", details.task_types.join(", "));
    facts.add("version", &worker.version);
    facts.add("process id", worker.pid.to_string());
    facts.add("started", at(worker.started_at));
    facts.add("last heartbeat", at(worker.heartbeat_at));
    facts.add_optional("stopped", worker.stopped_at.map(at));
    facts
}

fn executions_table(
    executions: &[RunningExecution],
    ids: &ShortIds<Uuid>,
    now: DateTime<Utc>,
) -> Table {
    let headings = ["EXECUTION", "JOB", "TASK", "POOL", "ATTEMPT", "SINCE", "LEASE", ""];
    let mut table = Table::new(&headings).unclipped(0);
    let when = |at: Option<DateTime<Utc>>| at.map_or_else(Cell::none, |at| Cell::new(ago(at, now)));
    for execution in executions {
        table.row(vec![
            Cell::new(ids.get(&execution.id)),
            Cell::new(&execution.job_name),
            Cell::new(&execution.task_type),
            Cell::new(&execution.pool),
            Cell::number(execution.attempt.into()),
            when(execution.started_at),
            when(execution.lease_until),
            if execution.cancel_requested {
                Cell::toned("cancel requested", Tone::Warning)
            } else {
                Cell::new("")
            },
        ]);
    }
    table
}
