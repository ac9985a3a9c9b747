//! `sexton locks`: who holds or waits for which lock of a job or service, and rows freed by hand.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::locks::{
    self, LockList, MAX_LOCKS, describe_jobs, describe_risk, describe_session, describe_since,
};
use sexton_operations::short_ids::{self, ShortIds};
use sexton_store::locks::{
    AdvisoryLock, LockAttempt, LockFilter, LockJobs, LockKey, LockRow, RowState,
};
use uuid::Uuid;

use crate::confirm::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago, line, precise};

/// The longest holder that a question quotes, in characters.
const MAX_HOLDER_CHARS: usize = 255;

/// List locks, or free one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LocksCommand {
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    command: Option<LockAction>,
}

/// What to do with a lock.
#[derive(Debug, Subcommand)]
pub enum LockAction {
    /// Free a lock row whose holder is gone
    Break(Break),
}

/// Which locks to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only the advisory lock of this key: a number, or a pair as in 7,1
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, conflicts_with = "row")]
    key: Option<LockKey>,
    /// Only the lock row of this name, also if it is free
    #[arg(long, value_name = "NAME")]
    row: Option<String>,
    /// Only locks of jobs, sessions, rows and holders whose name begins with this
    #[arg(long, value_name = "PREFIX")]
    service: Option<String>,
    /// Only advisory locks that a session waits for, with their holders
    #[arg(long)]
    waiting: bool,
    /// Also the locks of Sexton itself, and rows that are free
    #[arg(long)]
    all: bool,
    /// Maximum number of locks of each kind
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(i64).range(1..=MAX_LOCKS))]
    limit: i64,
}

