//! `sexton executions logs -f`: what is written, as it is stored, until the execution ends.
//!
//! It asks the rows twice a second, whoever writes how much: a worker stores about once a second. What
//! was removed before it was read (of a task that writes very much) is told as not kept. A database that
//! is away for a moment, as at its restart, is waited for.

use std::time::{Duration, Instant};

use serde_json::json;
use sexton_model::output::{Chunk, Line, Missing};
use sexton_model::state::State;
use sexton_store::output::{AttemptStatus, list_attempt_statuses, list_chunks};
use sexton_store::{Store, attempts};
use uuid::Uuid;

use super::render::{render_line, render_missing};
use super::{Streams, no_attempt, parse_legacy_output};
use crate::commands::reference;
use crate::failure::Failure;
use crate::session::Session;
use crate::show;

/// Between two questions.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the database may be away.
const OUTAGE_TIMEOUT: Duration = Duration::from_mins(1);
/// Chunks of one answer, each of some 32 KiB.
const PAGE_CHUNKS: i64 = 16;
/// Attempts of one answer.
const PAGE_STAGES: i64 = 100;

/// Follows an execution, or one attempt of it, to its end or until Ctrl-C.
pub(super) async fn run(
    store: &Store,
    id: Uuid,
    attempt: Option<i32>,
    streams: Streams,
    session: &Session,
) -> Result<(), Failure> {
    let mut follower = Follower {
        store,
        id,
        streams,
        session,
        position: Position::default(),
        only_attempt: attempt,
    };
    tokio::select! {
        ended = follower.follow() => ended,
        // Whoever has seen enough has what was asked for.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

struct Follower<'a> {
    store: &'a Store,
    id: Uuid,
    streams: Streams,
    session: &'a Session,
    position: Position,
    /// Not the others.
    only_attempt: Option<i32>,
}

/// How far somebody has read.
#[derive(Clone, Copy, Default)]
struct Position {
    /// The attempt; 0 before the first.
    number: i32,
    /// Its last line that was read, and how many bytes it had written by then.
    line: i64,
    bytes: i64,
    /// Its end was told.
    ended: bool,
}

impl Follower<'_> {
    async fn follow(&mut self) -> Result<(), Failure> {
        // The last attempt so far, as without following; then those that come.
        if let Some(last) = attempts::output(self.store, self.id, self.only_attempt).await? {
            self.position.number = last.number;
        } else if self.only_attempt.is_some() {
            return Err(no_attempt(self.store, self.id, self.only_attempt).await);
        }
        let mut away_since = None;
        loop {
            match self.poll().await {
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

    /// Tells what there is by now; whether that was the end. If it fails it may be asked again: nothing is
    /// told twice.
    async fn poll(&mut self) -> Result<bool, Failure> {
        let from = self.position.number;
        // Asked first: what was written before an end is stored by then.
        let Some((state, stages)) =
            list_attempt_statuses(self.store, self.id, from, PAGE_STAGES).await?
        else {
            return Err(reference::missing(self.id));
        };
        for stage in &stages {
            self.follow_stage(stage).await?;
            if self.only_attempt.is_some() && self.position.ended {
                return Ok(true);
            }
        }
        let ended =
            State::parse(&state).is_none_or(|state| state.is_final() || !state.is_under_way());
        let ended = ended && (stages.len() as i64) < PAGE_STAGES;
        if ended {
            self.render_state(&state)?;
        }
        Ok(ended)
    }

    /// Reads what an attempt has written since, and its end.
    async fn follow_stage(&mut self, stage: &AttemptStatus) -> Result<(), Failure> {
        if self.only_attempt.is_some_and(|only_attempt| only_attempt != stage.number) {
            return Ok(());
        }
        if stage.number != self.position.number {
            self.position = Position { number: stage.number, ..Position::default() };
        }
        if self.position.ended {
            return Ok(());
        }
        loop {
            let read =
                list_chunks(self.store, self.id, stage.number, self.position.line, PAGE_CHUNKS)
                    .await?;
            for chunk in &read {
                self.read(chunk)?;
            }
            if (read.len() as i64) < PAGE_CHUNKS {
                break;
            }
        }
        match &stage.outcome {
            Some(outcome) => self.end(outcome).await,
            None => Ok(()),
        }
    }

    fn read(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let Position { number, line, bytes, .. } = self.position;
        let missing = chunk.missing_after(line, bytes);
        if missing != Missing::default() {
            self.render_missing(missing)?;
        }
        let lines =
            super::join_chunks(number, std::slice::from_ref(chunk)).map_err(Failure::Failed)?;
        for line in &lines.lines {
            self.render_line(line)?;
        }
        self.position.line = chunk.last_line();
        self.position.bytes = chunk.bytes_before.saturating_add(chunk.bytes);
        Ok(())
    }

    async fn end(&mut self, outcome: &str) -> Result<(), Failure> {
        let number = self.position.number;
        if self.position.line == 0
            && let Some(attempt) = attempts::output(self.store, self.id, Some(number)).await?
            && let Some(value) = attempt.output
        {
            for line in &parse_legacy_output(number, value).map_err(Failure::Failed)?.lines {
                self.render_line(line)?;
            }
        }
        self.position.ended = true;
        if self.session.out.is_json() {
            return self.session.out.record(&json!({"attempt": number, "outcome": outcome}));
        }
        self.session.out.print(format!("— attempt {number} ended: {outcome} —"))
    }

    fn render_line(&self, line: &Line) -> Result<(), Failure> {
        if !self.streams.is_shown(line.stream) {
            return Ok(());
        }
        if !self.session.out.is_json() {
            return self.session.out.print(render_line(line));
        }
        self.session.out.record(&json!({
            "attempt": self.position.number, "at": line.at, "stream": line.stream, "text": line.text,
        }))
    }

    fn render_missing(&self, missing: Missing) -> Result<(), Failure> {
        if !self.session.out.is_json() {
            return self.session.out.print(render_missing(missing));
        }
        self.session.out.record(&json!({
            "attempt": self.position.number, "dropped_lines": missing.lines,
            "dropped_bytes": missing.bytes,
        }))
    }

    fn render_state(&self, state: &str) -> Result<(), Failure> {
        if self.session.out.is_json() {
            return self.session.out.record(&json!({"state": state}));
        }
        self.session.out.print(format!("— the execution is {state} —"))
    }
}
