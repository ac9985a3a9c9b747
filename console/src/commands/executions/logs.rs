//! `sexton executions logs`: what an attempt wrote.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use sexton_store::attempts;
use sexton_store::executions;

use crate::commands::reference;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// Longer than any line that is kept.
const MAX_LINE_CHARS: usize = 16 * 1024;
/// Of what is wrong with output that cannot be read.
const MAX_ERROR_CHARS: usize = 200;

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
    let number = found.number;
    let Some(value) = found.output else {
        return session.out.say(match found.outcome {
            None => format!("Attempt {number} is running; its output is kept when it ends."),
            Some(outcome) => format!("Attempt {number} ended ({outcome}) without output."),
        });
    };
    for line in told(number, value).map_err(Failure::Failed)? {
        session.out.say(line)?;
    }
    Ok(())
}

/// What attempt `number` wrote, line by line, safe to show; `value` is the column `attempts.output`.
///
/// # Errors
///
/// What to do about a value that no worker of this version wrote.
pub fn told(number: i32, value: Value) -> Result<Vec<String>, String> {
    let output: Output = serde_json::from_value(value).map_err(|error| {
        let error = line(&error.to_string(), MAX_ERROR_CHARS);
        format!("the output of attempt {number} cannot be read ({error}); --json shows it as it is")
    })?;
    if output.lines.is_empty() && output.dropped_bytes == 0 {
        return Ok(vec![format!("Attempt {number} wrote nothing.")]);
    }
    let mut lines = Vec::with_capacity(output.lines.len() + 1);
    for (index, written) in output.lines.iter().enumerate() {
        if index == output.head_lines {
            lines.extend(dropped(&output));
        }
        let mark = if written.stream == "stderr" { "err" } else { "out" };
        let text = line(&written.text, MAX_LINE_CHARS);
        lines.push(format!("{} {mark} {text}", written.at.format("%H:%M:%S%.3f")));
    }
    if output.lines.len() <= output.head_lines {
        lines.extend(dropped(&output));
    }
    Ok(lines)
}

fn dropped(output: &Output) -> Option<String> {
    let Output { dropped_lines, dropped_bytes, .. } = output;
    let said = format!("… {dropped_lines} lines ({dropped_bytes} bytes) were not kept …");
    (*dropped_bytes > 0).then_some(said)
}
