//! `sexton failed show`.

use chrono::{DateTime, Utc};

use crate::commands::executions::{self, history};
use crate::commands::groups;
use sexton_operations::error::NotFound;
use sexton_operations::execution_ids;
use sexton_operations::failed::details::{self, FailureDetails, ParkedMessage, Tail};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, precise};
use crate::show::{Facts, Tone, ago, line};

/// Of a message's body.
const MAX_BODY_CHARS: usize = 4_000;

pub(super) async fn run(id: &str, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = execution_ids::resolve(&store, id).await?;
    let missing = || NotFound::Execution(id.to_string());
    let details = details::find(&store, id).await?.ok_or_else(missing)?;
    if session.out.is_json() {
        return session.out.document(&details);
    }
    let now = session.now(&store).await?;
    render(&details, now, session)
}

fn render(details: &FailureDetails, now: DateTime<Utc>, session: &Session) -> Result<(), Failure> {
    let FailureDetails { execution, attempts, .. } = details;
    session.out.facts(executions::facts(execution, now))?;
    if let Some(group) = &details.group {
        session.out.print("\nGroup")?;
        session.out.facts(groups::facts(group, now))?;
    }
    if let Some(history) = history::table(execution, attempts, details::MAX_ATTEMPTS, now) {
        session.out.print("\nAttempts")?;
        session.out.table(history)?;
    } else if history::is_removed(execution, attempts) {
        session
            .out
            .print("\nIts attempts were removed by retention; the row stays for its key.")?;
    }
    if let Some(tail) = &details.tail {
        render_tail(tail, session)?;
    }
    if let Some(message) = &details.parked {
        render_message(message, now, session)?;
    }
    executions::render_actions(&details.actions, now, session)?;
    executions::render_hints(execution, !attempts.is_empty(), session)
}

fn render_tail(tail: &Tail, session: &Session) -> Result<(), Failure> {
    let before = match tail.before {
        0 => String::new(),
        lines => format!(", after {lines} lines"),
    };
    session.out.print(format!("\nEnd of what attempt {} wrote{before}", tail.number))?;
    for written in &tail.lines {
        // One more for the ellipsis of a line that was cut.
        let text = line(&written.text, details::TAIL_CHARS + 1);
        session.out.print(format!("  {} {text}", written.at.format("%H:%M:%S%.3f")))?;
    }
    Ok(())
}

fn render_message(
    message: &ParkedMessage,
    now: DateTime<Utc>,
    session: &Session,
) -> Result<(), Failure> {
    session.out.print("\nMessage in the failed queue")?;
    let mut facts = Facts::default();
    match message.published_at {
        Some(at) => facts.add("published", format!("{} ({})", precise(at), ago(at, now))),
        None => facts.cell("published", Cell::toned("not yet", Tone::Warning)),
    }
    session.out.facts(facts)?;
    session.out.print(line(&message.body.to_string(), MAX_BODY_CHARS))
}
