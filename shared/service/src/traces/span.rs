//! A span that has ended: what is sent of a step.

use chrono::{DateTime, Utc};
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind as Kind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::context::TraceContext;

/// What a step is to the others of its trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// A step within the program.
    Internal,
    /// It put a message into a queue.
    Producer,
    /// It handled a message.
    Consumer,
}

/// A step that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name, as tools list it.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// Its place.
    pub context: TraceContext,
    /// The step that it is a part of, in the same trace; `None`: the trace begins with it.
    pub parent: Option<TraceContext>,
    /// Steps of other traces that led to it.
    pub links: Vec<TraceContext>,
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// What is known of it. Neither params nor secrets.
    pub attributes: Vec<KeyValue>,
    /// Why it failed, in a few words; `None`: it did not.
    pub error: Option<String>,
}

impl Span {
    /// Returns what the exporter takes.
    pub(super) fn into_data(self, scope: &InstrumentationScope) -> SpanData {
        let mut links = SpanLinks::default();
        links.links = self.links.iter().map(|link| Link::with_context(remote(link))).collect();
        let parent_span_id = self.parent.map_or(SpanId::INVALID, |parent| id_of(&parent));
        SpanData {
            span_context: remote(&self.context),
            parent_span_id,
            parent_span_is_remote: parent_span_id != SpanId::INVALID,
            span_kind: match self.kind {
                SpanKind::Internal => Kind::Internal,
                SpanKind::Producer => Kind::Producer,
                SpanKind::Consumer => Kind::Consumer,
            },
            name: self.name.into(),
            start_time: self.began.into(),
            end_time: self.ended.into(),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: self.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: scope.clone(),
        }
    }
}

fn id_of(context: &TraceContext) -> SpanId {
    SpanId::from_bytes(context.span_id)
}

fn remote(context: &TraceContext) -> SpanContext {
    let flags = if context.sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    let state = context.state.as_deref().and_then(|state| state.parse::<TraceState>().ok());
    let trace_id = TraceId::from_bytes(context.trace_id);
    SpanContext::new(trace_id, id_of(context), flags, true, state.unwrap_or_default())
}
