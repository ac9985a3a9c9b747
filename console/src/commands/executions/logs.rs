//! `sexton executions logs`: what an attempt wrote.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sexton_store::attempts::{self, AttemptOutput};
use sexton_store::executions;

use crate::commands::reference;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Longer than any line that is kept.
const MAX_LINE_CHARS: usize = 16 * 1024;

/// The column `attempts.output`, as workers write it.
#[derive(Debug, Deserialize)]
struct Output {
    lines: Vec<Line>,
    #[serde(default)]
    head_lines: usize,
    #[serde(default)]
    dropped_bytes: u64,
    #[serde(default)]
    dropped_lines: u64,
}

#[derive(Debug, Deserialize)]
struct Line {
    at: DateTime<Utc>,
    stream: String,
    text: String,
}

pub(super) async fn run(id: &str, attempt: Option<i32>, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = reference::execution(&store, id).await?;
    let Some(found) = attempts::output(&store, id, attempt).await? else {
        let execution =
            executions::find(&store, id).await?.ok_or_else(|| reference::missing(id))?;
        return Err(Failure::NotFound(match attempt {
            Some(number) => format!(
                "execution {id} has no attempt {number}; `sexton executions show {id}` lists them"
            ),
            None => format!("execution {id} is {}: no attempt was opened yet", execution.state),
        }));
    };
    if session.out.is_json() {
        return session.out.document(&found);
    }
    tell(found, session)
}

fn tell(found: AttemptOutput, session: &Session) -> Result<(), Failure> {
    let number = found.number;
    let Some(value) = found.output else {
        return session.out.say(match found.outcome {
            None => format!("Attempt {number} is running; its output is kept when it ends."),
            Some(outcome) => format!("Attempt {number} ended ({outcome}) without output."),
        });
    };
    let output: Output = serde_json::from_value(value).map_err(|error| {
        Failure::Failed(format!(
            "the output of attempt {number} cannot be read ({error}); --json shows it as it is"
        ))
    })?;
    if output.lines.is_empty() && output.dropped_bytes == 0 {
        return session.out.say(format!("Attempt {number} wrote nothing."));
    }
    for (index, written) in output.lines.iter().enumerate() {
        if index == output.head_lines {
            tell_dropped(&output, session)?;
        }
        let mark = if written.stream == "stderr" { "err" } else { "out" };
        let text = line(&written.text, MAX_LINE_CHARS);
        session.out.say(format!("{} {mark} {text}", written.at.format("%H:%M:%S%.3f")))?;
    }
    if output.lines.len() <= output.head_lines {
        tell_dropped(&output, session)?;
    }
    Ok(())
}

fn tell_dropped(output: &Output, session: &Session) -> Result<(), Failure> {
    if output.dropped_bytes == 0 {
        return Ok(());
    }
    session.out.say(format!(
        "… {} lines ({} bytes) were not kept …",
        output.dropped_lines, output.dropped_bytes
    ))
}
