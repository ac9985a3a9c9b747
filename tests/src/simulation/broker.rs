//! The broker, as a value: three queues that keep, lose, double and reorder as the operations say.
//!
//! It is the adversary, not what is tested. What a broker really does is shown by the tests that talk
//! to one; what a message says and how long it waits is decided by the real functions.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_model::delay_queues::{NextQueue, next_queue};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_model::ticket::{Envelope, IncomingMessage, SCHEMA_VERSION, read_message};
use sexton_store::tickets::UnpublishedTicket;

/// A message, as far as anybody looks at it.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The property `message_id`.
    pub(super) name: Option<String>,
    attempt: Option<i64>,
    body: Vec<u8>,
    /// Why the broker moved it to the failed queue, if it did.
    pub(super) note: Option<&'static str>,
}

impl Message {
    fn of(unpublished: &UnpublishedTicket) -> Self {
        Self {
            name: Some(unpublished.ticket.execution_id.to_string()),
            attempt: Some(unpublished.ticket.attempt.get().into()),
            body: unpublished.ticket.body(unpublished.parked.as_ref()),
            note: None,
        }
    }

    /// A task of another program.
    pub(super) fn foreign(key: &str, task_type: &str) -> Self {
        let body = json!({"type": task_type}).to_string().into_bytes();
        Self { name: Some(key.to_owned()), attempt: None, body, note: None }
    }

    /// A copy that a worker publishes of a ticket that came too early.
    pub(super) fn too_early(&self, id: ExecutionId, attempt: AttemptNumber) -> Self {
        Self {
            name: Some(id.to_string()),
            attempt: Some(attempt.get().into()),
            body: self.body.clone(),
            note: None,
        }
    }

    /// A copy that any process publishes: the broker's own note stays behind.
    pub(super) fn copied(&self) -> Self {
        Self { note: None, ..self.clone() }
    }

    /// What is left when a tool moves the body only. A foreign task would become another one.
    pub(super) fn strip(&mut self) {
        if self.attempt.take().is_some() {
            self.name = None;
        }
    }

    /// What it says.
    pub(super) fn reads(&self) -> IncomingMessage {
        read_message(Envelope {
            message_id: self.name.as_deref(),
            attempt: self.attempt,
            schema: self.attempt.map(|_| SCHEMA_VERSION),
            flaw: None,
            body: &self.body,
        })
    }

    /// The ticket it is, unless it is a foreign task.
    pub(super) fn ticket(&self) -> Option<(ExecutionId, AttemptNumber)> {
        match self.reads() {
            IncomingMessage::Ticket { execution_id, attempt } => Some((execution_id, attempt)),
            _ => None,
        }
    }
}

/// The queues.
#[derive(Debug, Default)]
pub(super) struct Broker {
    pub(super) main: Vec<Message>,
    /// With the instant at which each comes back.
    pub(super) delay_queues: Vec<(DateTime<Utc>, Message)>,
    pub(super) failed: Vec<Message>,
}

impl Broker {
    /// Publishes a ticket where its row's state sends it.
    pub(super) fn publish(&mut self, unpublished: &UnpublishedTicket, now: DateTime<Utc>) {
        let message = Message::of(unpublished);
        match unpublished.state {
            State::Failed => self.failed.push(message),
            State::Retrying => {
                self.wait(message, unpublished.due_in.to_std().unwrap_or_default(), now);
            }
            _ => self.main.push(message),
        }
    }

    /// Publishes a message to a delay queue, where it waits for one delay.
    pub(super) fn wait(&mut self, message: Message, remaining: Duration, now: DateTime<Utc>) {
        match next_queue(remaining, remaining) {
            NextQueue::Main => self.main.push(message),
            NextQueue::Delay { delay_ms, expiration_ms } => {
                let ms = expiration_ms.unwrap_or(delay_ms);
                self.delay_queues.push((now + Duration::from_millis(ms), message));
            }
        }
    }

    /// Gives back what has waited long enough.
    pub(super) fn ripen(&mut self, now: DateTime<Utc>) {
        let (ripe, waiting) =
            std::mem::take(&mut self.delay_queues).into_iter().partition(|(at, _)| *at <= now);
        self.delay_queues = waiting;
        let ripe: Vec<(DateTime<Utc>, Message)> = ripe;
        self.main.extend(ripe.into_iter().map(|(_, message)| message));
    }

    /// All messages.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        let waiting = self.delay_queues.iter().map(|(_, message)| message);
        self.main.iter().chain(waiting).chain(&self.failed)
    }
}

/// `index` modulo what is there; `None` if nothing is.
pub(super) fn pick(index: u8, length: usize) -> Option<usize> {
    usize::from(index).checked_rem(length)
}
