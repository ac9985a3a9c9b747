//! The places of an execution's steps in their traces.
//!
//! Every id is computed from the execution's and the number of the attempt, so whichever process publishes a ticket gives
//! it the same place, also after a crash, and a link to an earlier step needs no memory of it. The first attempt belongs
//! to the trace from which the execution came: that of its firing, or of the program that enqueued it. Each later attempt
//! has a trace that begins with its publication and links to the one before.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_broker::Publication;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_model::trace_ids::{derived, publication_trace};
use sexton_service::clock;
use sexton_service::traces::{self, KeyValue, Span, SpanKind, TraceContext};
use sexton_store::tickets::UnpublishedTicket;
use uuid::Uuid;

/// How long after its publication an attempt is still a part of the same trace. A trace that goes on for longer is shown
/// without its end.
const MAX_PART_AGE: Duration = Duration::from_mins(1);

/// The place of a step, and what it is connected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The step itself.
    pub context: TraceContext,
    /// The step that it is a part of.
    pub parent: Option<TraceContext>,
    /// Steps of other traces that led to it.
    pub links: Vec<TraceContext>,
}

/// What a message says of its trace.
#[derive(Clone, Copy, Debug)]
pub struct MessageTrace<'a> {
    /// Its header.
    pub traceparent: Option<&'a str>,
    /// Its header.
    pub tracestate: Option<&'a str>,
    /// When it was published, in seconds since 1970.
    pub published_s: Option<u64>,
}

/// Returns the place of a firing, with which the trace of its execution begins.
pub fn firing(execution: ExecutionId) -> TraceContext {
    TraceContext {
        trace_id: *execution.get().as_bytes(),
        span_id: span_id(execution, "fire"),
        sampled: is_sampled(execution),
        state: None,
    }
}

/// Returns the place of a ticket's publication.
pub fn publication(unpublished: &UnpublishedTicket) -> Place {
    let execution = unpublished.ticket.execution_id;
    let number = unpublished.ticket.attempt.get();
    let origin = unpublished
        .origin
        .as_ref()
        .and_then(|origin| TraceContext::parse(&origin.traceparent, origin.tracestate.as_deref()));
    let context = published(execution, number, origin.as_ref());
    if number == AttemptNumber::FIRST.get() {
        return Place { context, parent: origin, links: Vec::new() };
    }
    let before = published(execution, number - 1, origin.as_ref());
    if unpublished.state == State::Failed {
        // It ends the trace of the attempt that failed: nobody knows when the next begins.
        let span_id = span_id(execution, &format!("park {number}"));
        let context = TraceContext { span_id, ..before.clone() };
        return Place { context, parent: Some(before), links: Vec::new() };
    }
    Place { context, parent: None, links: vec![before] }
}

/// Returns the place of an attempt whose ticket arrived at `now`.
pub fn attempt(
    execution: ExecutionId,
    attempt: AttemptNumber,
    message: MessageTrace<'_>,
    now: DateTime<Utc>,
) -> Place {
    let number = attempt.get();
    let came_from =
        message.traceparent.and_then(|text| TraceContext::parse(text, message.tracestate));
    let span_id = attempt_span(execution, number);
    let Some(came_from) = came_from else {
        let trace_id = trace_id(execution, number, None);
        let context =
            TraceContext { trace_id, span_id, sampled: is_sampled(execution), state: None };
        return Place { context, parent: None, links: Vec::new() };
    };
    let now_s = u64::try_from(now.timestamp()).unwrap_or(0);
    let is_part =
        message.published_s.is_some_and(|at| now_s.saturating_sub(at) <= MAX_PART_AGE.as_secs());
    if is_part {
        let context = TraceContext { span_id, ..came_from.clone() };
        return Place { context, parent: Some(came_from), links: Vec::new() };
    }
    let trace_id = derived(execution, &format!("late {number}"));
    let context = TraceContext { trace_id, span_id, sampled: came_from.sampled, state: None };
    Place { context, parent: None, links: vec![came_from] }
}

/// Adds the place of its publication to a ticket's message. A program that does not trace passes the caller's place on.
pub(crate) fn with_trace(publication: Publication, unpublished: &UnpublishedTicket) -> Publication {
    if traces::is_on() {
        let context = self::publication(unpublished).context;
        return publication.with_trace(context.traceparent(), context.state);
    }
    match &unpublished.origin {
        Some(origin) if unpublished.ticket.attempt == AttemptNumber::FIRST => {
            publication.with_trace(origin.traceparent.clone(), origin.tracestate.clone())
        }
        _ => publication,
    }
}

/// Records that a ticket was published to `queue`, or why not.
pub fn record_publication(
    unpublished: &UnpublishedTicket,
    queue: &str,
    began: DateTime<Utc>,
    error: Option<&str>,
) {
    if !traces::is_on() {
        return;
    }
    let ticket = &unpublished.ticket;
    let Place { context, parent, links } = publication(unpublished);
    let mut attributes = message_attributes(queue, ticket.execution_id, ticket.attempt);
    attributes.extend([
        KeyValue::new("messaging.operation.type", "send"),
        KeyValue::new("sexton.job", ticket.job.clone()),
        KeyValue::new("sexton.execution_key", ticket.execution_key.clone()),
    ]);
    traces::record(Span {
        name: format!("publish {queue}"),
        kind: SpanKind::Producer,
        context,
        parent,
        links,
        began,
        ended: clock::now(),
        attributes,
        error: error.map(str::to_owned),
    });
}

/// Returns the attributes that the spans of one message share.
pub fn message_attributes(
    queue: &str,
    execution: ExecutionId,
    attempt: AttemptNumber,
) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "rabbitmq"),
        KeyValue::new("messaging.destination.name", queue.to_owned()),
        KeyValue::new("messaging.message.id", execution.to_string()),
        KeyValue::new("sexton.attempt", i64::from(attempt.get())),
    ]
}

/// Returns the place of the publication of an attempt's ticket.
fn published(execution: ExecutionId, number: i32, origin: Option<&TraceContext>) -> TraceContext {
    let first = number == AttemptNumber::FIRST.get();
    TraceContext {
        trace_id: trace_id(execution, number, origin),
        span_id: span_id(execution, &format!("publish {number}")),
        sampled: origin.map_or_else(|| is_sampled(execution), |origin| origin.sampled),
        state: origin.filter(|_| first).and_then(|origin| origin.state.clone()),
    }
}

fn trace_id(execution: ExecutionId, number: i32, origin: Option<&TraceContext>) -> [u8; 16] {
    publication_trace(execution, number, origin.map(|origin| origin.trace_id))
}

/// One decision for all traces of an execution: half of a story helps nobody.
fn is_sampled(execution: ExecutionId) -> bool {
    traces::is_sampled(*execution.get().as_bytes())
}

fn span_id(execution: ExecutionId, step: &str) -> [u8; 8] {
    first_half(derived(execution, step))
}

/// The id that an HTTP task sees also while nothing is traced.
fn attempt_span(execution: ExecutionId, number: i32) -> [u8; 8] {
    let number = number.unsigned_abs().to_be_bytes();
    first_half(*Uuid::new_v5(&execution.get(), &number).as_bytes())
}

fn first_half(id: [u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&id[..8]);
    half
}
