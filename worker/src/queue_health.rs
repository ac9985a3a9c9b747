//! Queues that do not take copies of messages: what a worker says of them.
//!
//! Nothing is decided by it. Each queue is logged once a minute, with how many messages it has not taken, and stands
//! in the answer of `/readyz` until it takes one again. The worker goes on running tasks, so it stays ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sexton_broker::{PublishError, Publisher};
use sexton_model::log_throttle::LogThrottle;
use sexton_service::clock;
use sexton_service::health::Readiness;

/// Queues that are remembered; a worker has eleven for each of its pools.
const MAX_QUEUES: usize = 200;

/// Of all slots of a worker. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct QueueHealth {
    queues: Arc<Mutex<BTreeMap<String, QueueRefusals>>>,
    readiness: Readiness,
    publisher: Publisher,
}

/// What is known of a queue that has not taken a message at least once.
#[derive(Debug, Default)]
struct QueueRefusals {
    /// That it has not taken since it last took one.
    messages: u64,
    logged: bool,
    throttle: LogThrottle,
}

impl QueueHealth {
    /// What is said goes into the answer of `readiness`; what happened goes to the doctor by way of `publisher`.
    pub(crate) fn new(readiness: &Readiness, publisher: &Publisher) -> Self {
        let (readiness, publisher) = (readiness.clone(), publisher.clone());
        Self { queues: Arc::default(), readiness, publisher }
    }

    /// Records how `queue` took a message. A broker that is out of reach says nothing of its queues.
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
        let said = format!(
            "{messages} messages could not be put into it and wait elsewhere; `sexton doctor` says what to do: {error}"
        );
        self.readiness.warn(&warning(queue), &said, clock::now());
        if refusals.throttle.permits(Instant::now()) {
            refusals.logged = true;
            tracing::warn!(queue.name = queue, queue.refused = messages, "queue {queue}: {said}");
        }
    }
}

fn warning(queue: &str) -> String {
    format!("queue {queue}")
}