/// Which row to free.
#[derive(Debug, Args)]
pub struct Break {
    /// The row's name
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: String,
    /// Only if it was taken at this instant: locked_at of `sexton --json locks`
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    as_of: Option<DateTime<Utc>>,
    /// Even if the attempt that took it runs
    #[arg(long)]
    force: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    let parsed = DateTime::parse_from_rfc3339(text).map(|at| at.to_utc());
    parsed.map_err(|_| "write it as in 2025-12-01T08:00:00.123456Z".to_owned())
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &LocksCommand, session: &Session) -> Result<(), Failure> {
    match &command.command {
        None => list(&command.list, session).await,
        Some(LockAction::Break(arguments)) => break_row(arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let filter = LockFilter {
        all: arguments.all,
        key: arguments.key,
        row: arguments.row.clone(),
        service: arguments.service.clone(),
        waiting: arguments.waiting,
        of_jobs: false,
    };
    let found = locks::list(&store, &filter, arguments.limit).await?;
    if session.out.is_json() {
        return session.out.document(&found);
    }
    let LockList { advisory, rows } = &found;
    if advisory.items.is_empty() && rows.items.is_empty() {
        return session.out.print("There are no such locks.");
    }
    let of_keys = advisory.items.iter().filter_map(|lock| lock.attempt.as_ref());
    let of_rows = rows.items.iter().filter_map(|row| row.attempt.as_ref());
    let ids = of_keys.chain(of_rows).map(|attempt| attempt.execution_id);
    let ids = short_ids::of_executions(&store, ids).await?;
    let now = session.now(&store).await?;
    session.out.table(table(&found, &ids, now))?;
    for (more, kind) in [(advisory.more, "advisory locks"), (rows.more, "lock rows")] {
        if more > 0 {
            let text = format!("… and {more} more {kind}: raise --limit, or give --service");
            session.out.print(text)?;
        }
    }
    Ok(())
}

fn table(found: &LockList, ids: &ShortIds<Uuid>, now: DateTime<Utc>) -> Table {
    let headings = ["LOCK", "STATE", "SINCE", "HOLDER", "JOB", "EXECUTION", "WORKER", "WHAT"];
    let mut table = Table::new(&headings).unclipped(0).single_line_rows();
    for lock in &found.advisory.items {
        let session_worker = lock.session.as_ref().and_then(|session| session.worker.as_deref());
        let mut cells = vec![
            Cell::new(lock.key.to_string()),
            advisory_state(lock),
            Cell::new(describe_since(lock.since, now)),
            Cell::new(describe_session(lock.session.as_ref())),
        ];
        cells.extend(job_cells(&lock.jobs, lock.attempt.as_ref(), session_worker, ids));
        cells.push(Cell::new(with_waiting(describe_activity(lock), lock.executions_waiting)));
        table.row(cells);
    }
    for row in &found.rows.items {
        let (state, ends) = match row.state {
            RowState::Held => (Cell::toned("held", Tone::Busy), "ends"),
            RowState::AtLeast => (Cell::new("at least"), "ends"),
            RowState::Free => (Cell::toned("free", Tone::Faint), "ended"),
        };
        let mut cells = vec![
            Cell::new(&row.name),
            state,
            Cell::new(ago(row.locked_at, now)),
            Cell::new(&row.locked_by),
        ];
        cells.extend(job_cells(&row.jobs, row.attempt.as_ref(), None, ids));
        let outcome = row.attempt.as_ref().and_then(|attempt| attempt.outcome.as_deref());
        let outcome =
            outcome.map_or_else(String::new, |it| format!("; its attempt has ended ({it})"));
        let end = format!("{ends} {}{outcome}", ago(row.lock_until, now));
        cells.push(Cell::new(with_waiting(end, row.executions_waiting)));
        table.row(cells);
    }
    table
}

fn advisory_state(lock: &AdvisoryLock) -> Cell {
    match (lock.is_held, lock.is_shared) {
        (true, false) => Cell::toned("held", Tone::Busy),
        (true, true) => Cell::toned("shared", Tone::Busy),
        (false, _) => Cell::toned("waits", Tone::Warning),
    }
}

/// What the session does, and what Sexton's own lock is for.
fn describe_activity(lock: &AdvisoryLock) -> String {
    let session = lock.session.as_ref();
    let state = session.map(|session| session.state.as_deref().unwrap_or("hidden").to_owned());
    let query = session.and_then(|session| session.query.clone()).filter(|query| !query.is_empty());
    let activity = [state, query].into_iter().flatten().collect::<Vec<_>>().join(": ");
    match lock.purpose {
        Some(purpose) => format!("for {purpose}; {activity}"),
        None => activity,
    }
}

fn with_waiting(text: String, executions: i64) -> String {
    match executions {
        0 => text,
        1 => format!("1 execution waits; {text}"),
        count => format!("{count} executions wait; {text}"),
    }
}

fn job_cells(
    jobs: &LockJobs,
    attempt: Option<&LockAttempt>,
    session_worker: Option<&str>,
    ids: &ShortIds<Uuid>,
) -> [Cell; 3] {
    let cell = |text: Option<String>| text.map_or_else(Cell::none, Cell::new);
    let job = attempt.map(|attempt| attempt.job.clone());
    let worker = attempt.map(|attempt| attempt.worker.as_str()).or(session_worker);
    [
        cell(job.or_else(|| describe_jobs(jobs))),
        cell(attempt.map(|attempt| ids.get(&attempt.execution_id))),
        cell(worker.map(str::to_owned)),
    ]
}

async fn break_row(arguments: &Break, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let Break { name, reason, as_of, force, yes } = arguments;
    let seen = locks::find_to_break(&store, name, *as_of, *force).await?;
    confirm(&question(&seen), *yes)?;
    let broken = locks::break_row(&store, &seen, *force, &session.actor, reason).await?;
    let LockRow { name, locked_by, locked_at, .. } = &broken.before;
    if session.out.is_json() {
        return session.out.document(&json!({
            "name": name,
            "locked_by": locked_by,
            "locked_at": locked_at,
            "lock_until": broken.lock_until,
        }));
    }
    let locked_by = line(locked_by, MAX_HOLDER_CHARS);
    session.out.print(format!(
        "{} is free. {locked_by} had locked it at {}; if it lives, it finds out when it next extends the lock.",
        line(name, MAX_HOLDER_CHARS),
        precise(*locked_at)
    ))
}

fn question(row: &LockRow) -> String {
    format!(
        "lock row {}, taken by {} at {}, will be free at once: {}",
        line(&row.name, MAX_HOLDER_CHARS),
        line(&row.locked_by, MAX_HOLDER_CHARS),
        precise(row.locked_at),
        describe_risk(row)
    )
}
