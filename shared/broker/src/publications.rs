//! Builds publications: a ticket for its queue, a copy for a delay queue or the failed queue.
//!
//! Everything here is built from the allow-list of [`Properties`]; a delivery's other properties are dropped. Names
//! and delays are pure functions of their arguments.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::delay_queues::{NextQueue, next_queue};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_model::ticket::{
    MAX_REASON_BYTES, ParkedDetails, SCHEMA_VERSION, Ticket, format_instant, truncate,
};

use crate::delivery::Delivery;
use crate::names::{Namespace, failed_queue, main_queue, retry_queue};
use crate::properties::Properties;
use crate::publish::Publication;

const JSON: &str = "application/json";

/// Returns the publication of an unpublished ticket of a row in `state`: pending to the pool's main queue, retrying
/// to a delay queue for `due_in` (or to the main queue when it is due), failed to the failed queue with the details
/// in `parked`.
pub fn ticket(
    namespace: &Namespace,
    pool: &PoolName,
    state: State,
    due_in: Duration,
    ticket: &Ticket,
    parked: Option<&ParkedDetails>,
    now: DateTime<Utc>,
) -> Publication {
    let (queue, expiration_ms) = match state {
        State::Failed => (failed_queue(namespace), None),
        State::Retrying => waiting_queue(namespace, pool, due_in, due_in),
        _ => (main_queue(namespace, pool), None),
    };
    let properties = Properties {
        message_id: Some(ticket.execution_id.to_string()),
        kind: Some(ticket.task_type.clone()),
        content_type: Some(JSON.to_owned()),
        timestamp_s: u64::try_from(now.timestamp()).ok(),
        expiration_ms,
        attempt: Some(i64::from(ticket.attempt.get())),
        schema: Some(SCHEMA_VERSION),
        ..Properties::default()
    };
    Publication::new(queue, ticket.body(parked), properties)
}

/// Returns a copy of a delivered ticket that came too early, for a delay queue for `remaining`.
///
/// The headers are written anew, which restores them if a tool has dropped them.
pub fn delay_early_ticket(
    namespace: &Namespace,
    pool: &PoolName,
    remaining: Duration,
    delivery: &Delivery,
    execution_id: ExecutionId,
    attempt: AttemptNumber,
) -> Publication {
    let (queue, expiration_ms) = waiting_queue(namespace, pool, remaining, remaining);
    let properties = Properties {
        message_id: Some(execution_id.to_string()),
        expiration_ms,
        attempt: Some(i64::from(attempt.get())),
        schema: Some(SCHEMA_VERSION),
        delays: None,
        ..delivery.properties.clone()
    };
    Publication::copy(queue, delivery.body.clone(), properties)
}

/// Returns a copy of another program's task whose type no worker offers, for a delay queue for `delay`, with one more
/// delay in its header.
pub fn delay_unoffered_task(
    namespace: &Namespace,
    pool: &PoolName,
    delay: Duration,
    delivery: &Delivery,
) -> Publication {
    let (queue, expiration_ms) = waiting_queue(namespace, pool, delay, delay);
    let delays = delivery.properties.delays.unwrap_or(0).saturating_add(1);
    let properties =
        Properties { expiration_ms, delays: Some(delays), ..delivery.properties.clone() };
    Publication::copy(queue, delivery.body.clone(), properties)
}

/// Returns an unchanged copy of a delivery for a delay queue: it comes back after `delay`, as if for the first time.
pub fn delay_copy(
    namespace: &Namespace,
    pool: &PoolName,
    delay: Duration,
    delivery: &Delivery,
) -> Publication {
    let (queue, expiration_ms) = waiting_queue(namespace, pool, delay, delay);
    let properties = Properties { expiration_ms, ..delivery.properties.clone() };
    Publication::copy(queue, delivery.body.clone(), properties)
}

/// Returns an unchanged copy of a delivery for the tail of its main queue.
pub fn requeue_copy(namespace: &Namespace, pool: &PoolName, delivery: &Delivery) -> Publication {
    let queue = main_queue(namespace, pool);
    Publication::copy(queue, delivery.body.clone(), delivery.properties.clone())
}

/// Returns a copy of a delivery for the failed queue, byte for byte, with the reason in its headers.
pub fn park_copy(
    namespace: &Namespace,
    delivery: &Delivery,
    reason: &str,
    now: DateTime<Utc>,
) -> Publication {
    let properties = Properties {
        expiration_ms: None,
        delays: None,
        flaw: None,
        failed_reason: Some(truncate(reason, MAX_REASON_BYTES).to_owned()),
        failed_at: Some(format_instant(now)),
        ..delivery.properties.clone()
    };
    Publication::copy(failed_queue(namespace), delivery.body.clone(), properties)
}

fn waiting_queue(
    namespace: &Namespace,
    pool: &PoolName,
    remaining: Duration,
    delay: Duration,
) -> (String, Option<u64>) {
    match next_queue(remaining, delay) {
        NextQueue::Main => (main_queue(namespace, pool), None),
        NextQueue::Delay { delay_ms, expiration_ms } => {
            (retry_queue(namespace, pool, delay_ms), expiration_ms)
        }
    }
}
