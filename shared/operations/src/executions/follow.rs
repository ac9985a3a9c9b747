//! Follows the output of an execution, as it is stored, until it ends.
//!
//! [`Follower::poll`] reads the output since the last call; a worker stores about once a second. Output that was
//! removed before it was read (of a task that writes very much) is an event of its own.

use sexton_model::output::{Chunk, Line, Missing};
use sexton_model::state::State;
use sexton_store::output::{AttemptStatus, list_attempt_statuses, list_chunks};
use sexton_store::{Store, attempts};
use uuid::Uuid;

use super::output::{join_chunks, no_attempt, parse_legacy_output};
use crate::error::OperationError;
use crate::execution_ids;

/// Maximum number of chunks in one answer, each of some 32 KiB.
const PAGE_CHUNKS: i64 = 16;
/// Maximum number of attempts in one answer.
const PAGE_ATTEMPTS: i64 = 100;

/// An event. All but the last belong to one attempt, given by its number.
#[derive(Clone, PartialEq, Debug)]
pub enum OutputEvent {
    /// The attempt wrote a line.
    Line(i32, Line),
    /// Lines were removed before they were read.
    Missing(i32, Missing),
    /// The attempt ended with this outcome.
    AttemptEnded(i32, String),
    /// The execution has ended, or waits for an operator, in this state.
    ExecutionEnded(String),
}

/// Follows an execution, or one attempt of it.
#[derive(Debug)]
pub struct Follower {
    id: Uuid,
    position: Position,
    /// The attempt to follow; `None`: all.
    only_attempt: Option<i32>,
}

/// A reader's position.
#[derive(Clone, Copy, Default, Debug)]
struct Position {
    /// The attempt; 0 before the first.
    number: i32,
    /// Its last line that was read, and the number of bytes up to there.
    line: i64,
    bytes: i64,
    /// Whether its end was read.
    ended: bool,
}

impl Follower {
    /// Begins with the last attempt so far, or with `attempt`.
    ///
    /// # Errors
    ///
    /// [`crate::error::NotFound`] for an attempt that does not exist.
    pub async fn begin(
        store: &Store,
        id: Uuid,
        attempt: Option<i32>,
    ) -> Result<Self, OperationError> {
        let mut follower = Self { id, position: Position::default(), only_attempt: attempt };
        if let Some(last) = attempts::output(store, id, attempt).await? {
            follower.position.number = last.number;
        } else if attempt.is_some() {
            return Err(no_attempt(store, id, attempt).await);
        }
        Ok(follower)
    }

    /// Passes new events to `event`, in order; returns whether that was the end. After an error the call may be
    /// repeated: no event is passed twice, as long as `event` accepts it.
    ///
    /// # Errors
    ///
    /// [`crate::error::NotFound::Execution`], [`OperationError::Failed`] for output that cannot be read, those of the
    /// database, and those of `event`.
    pub async fn poll<E: From<OperationError>>(
        &mut self,
        store: &Store,
        event: &mut impl FnMut(OutputEvent) -> Result<(), E>,
    ) -> Result<bool, E> {
        let from = self.position.number;
        // Read first: output from before an attempt's end is stored by then.
        let statuses = list_attempt_statuses(store, self.id, from, PAGE_ATTEMPTS).await;
        let Some((state, attempts)) = statuses.map_err(OperationError::from)? else {
            return Err(execution_ids::missing(self.id).into());
        };
        for attempt in &attempts {
            self.follow_attempt(store, attempt, event).await?;
            if self.only_attempt.is_some() && self.position.ended {
                return Ok(true);
            }
        }
        let ended =
            State::parse(&state).is_none_or(|state| state.is_final() || !state.is_under_way());
        let ended = ended && (attempts.len() as i64) < PAGE_ATTEMPTS;
        if ended {
            event(OutputEvent::ExecutionEnded(state))?;
        }
        Ok(ended)
    }

    /// Reads an attempt's new output, and its end.
    async fn follow_attempt<E: From<OperationError>>(
        &mut self,
        store: &Store,
        attempt: &AttemptStatus,
        event: &mut impl FnMut(OutputEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.only_attempt.is_some_and(|only_attempt| only_attempt != attempt.number) {
            return Ok(());
        }
        if attempt.number != self.position.number {
            self.position = Position { number: attempt.number, ..Position::default() };
        }
        if self.position.ended {
            return Ok(());
        }
        loop {
            let (number, line) = (attempt.number, self.position.line);
            let read = list_chunks(store, self.id, number, line, PAGE_CHUNKS).await;
            let read = read.map_err(OperationError::from)?;
            for chunk in &read {
                self.read(chunk, event)?;
            }
            if (read.len() as i64) < PAGE_CHUNKS {
                break;
            }
        }
        match &attempt.outcome {
            Some(outcome) => self.end(store, outcome, event).await,
            None => Ok(()),
        }
    }

    fn read<E: From<OperationError>>(
        &mut self,
        chunk: &Chunk,
        event: &mut impl FnMut(OutputEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let Position { number, line, bytes, .. } = self.position;
        let missing = chunk.missing_after(line, bytes);
        if missing != Missing::default() {
            event(OutputEvent::Missing(number, missing))?;
        }
        let output = join_chunks(number, std::slice::from_ref(chunk));
        for line in output.map_err(OperationError::Failed)?.lines {
            event(OutputEvent::Line(number, line))?;
        }
        self.position.line = chunk.last_line();
        self.position.bytes = chunk.bytes_before.saturating_add(chunk.bytes);
        Ok(())
    }

    async fn end<E: From<OperationError>>(
        &mut self,
        store: &Store,
        outcome: &str,
        event: &mut impl FnMut(OutputEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let number = self.position.number;
        if self.position.line == 0 {
            let attempt = attempts::output(store, self.id, Some(number)).await;
            let output = attempt.map_err(OperationError::from)?.and_then(|attempt| attempt.output);
            if let Some(value) = output {
                let output = parse_legacy_output(number, value).map_err(OperationError::Failed)?;
                for line in output.lines {
                    event(OutputEvent::Line(number, line))?;
                }
            }
        }
        self.position.ended = true;
        event(OutputEvent::AttemptEnded(number, outcome.to_owned()))
    }
}
