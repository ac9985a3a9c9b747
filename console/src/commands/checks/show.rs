//! `sexton checks list` and `show`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;
use sexton_model::duration;
use sexton_operations::checks;
use sexton_operations::paging::Page;
use sexton_store::checks::list::{CheckFilter, CheckStatus, ListedPing};

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, Tone, ago};

/// Which checks to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only checks whose name contains this text
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Only checks with an open incident
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// Which check to show.
#[derive(Debug, Args)]
pub struct Show {
    /// The check's name
    name: String,
    /// Maximum number of pings
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(i64).range(0..=400))]
    pings: i64,
}

pub(super) async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = CheckFilter {
        containing: arguments.contains.clone(),
        open: arguments.open,
        ..CheckFilter::default()
    };
    let PageOptions { limit, cursor } = &arguments.page;
    let page = checks::list(&store, filter, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        return session
            .out
            .print("There are no such checks. `sexton checks apply -f FILE` adds some.");
    }
    let headings = ["CHECK", "STATE", "EXPECTED", "GRACE", "SEVERITY", "LAST PING", "KEY"];
    let mut table = Table::new(&headings).unclipped(0);
    for check in &items {
        table.row(vec![
            Cell::new(&check.name),
            state(check),
            Cell::new(expected(check)),
            Cell::new(time(check.grace_ms)),
            Cell::new(&check.severity),
            last_ping(check, now).map_or_else(Cell::none, Cell::new),
            check.key.as_ref().map_or_else(Cell::none, Cell::new),
        ]);
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

pub(super) async fn show(arguments: &Show, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let (check, pings) = checks::show(&store, &arguments.name, arguments.pings).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"check": check, "pings": pings}));
    }
    let runs = check.max_runtime_ms.unwrap_or(check.grace_ms);
    let mut facts = Facts::default();
    facts.add("check", &check.name);
    facts.cell("state", state(&check));
    facts.add("expected", format!("{}, {} later at most", expected(&check), time(check.grace_ms)));
    facts.add("a run takes", format!("{} at most", time(runs)));
    facts.add("severity", &check.severity);
    facts.add("last ping", last_ping(&check, now).unwrap_or_else(|| "none yet".to_owned()));
    facts.add("address", format!("/ping/{}", check.id));
    let by_name = check.key.as_ref().map(|key| format!("/ping/<key {key}>/{}", check.name));
    facts.add_optional("with key", by_name);
    session.out.facts(facts)?;
    if pings.is_empty() {
        return Ok(());
    }
    session.out.print("")?;
    session.out.table(table(&pings, now))
}

fn table(pings: &[ListedPing], now: DateTime<Utc>) -> Table {
    let mut table = Table::new(&["ARRIVED", "REPORTS", "RUN", "SENT BY", "TEXT"]);
    for ping in pings {
        let status = ping.exit_code.map(|code| format!(" (exit status {code})"));
        let reports = format!("{}{}", ping.kind, status.unwrap_or_default());
        let tone = if ping.kind == "fail" { Tone::Bad } else { Tone::Good };
        let first = ping.body.as_deref().and_then(|body| body.lines().next());
        table.row(vec![
            Cell::new(ago(ping.at, now)),
            if ping.kind == "log" { Cell::new(reports) } else { Cell::toned(reports, tone) },
            ping.rid.map_or_else(Cell::none, |rid| Cell::new(rid.to_string())),
            ping.agent.as_ref().map_or_else(Cell::none, Cell::new),
            first.map_or_else(Cell::none, Cell::new),
        ]);
    }
    table
}

fn state(check: &CheckStatus) -> Cell {
    match (&check.cause, check.is_paused, check.last_ping_at) {
        (Some(cause), _, _) => Cell::toned(cause.replace('_', " "), Tone::Bad),
        (None, true, _) => Cell::new("paused"),
        (None, false, None) => Cell::new("no ping yet"),
        (None, false, Some(_)) => Cell::toned("ok", Tone::Good),
    }
}

fn expected(check: &CheckStatus) -> String {
    match (&check.schedule, check.every_ms) {
        (Some(schedule), _) => format!("{schedule} ({})", check.timezone),
        (None, every) => format!("every {}", time(every.unwrap_or_default())),
    }
}

fn last_ping(check: &CheckStatus, now: DateTime<Utc>) -> Option<String> {
    let kind = check.last_ping.as_deref().unwrap_or_default();
    check.last_ping_at.map(|at| format!("{}, {kind}", ago(at, now)))
}

fn time(ms: i64) -> String {
    duration::format(Duration::from_millis(ms.max(0).unsigned_abs()))
}
