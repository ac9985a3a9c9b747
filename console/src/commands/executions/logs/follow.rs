//! `sexton executions logs -f`: what is written, as it is stored, until the execution ends.
//!
//! It reads the rows twice a second, however much the tasks write. A database that is away for a moment, as at its
//! restart, is waited for.

use std::time::{Duration, Instant};

use serde_json::json;
use sexton_model::output::Line;
use sexton_operations::executions::follow::{Follower, OutputEvent};
use sexton_store::Store;
use uuid::Uuid;

use super::Streams;
use super::render::{render_line, render_missing};
use crate::failure::Failure;
use crate::session::Session;
use crate::show;

/// Between two questions.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the database may be away.
const OUTAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// Follows an execution, or one attempt of it, to its end or until Ctrl-C.
pub(super) async fn run(
    store: &Store,
    id: Uuid,
    attempt: Option<i32>,
    streams: Streams,
    session: &Session,
) -> Result<(), Failure> {
    tokio::select! {
        ended = follow(store, id, attempt, streams, session) => ended,
        // An interrupted reader has seen enough: that is no failure.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn follow(
    store: &Store,
    id: Uuid,
    attempt: Option<i32>,
    streams: Streams,
    session: &Session,
) -> Result<(), Failure> {
    let mut follower = Follower::begin(store, id, attempt).await?;
    let mut away_since = None;
    let mut render = |event| render(event, streams, session);
    loop {
        match follower.poll(store, &mut render).await {
            Ok(true) => return Ok(()),
            Ok(false) => away_since = None,
            Err(Failure::Unreachable(why)) => {
                let since = *away_since.get_or_insert_with(|| {
                    eprintln!("sexton: {}; waiting for it", show::lines(&why));
                    Instant::now()
                });
                if since.elapsed() > OUTAGE_TIMEOUT {
                    return Err(Failure::Unreachable(why));
                }
            }
            Err(other) => return Err(other),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn render(event: OutputEvent, streams: Streams, session: &Session) -> Result<(), Failure> {
    let out = &session.out;
    match event {
        OutputEvent::Line(_, line) if !streams.is_shown(line.stream) => Ok(()),
        OutputEvent::Line(number, Line { at, stream, text }) if out.is_json() => {
            out.record(&json!({"attempt": number, "at": at, "stream": stream, "text": text}))
        }
        OutputEvent::Line(_, line) => out.print(render_line(&line)),
        OutputEvent::Missing(number, missing) if out.is_json() => out.record(&json!({
            "attempt": number, "dropped_lines": missing.lines, "dropped_bytes": missing.bytes,
        })),
        OutputEvent::Missing(_, missing) => out.print(render_missing(missing)),
        OutputEvent::AttemptEnded(number, outcome) if out.is_json() => {
            out.record(&json!({"attempt": number, "outcome": outcome}))
        }
        OutputEvent::AttemptEnded(number, outcome) => {
            out.print(format!("— attempt {number} ended: {outcome} —"))
        }
        OutputEvent::ExecutionEnded(state) if out.is_json() => out.record(&json!({"state": state})),
        OutputEvent::ExecutionEnded(state) => out.print(format!("— the execution is {state} —")),
    }
}
