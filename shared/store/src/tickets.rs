//! Tickets: a row read as its unpublished ticket, and what decides when that is published.
//!
//! The [`relay`] takes unpublished tickets; [`reconcile`] marks those unpublished again that the broker seems to have
//! lost; [`waiters`] holds those back whose job is not free.

pub mod reconcile;
pub mod relay;
pub mod waiters;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::flow_control::Destination;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::pool::PoolName;
use sexton_model::state::State;
use sexton_model::ticket::{ParkedDetails, Ticket};
use uuid::Uuid;

use crate::StoreError;
use crate::error::parse_column;

/// A row's unpublished ticket, with everything needed to publish it and to mark it published.
#[derive(Clone, PartialEq, Debug)]
pub struct UnpublishedTicket {
    /// The ticket, with the row's own attempt number.
    pub ticket: Ticket,
    /// The revision that the mark must find unchanged.
    pub rev: i32,
    /// `pending`, `retrying` or `failed`: decides the queue.
    pub state: State,
    /// The pool whose queues it goes to.
    pub pool: PoolName,
    /// How long until it may be opened, by the database's clock; zero or less: due.
    pub due_in: chrono::Duration,
    /// Further details for the message in the failed queue.
    pub parked: Option<ParkedDetails>,
    /// The span from which the execution came, as the row has it.
    pub origin: Option<Box<TraceOrigin>>,
}

/// The span from which an execution came: that of its firing, or of the program that enqueued it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceOrigin {
    /// As W3C Trace Context writes it; not checked.
    pub traceparent: String,
    /// What the systems of that trace say.
    pub tracestate: Option<String>,
}

impl TraceOrigin {
    /// Returns the origin that `traceparent` gives, if there is one.
    pub fn new(traceparent: Option<String>, tracestate: Option<String>) -> Option<Box<Self>> {
        traceparent.map(|traceparent| Box::new(Self { traceparent, tracestate }))
    }
}

impl UnpublishedTicket {
    /// Returns the ticket's destination.
    pub fn destination(&self) -> Destination {
        Destination { pool: self.pool.to_string(), state: self.state }
    }
}

/// The columns that make a ticket, as every query of them returns them.
pub(crate) struct TicketRow {
    pub(crate) id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) job_name: String,
    pub(crate) attempt: i32,
    pub(crate) rev: i32,
    pub(crate) state: String,
    pub(crate) pool: String,
    pub(crate) task_type: String,
    pub(crate) target: Option<String>,
    pub(crate) params: Value,
    pub(crate) execution_key: String,
    pub(crate) idempotency_key: String,
    pub(crate) scheduled_for: DateTime<Utc>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) error_message: Option<String>,
    pub(crate) retries_used: i32,
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
    pub(crate) now: DateTime<Utc>,
}

impl TicketRow {
    pub(crate) fn into_unpublished(self) -> Result<UnpublishedTicket, StoreError> {
        let state = parse_column("executions.state", &self.state, State::parse)?;
        let attempt = parse_column("executions.attempt", &self.attempt.to_string(), |_| {
            AttemptNumber::new(self.attempt)
        })?;
        let pool = parse_column("executions.pool", &self.pool, |text| text.parse().ok())?;
        let parked = (state == State::Failed).then(|| ParkedDetails {
            failed_at: self.finished_at.unwrap_or(self.now),
            failed_reason: self.error_message.unwrap_or_default(),
            retry_count: self.retries_used.max(0) as u32,
        });
        Ok(UnpublishedTicket {
            ticket: Ticket {
                execution_id: ExecutionId::new(self.id),
                attempt,
                job_id: JobId::new(self.job_id),
                job: self.job_name,
                task_type: self.task_type,
                target: self.target,
                params: self.params,
                execution_key: self.execution_key,
                scheduled_for: self.scheduled_for,
                idempotency_key: self.idempotency_key,
            },
            rev: self.rev,
            state,
            pool,
            due_in: self.next_attempt_at.map_or(chrono::Duration::zero(), |at| at - self.now),
            parked,
            origin: TraceOrigin::new(self.traceparent, self.tracestate),
        })
    }
}
