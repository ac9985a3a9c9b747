//! `sexton executions logs`: what an attempt wrote.

mod follow;
mod render;

use serde_json::json;
use sexton_model::output::{Output, Stream};
use sexton_operations::execution_ids;
use sexton_operations::executions::output::{WrittenOutput, read};

use super::Logs;
use crate::failure::Failure;
use crate::session::Session;

pub use render::render_output;

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
    let id = execution_ids::resolve(&store, &logs.id).await?;
    let streams = Streams::from_arguments(logs);
    if logs.follow {
        return follow::run(&store, id, logs.attempt, streams, session).await;
    }
    let WrittenOutput { number, outcome, output } = read(&store, id, logs.attempt).await?;
    let output = output.map(|output| streams.filter(output));
    if session.out.is_json() {
        return session.out.document(&json!({
            "execution_id": id, "number": number, "outcome": outcome, "output": output,
        }));
    }
    let Some(output) = output else {
        return session.out.print(match outcome {
            None => format!("Attempt {number} is running and has written nothing yet."),
            Some(outcome) => format!("Attempt {number} ended ({outcome}) without output."),
        });
    };
    for line in render_output(number, &output) {
        session.out.print(line)?;
    }
    Ok(())
}
