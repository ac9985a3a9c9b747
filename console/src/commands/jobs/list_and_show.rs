//! `sexton jobs list` and `sexton jobs show`.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::duration;
use sexton_operations::filter::read_labels;
use sexton_operations::jobs::details::{self, JobDetails, ListedJob};
use sexton_operations::paging::Page;
use sexton_store::heartbeats::undelivered::LastHeartbeat;
use sexton_store::jobs::{Job, JobFilter};

use super::{List, Status};
use crate::commands::executions as execution_commands;
use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{self, Cell, Facts, Table, Tone, ago, instant, roughly};

pub(super) async fn list(arguments: List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let status = arguments.status.map(|status| match status {
        Status::Active => "active".to_owned(),
        Status::Paused => "paused".to_owned(),
    });
    let labels = read_labels(&arguments.label)?;
    let filter = JobFilter { containing: arguments.name, status, labels, ..JobFilter::default() };
    let PageOptions { limit, cursor } = arguments.page;
    let page = details::list(&store, filter, arguments.deleted, cursor.as_deref(), limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items: found, next_cursor } = page;
    if found.is_empty() {
        return session
            .out
            .print("There are no such jobs. `sexton jobs apply -f FILE` makes jobs of a file.");
    }
    let now = session.now(&store).await?;
    let mut table =
        Table::new(&["NAME", "SCHEDULE", "TASK", "NEXT", "LAST", ""]).single_line_rows();
    for ListedJob { job, last_execution } in &found {
        let (state, when) = last_execution.as_ref().map_or_else(
            || (Cell::none(), Cell::new("")),
            |last| {
                (
                    Cell::state(&last.state),
                    Cell::toned(roughly(last.scheduled_for, now), Tone::Faint),
                )
            },
        );
        let cells = vec![
            Cell::new(&job.name),
            schedule_cell(job),
            Cell::new(&job.task_type),
            next_cell(job, now),
        ];
        table.row(cells.into_iter().chain([state, when]).collect());
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

pub(super) async fn show(name: &str, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let details = details::show(&store, name).await?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let JobDetails { job, next_firings, last_executions: last, last_heartbeat, gaps, actions } =
        details;
    let now = session.now(&store).await?;
    let mut facts = facts(&job, &next_firings, now);
    let heartbeat = last_heartbeat.map(|heartbeat| describe_last_heartbeat(&heartbeat, now));
    facts.add_optional("last heartbeat", heartbeat);
    session.out.facts(facts)?;
    if !last.is_empty() {
        session.out.print("\nLast executions")?;
        session.out.table(execution_commands::table(&store, &last, now).await?)?;
    }
    if !gaps.is_empty() {
        session.out.print("\nFirings that were not executed")?;
        let mut table = Table::new(&["FIRST", "LAST", "COUNT", "REASON"]);
        for gap in &gaps {
            let (first, last) = (instant(gap.first_firing), instant(gap.last_firing));
            let count = Cell::number(gap.count.into());
            table.row(vec![Cell::new(first), Cell::new(last), count, Cell::new(&gap.reason)]);
        }
        session.out.table(table)?;
    }
    execution_commands::render_actions(&actions, now, session)
}

/// The members of the flow that each execution begins, in their order.
fn describe_flow(members: &Value) -> String {
    let names: Vec<&str> =
        members.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    let shown = names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(20);
    if more > 0 { format!("start, {shown} and {more} more") } else { format!("start, {shown}") }
}

fn schedule_cell(job: &Job) -> Cell {
    match (job.schedule_kind.as_str(), &job.schedule_expression) {
        ("cron", Some(expression)) if job.timezone == "UTC" => Cell::new(expression),
        ("cron", Some(expression)) => Cell::new(format!("{expression} {}", job.timezone)),
        ("every", Some(period)) => Cell::new(format!("every {period}")),
        ("once", Some(at)) if job.timezone == "UTC" => Cell::new(format!("at {at}")),
        ("once", Some(at)) => Cell::new(format!("at {at} {}", job.timezone)),
        _ => Cell::none(),
    }
}

fn next_cell(job: &Job, now: DateTime<Utc>) -> Cell {
    match job.next_fire_at {
        _ if job.deleted_at.is_some() => Cell::toned("deleted", Tone::Faint),
        _ if job.status == "paused" => Cell::toned("paused", Tone::Warning),
        Some(at) => Cell::new(roughly(at, now)),
        None => Cell::none(),
    }
}

fn facts(job: &Job, firings: &[DateTime<Utc>], now: DateTime<Utc>) -> Facts {
    let mut facts = Facts::default();
    facts.add("name", &job.name);
    facts.add_optional("description", Some(&job.description).filter(|text| !text.is_empty()));
    facts.add("id", job.id.to_string());
    if let Some(at) = job.deleted_at {
        facts.cell("deleted", Cell::toned(ago(at, now), Tone::Warning));
    }
    match job.paused_at {
        None => facts.cell("status", Cell::toned("active", Tone::Good)),
        Some(at) => {
            let by = job.paused_by.as_deref().unwrap_or("somebody");
            let why = job.paused_why.as_deref().unwrap_or("no reason given");
            let text = format!("paused {} by {by}: {why}", ago(at, now));
            facts.cell("status", Cell::toned(text, Tone::Warning));
        }
    }
    facts.cell("schedule", schedule_cell(job));
    facts.add_optional("dst", Some(&job.dst).filter(|dst| *dst != "vixie"));
    facts.add_optional("days", job.days.as_ref());
    let next: Vec<String> =
        firings.iter().map(|at| format!("{} ({})", instant(*at), ago(*at, now))).collect();
    let shown = if job.status == "paused" { "if resumed" } else { "next" };
    facts.add_optional(shown, Some(next.join(", ")).filter(|text| !text.is_empty()));
    add_limits(&mut facts, job);
    facts.add("task", &job.task_type);
    facts.add("params", job.params.to_string());
    facts.add_optional("target", job.target.as_ref());
    facts.add("pool", &job.pool);
    facts.add("overlap", &job.overlap);
    facts
        .add("misfire", format!("{} within {}", job.misfire_policy, millis(job.misfire_window_ms)));
    facts.add("retry", describe_retry(job));
    facts.add("timeout", millis(job.timeout_ms));
    facts.add_optional("lease", job.lease_ms.map(millis));
    facts.add_optional("lock", describe_lock(job));
    facts.add_optional("begins within", job.start_within_ms.map(millis));
    facts.add_optional("succeeds within", job.expect_within_ms.map(millis));
    facts.add_optional("runs at most", job.max_runtime_ms.map(millis));
    facts.add_optional("alert", describe_alert(job));
    facts.add_optional("heartbeat", describe_heartbeat(job));
    facts.add_optional("stale after", job.stale_after_ms.map(millis));
    facts.add_optional("verify task", job.verify_task.as_deref());
    facts.add_optional(
        "paused after",
        job.pause_after_failures.map(|n| format!("{n} failures in a row")),
    );
    let labels =
        Some(&job.labels).filter(|labels| labels.as_object().is_some_and(|l| !l.is_empty()));
    facts.add_optional("labels", labels.map(Value::to_string));
    facts.add_optional("flow", job.flow.as_ref().map(describe_flow));
    facts.add("revision", format!("{}, changed {}", job.revision, show::ago(job.updated_at, now)));
    facts
}

fn add_limits(facts: &mut Facts, job: &Job) {
    facts.add_optional("not before", job.start_at.as_ref());
    facts.add_optional("not after", job.end_at.as_ref());
    facts.add_optional("except on", Some(job.exclude.join(", ")).filter(|days| !days.is_empty()));
    facts.add_optional("spread", job.jitter_ms.map(|ms| format!("by up to {}", millis(ms))));
    let runs = job.max_runs.map(|most| format!("{} of {most} claimed", job.runs_used));
    facts.add_optional("runs", runs);
}

fn describe_retry(job: &Job) -> String {
    let parts = [
        job.max_retries.map(|count| format!("{count} times")),
        job.max_timeouts.map(|count| format!("at most {count} timeouts")),
        job.max_crashes.map(|count| format!("at most {count} crashes")),
        job.retry_delay_ms.map(|ms| format!("first after {}", millis(ms))),
        job.retry_multiplier.map(|factor| format!("then × {factor}")),
        job.retry_max_delay_ms.map(|ms| format!("at most {}", millis(ms))),
        job.retry_jitter.map(|jitter| format!("jitter {jitter}")),
        job.permanent_classes.as_ref().map(|list| match list.as_slice() {
            [] => "no class permanent".to_owned(),
            list => format!("never after {}", list.join(" or ")),
        }),
    ];
    let limits: Vec<String> = parts.into_iter().flatten().collect();
    if limits.is_empty() { "the workers' defaults".to_owned() } else { limits.join(", ") }
}

/// Formats a duration of a column in milliseconds.
fn millis(ms: i64) -> String {
    duration::format(std::time::Duration::from_millis(ms.max(0) as u64))
}

/// Says when the job's monitor opens and resolves an incident, where the definition says it.
fn describe_alert(job: &Job) -> Option<String> {
    let rules = [
        job.severity.clone(),
        job.alert_after.map(|number| format!("after {number} in a row")),
        job.recover_after.map(|number| format!("resolved after {number} successes")),
        job.remind_every_ms.map(|every| format!("reminder every {}", millis(every))),
    ];
    let rules: Vec<String> = rules.into_iter().flatten().collect();
    (!rules.is_empty()).then(|| rules.join(", "))
}

fn describe_heartbeat(job: &Job) -> Option<String> {
    // A row of another version is shown as it is.
    let stored = job.heartbeat.as_ref()?.to_string();
    Some(job.heartbeat().ok().flatten().map_or(stored, |heartbeat| heartbeat.to_string()))
}

/// Says what became of the newest heartbeat.
fn describe_last_heartbeat(last: &LastHeartbeat, now: DateTime<Utc>) -> String {
    let LastHeartbeat { event, state, created_at, finished_at, tries, last_error } = last;
    let at = ago(*created_at, now);
    match (state.as_str(), finished_at) {
        ("sent", Some(finished)) => format!("{event} of {at}, accepted {}", ago(*finished, now)),
        ("pending", _) if *tries == 0 => format!("{event} of {at}, waits"),
        (state, _) => {
            let state = if state == "pending" { "is tried again" } else { "given up" };
            let error = last_error.as_deref().unwrap_or("no answer yet");
            format!("{event} of {at}, {state} after {tries} tries: {error}")
        }
    }
}

fn describe_lock(job: &Job) -> Option<String> {
    let lock = match (job.lock_key, &job.lock_row) {
        (Some(key), _) => format!("key {key}"),
        (None, Some(row)) => format!(
            "row {row} for {}, at least {}",
            millis(job.lock_at_most_ms.unwrap_or(0)),
            millis(job.lock_at_least_ms.unwrap_or(0))
        ),
        (None, None) => return None,
    };
    Some(format!("{lock}; {} if it is held elsewhere", job.on_locked))
}
