//! `sexton failed show`.

use chrono::{DateTime, Utc};

use crate::commands::executions::{self, history};
use crate::commands::{failed::groups, reference};
use crate::failure::Failure;
use crate::graveyard::story::{self, Message, Story, Tail};
use crate::session::Session;
use crate::show::{Cell, precise};
use crate::show::{Facts, Tone, ago, line};

/// Of a message's body.
const MAX_BODY_CHARS: usize = 4_000;

pub(super) async fn run(id: &str, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = reference::execution(&store, id).await?;
    let told = story::tell(&store, id).await?.ok_or_else(|| reference::missing(id))?;
    if session.out.is_json() {
        return session.out.document(&told.document()?);
    }
    let now = session.now(&store).await?;
    tell(&told, now, session)
}

fn tell(story: &Story, now: DateTime<Utc>, session: &Session) -> Result<(), Failure> {
    let Story { execution, attempts, .. } = story;
    session.out.facts(executions::facts(execution, now))?;
    if let Some(group) = &story.group {
        session.out.say("\nGroup")?;
        session.out.facts(groups::facts(group, now))?;
    }
    if let Some(history) = history::table(execution, attempts, story::MAX_ATTEMPTS, now) {
        session.out.say("\nAttempts")?;
        session.out.table(history)?;
    } else if history::is_removed(execution, attempts) {
        session.out.say("\nIts attempts were removed by retention; the row stays for its key.")?;
    }
    if let Some(tail) = &story.tail {
        tell_tail(tail, session)?;
    }
    if let Some(message) = &story.parked {
        tell_message(message, now, session)?;
    }
    executions::tell_actions(&story.actions, now, session)?;
    executions::tell_hints(execution, !attempts.is_empty(), session)
}

fn tell_tail(tail: &Tail, session: &Session) -> Result<(), Failure> {
    let before = match tail.before {
        0 => String::new(),
        lines => format!(", after {lines} lines"),
    };
    session.out.say(format!("\nEnd of what attempt {} wrote{before}", tail.number))?;
    for written in &tail.lines {
        // One more for the ellipsis of a line that was cut.
        let text = line(&written.text, story::TAIL_CHARS + 1);
        session.out.say(format!("  {} {text}", written.at.format("%H:%M:%S%.3f")))?;
    }
    Ok(())
}

fn tell_message(message: &Message, now: DateTime<Utc>, session: &Session) -> Result<(), Failure> {
    session.out.say("\nMessage in the failed queue")?;
    let mut facts = Facts::default();
    match message.published_at {
        Some(at) => facts.add("published", format!("{} ({})", precise(at), ago(at, now))),
        None => facts.cell("published", Cell::toned("not yet: it is owed", Tone::Warning)),
    }
    session.out.facts(facts)?;
    session.out.say(line(&message.body.to_string(), MAX_BODY_CHARS))
}
