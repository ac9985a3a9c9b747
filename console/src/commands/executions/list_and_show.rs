//! `sexton executions list` and `sexton executions show`.

use chrono::{DateTime, Utc};
use sexton_operations::execution_ids;
use sexton_operations::executions::details::{self, MAX_ATTEMPTS};
use sexton_operations::executions::list::{self, ExecutionPage};
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_store::executions::{Execution, MAX_WALKED_EXECUTIONS};

use super::{List, Show, history, render_actions, table};
use crate::commands::flows::draw;
use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{self, Cell, Facts, Tone, ago};

pub(super) async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let PageOptions { limit, cursor } = &arguments.page;
    let after = list::read_cursor(cursor.as_deref())?;
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let request = arguments.filter.request();
    let filter = request.read_executions(&store, &arguments.state, now).await?;
    let ExecutionPage { page, is_cut_short } =
        list::list(&store, &filter, after, *limit, MAX_WALKED_EXECUTIONS).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items: found, next_cursor } = page;
    if !found.is_empty() {
        session.out.table(table(&store, &found, now).await?)?;
    } else if is_cut_short {
        session.out.print("There are no such executions among those looked at.")?;
    } else {
        session.out.print("There are no such executions.")?;
    }
    if is_cut_short {
        session.out.print(format!(
            "{MAX_WALKED_EXECUTIONS} executions were looked at; the next page looks at older ones."
        ))?;
    }
    render_next(next_cursor.as_ref(), session)
}

/// Shows one execution.
pub(super) async fn show(arguments: &Show, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = execution_ids::resolve(&store, &arguments.id).await?;
    let details = details::find(&store, id, arguments.unmasked).await?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let (execution, attempts) = (&details.execution, &details.attempts);
    let now = session.now(&store).await?;
    session.out.facts(facts(execution, now))?;
    if let Some(flow) = &details.flow {
        let members = &flow.all;
        let ids =
            short_ids::of_executions(&store, members.iter().map(|it| it.execution_id)).await?;
        session.out.print(format!("\nFlow {} {}", flow.flow.name, flow.flow.id))?;
        session.out.table(draw(members, &ids))?;
    }
    if let Some(history) = history::table(execution, attempts, MAX_ATTEMPTS, now) {
        session.out.print("\nAttempts")?;
        session.out.table(history)?;
    } else if history::is_removed(execution, attempts) {
        session
            .out
            .print("\nIts attempts were removed by retention; the row stays for its key.")?;
    }
    render_actions(&details.actions, now, session)?;
    render_hints(execution, !attempts.is_empty(), session)
}

/// What can be done about it. `written`: there may be output.
pub(in crate::commands) fn render_hints(
    execution: &Execution,
    written: bool,
    session: &Session,
) -> Result<(), Failure> {
    let id = execution.id;
    match execution.state.as_str() {
        "failed" => {
            let mut hints = Facts::default();
            if written {
                hints.add("its output", format!("sexton executions logs {id}"));
            }
            hints.add(
                "run it again",
                format!(
                    "sexton failed requeue {id} --attempt {number}",
                    number = execution.attempt
                ),
            );
            hints.add("give it up", format!("sexton failed discard {id} --reason …"));
            session.out.print("")?;
            session.out.facts(hints)
        }
        "discarded" => {
            let mut hints = Facts::default();
            hints.add("take that back", format!("sexton failed restore {id}"));
            session.out.print("")?;
            session.out.facts(hints)
        }
        _ => Ok(()),
    }
}

/// The row, for people.
pub(in crate::commands) fn facts(execution: &Execution, now: DateTime<Utc>) -> Facts {
    let at = |at: DateTime<Utc>| format!("{} ({})", show::precise(at), ago(at, now));
    let mut facts = Facts::default();
    facts.add("execution", execution.id.to_string());
    facts.add("job", &execution.job_name);
    facts.cell("state", Cell::state(&execution.state));
    facts.add_optional("skipped because", execution.skip_reason.as_ref());
    facts.add_optional(
        "claimed by a backfill",
        execution.backfill.map(|number| format!("action {number}")),
    );
    facts.add_optional("overlap", execution.overlap_override.as_ref());
    facts.add_optional("waited", describe_wait(execution, now));
    facts.add_optional("replaced by", execution.replaced_by.map(|id| id.to_string()));
    let next = matches!(execution.state.as_str(), "pending" | "retrying" | "failed" | "discarded");
    let number = execution.attempt;
    facts.add("attempt", if next { format!("{number} is next") } else { number.to_string() });
    facts.add("scheduled for", at(execution.scheduled_for));
    facts.add_optional("time zone data", execution.tz_version.as_ref());
    facts.add("claimed", format!("{} by {}", at(execution.claimed_at), execution.claimed_by));
    let due = execution.next_attempt_at.filter(|_| !execution.is_blocked());
    facts.add_optional("next attempt", due.map(at));
    facts.add_optional("last started", execution.started_at.map(at));
    facts.add_optional("finished", execution.finished_at.map(at));
    facts.add_optional("worker", execution.worker_id.map(|id| id.to_string()));
    facts.add_optional("progress", execution.progress.as_ref().and_then(history::progress));
    facts.add_optional("lease until", execution.lease_until.map(at));
    if execution.cancel_requested {
        facts.cell("cancel", Cell::toned("requested", Tone::Warning));
    }
    if let Some(message) = &execution.error_message {
        let class = execution.error_class.as_deref().unwrap_or("error");
        facts.cell("error", Cell::toned(format!("{class}: {message}"), Tone::Bad));
    }
    facts.add_optional("result", execution.result.as_ref().map(ToString::to_string));
    facts.add("retries used", execution.retries_used.to_string());
    let used = |count: i32| Some(count.to_string()).filter(|_| count > 0);
    facts.add_optional("timeouts used", used(execution.timeouts_used));
    facts.add_optional("crashes used", used(execution.crashes_used));
    facts.add_optional(
        "snoozed",
        used(execution.snoozes_used).map(|count| format!("{count} times")),
    );
    facts.add("task", format!("{} in pool {}", execution.task_type, execution.pool));
    facts.add_optional("target", execution.target.as_ref());
    facts.add("params", execution.params.to_string());
    facts.add("key", &execution.execution_key);
    facts.add("idempotency key", &execution.idempotency_key);
    match execution.ticket_published_at {
        Some(published) => facts.add("ticket", format!("published {}", ago(published, now))),
        None if execution.is_waiter() => {
            let until = match execution.next_attempt_at {
                Some(_) if execution.is_blocked() => {
                    "held back until the members before it have ended".to_owned()
                }
                Some(due) if due > now => format!("held back until it is due {}", ago(due, now)),
                _ => "held back until the job is free".to_owned(),
            };
            facts.add("ticket", until);
        }
        None if matches!(execution.state.as_str(), "pending" | "retrying" | "failed") => {
            facts.cell("ticket", Cell::toned("not published yet", Tone::Warning));
        }
        None => {}
    }
    facts
}

/// For what it waited, and until when.
fn describe_wait(execution: &Execution, now: DateTime<Utc>) -> Option<String> {
    let why = match execution.waits.as_deref()? {
        _ if execution.flow_id.is_some() => "for the members before it, or for its turn",

        "queue" => "queued behind an earlier execution of the job",
        "replace" => "for the end of what it replaced",
        _ => "for its time, or for its turn if the job's executions run one at a time",
    };
    Some(match execution.admitted_at {
        Some(at) => format!("{why}; until {} ({})", show::precise(at), ago(at, now)),
        None if execution.is_waiter() => format!("{why}; it waits still"),
        None => format!("{why}; in vain"),
    })
}
