//! Logs and reports queues that refuse messages.
//!
//! Nothing is decided by it. Each queue is logged once a minute, with the number of refused messages, and
//! appears in the answer of `/readyz` until it accepts one again. The worker continues to run tasks, so it
//! stays ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sexton_broker::{PublishError, Publisher};
use sexton_model::log_throttle::LogThrottle;
use sexton_service::clock;
use sexton_service::health::Readiness;

/// The most queues that are tracked; a worker has eleven for each of its pools.
const MAX_QUEUES: usize = 200;

/// The state of all queues of a worker. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct QueueHealth {
    queues: Arc<Mutex<BTreeMap<String, QueueRefusals>>>,
    readiness: Readiness,
    publisher: Publisher,
}

/// A queue that has refused at least one message.
#[derive(Debug, Default)]
struct QueueRefusals {
    /// Messages refused since it last accepted one.
    messages: u64,
    logged: bool,
    throttle: LogThrottle,
}

impl QueueHealth {
    /// Creates the tracker: the present refusals go to `readiness`, the events through `publisher` to `sexton
    /// doctor`.
    pub(crate) fn new(readiness: &Readiness, publisher: &Publisher) -> Self {
        let (readiness, publisher) = (readiness.clone(), publisher.clone());
        Self { queues: Arc::default(), readiness, publisher }
    }

    /// Records whether `queue` accepted a message. An unreachable broker shows nothing about its queues.
    pub(crate) fn published(&self, queue: &str, answer: &Result<(), PublishError>) {
        match answer {
            Ok(()) => self.record_accepted(queue),
            Err(PublishError::Unavailable { .. }) => {}
            Err(error) => self.record_refused(queue, error),
        }
    }

    fn record_accepted(&self, queue: &str) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(refusals) = queues.get_mut(queue).filter(|refusals| refusals.messages > 0) else {
            return;
        };
        let messages = std::mem::take(&mut refusals.messages);
        self.readiness.withdraw(&warning(queue));
        if std::mem::take(&mut refusals.logged) {
            tracing::info!(
                queue.name = queue,
                "queue {queue} takes messages again; {messages} had to wait"
            );
        }
    }

    fn record_refused(&self, queue: &str, error: &PublishError) {
        if matches!(error, PublishError::TimedOut { .. }) {
            self.publisher.note_unconfirmed(queue);
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= MAX_QUEUES && !queues.contains_key(queue) {
            return;
        }
        let refusals = queues.entry(queue.to_owned()).or_default();
        refusals.messages = refusals.messages.saturating_add(1);
        let messages = refusals.messages;
        let message = format!(
            "{messages} messages could not be put into it and wait elsewhere; `sexton doctor` says what to do: {error}"
        );
        self.readiness.warn(&warning(queue), &message, clock::now());
        if refusals.throttle.permits(Instant::now()) {
            refusals.logged = true;
            tracing::warn!(
                queue.name = queue,
                queue.refused = messages,
                "queue {queue}: {message}"
            );
        }
    }
}

fn warning(queue: &str) -> String {
    format!("queue {queue}")
}
