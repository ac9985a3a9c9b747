//! `sexton executions logs`: what an attempt wrote.

mod follow;
mod render;

use serde_json::{Value, json};
use sexton_model::output::{Chunk, Output, Stream};
use sexton_store::attempts::{self, AttemptOutput};
use sexton_store::{Store, executions, output};
use uuid::Uuid;

use super::Logs;
use crate::commands::reference;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

pub use render::render_output;

/// More chunks than a worker leaves of one attempt.
const MAX_CHUNKS: i64 = 1_000;
/// Of what is wrong with output that cannot be read.
const MAX_ERROR_CHARS: usize = 200;

/// Whose lines are shown.
#[derive(Clone, Copy, Debug)]
struct Streams {
    stdout: bool,
    stderr: bool,
}

impl Streams {
    fn from_arguments(logs: &Logs) -> Self {
        let both = logs.stdout == logs.stderr;
        Self { stdout: both || logs.stdout, stderr: both || logs.stderr }
    }

    fn is_shown(self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => self.stdout,
            Stream::Stderr => self.stderr,
        }
    }

    /// Without the lines that are not shown.
    fn filter(self, mut output: Output) -> Output {
        let shown = |line: &sexton_model::output::Line| self.is_shown(line.stream);
        let head = output.lines.iter().take(output.head_lines).filter(|line| shown(line)).count();
        output.lines.retain(shown);
        Output { head_lines: head, ..output }
    }
}

pub(super) async fn run(logs: &Logs, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = reference::execution(&store, &logs.id).await?;
    let streams = Streams::from_arguments(logs);
    if logs.follow {
        return follow::run(&store, id, logs.attempt, streams, session).await;
    }
    let Some(found) = attempts::output(&store, id, logs.attempt).await? else {
        return Err(no_attempt(&store, id, logs.attempt).await);
    };
    let output = read(&store, &found).await?.map(|output| streams.filter(output));
    if session.out.is_json() {
        return session.out.document(&json!({
            "execution_id": id, "number": found.number, "outcome": found.outcome, "output": output,
        }));
    }
    let number = found.number;
    let Some(output) = output else {
        return session.out.print(match found.outcome {
            None => format!("Attempt {number} is running and has written nothing yet."),
            Some(outcome) => format!("Attempt {number} ended ({outcome}) without output."),
        });
    };
    for line in render_output(number, &output) {
        session.out.print(line)?;
    }
    Ok(())
}

async fn no_attempt(store: &Store, id: Uuid, attempt: Option<i32>) -> Failure {
    let execution = match executions::find(store, id).await {
        Ok(Some(execution)) => execution,
        Ok(None) => return reference::missing(id),
        Err(error) => return error.into(),
    };
    Failure::NotFound(match attempt {
        Some(number) => format!(
            "execution {id} has no attempt {number}; `sexton executions show {id}` lists them"
        ),
        None => format!("execution {id} is {}: no attempt was opened yet", execution.state),
    })
}

/// All that is kept of an attempt's output; `None`: it wrote nothing.
async fn read(store: &Store, attempt: &AttemptOutput) -> Result<Option<Output>, Failure> {
    let (id, number) = (attempt.execution_id, attempt.number);
    let chunks = output::list_chunks(store, id, number, 0, MAX_CHUNKS).await?;
    if !chunks.is_empty() {
        return join_chunks(number, &chunks).map(Some).map_err(Failure::Failed);
    }
    let before = attempt.output.clone().map(|value| parse_legacy_output(number, value));
    before.transpose().map_err(Failure::Failed)
}

/// The output that an attempt's chunks hold.
///
/// # Errors
///
/// What to do about a row that no worker of this version wrote.
pub fn join_chunks(number: i32, chunks: &[Chunk]) -> Result<Output, String> {
    Output::of(chunks).map_err(|error| unreadable(number, "attempt_output", &error.to_string()))
}

/// The output as workers before the chunks kept it, in the column `attempts.output`.
///
/// # Errors
///
/// What to do about a value that no worker wrote.
pub fn parse_legacy_output(number: i32, value: Value) -> Result<Output, String> {
    serde_json::from_value(value)
        .map_err(|error| unreadable(number, "attempts.output", &error.to_string()))
}

fn unreadable(number: i32, place: &str, error: &str) -> String {
    let error = line(error, MAX_ERROR_CHARS);
    format!(
        "the output of attempt {number} cannot be read ({error}); look at {place} in the database"
    )
}
