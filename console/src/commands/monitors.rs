//! `sexton monitors`: what is expected of jobs, and what is missed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use sexton_model::duration;
use sexton_operations::monitors;
use sexton_operations::paging::Page;
use sexton_store::monitors::{MonitorFilter, MonitorStatus};

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago};

/// Monitors of jobs.
#[derive(Debug, Subcommand)]
pub enum MonitorsCommand {
    /// List monitors by the names of their jobs
    List(List),
}

/// Which monitors to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only monitors of jobs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Only monitors with an open incident
    #[arg(long)]
    open: bool,
    /// Only monitors of jobs that limit a time: start_within, expect_within or max_runtime
    #[arg(long)]
    limited: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &MonitorsCommand, session: &Session) -> Result<(), Failure> {
    let MonitorsCommand::List(arguments) = command;
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = MonitorFilter {
        containing: arguments.contains.clone(),
        open: arguments.open,
        limited: arguments.limited,
        after: None,
    };
    let PageOptions { limit, cursor } = &arguments.page;
    let page = monitors::list(&store, filter, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        return session.out.print("There are no such monitors.");
    }
    session.out.table(table(&items, now))?;
    render_next(next_cursor.as_ref(), session)
}

fn table(monitors: &[MonitorStatus], now: DateTime<Utc>) -> Table {
    let headings = [
        "JOB",
        "STATE",
        "SEVERITY",
        "BEGINS WITHIN",
        "SUCCEEDS WITHIN",
        "RUNS AT MOST",
        "ALERT AFTER",
        "IN A ROW",
        "CHECKED",
    ];
    let mut table = Table::new(&headings).unclipped(0);
    let time = |ms: Option<i64>| {
        let format = |ms: i64| duration::format(Duration::from_millis(ms.max(0).unsigned_abs()));
        ms.map_or_else(Cell::none, |ms| Cell::new(format(ms)))
    };
    for monitor in monitors {
        table.row(vec![
            Cell::new(&monitor.job),
            state(monitor),
            Cell::new(&monitor.severity),
            time(monitor.start_within_ms),
            time(monitor.expect_within_ms),
            time(monitor.max_runtime_ms),
            Cell::number(i64::from(monitor.alert_after)),
            Cell::number(i64::from(monitor.violations)),
            Cell::new(ago(monitor.checked_at, now)),
        ]);
    }
    table
}

fn state(monitor: &MonitorStatus) -> Cell {
    match (&monitor.cause, monitor.status.as_str()) {
        (Some(cause), _) => Cell::toned(cause.replace('_', " "), Tone::Bad),
        (None, "paused") => Cell::new("paused"),
        (None, _) => Cell::toned("ok", Tone::Good),
    }
}
