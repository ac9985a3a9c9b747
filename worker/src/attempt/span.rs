//! The span of an attempt, from its ticket's arrival to its recorded end.

use chrono::{DateTime, Utc};

use sexton_broker::Delivery;
use sexton_engine::traces::{self, MessageTrace, Place, message_attributes};
use sexton_model::retry::AttemptEnd;
use sexton_service::clock;
use sexton_service::traces::{KeyValue, Span, SpanKind, TraceContext, is_on, record};
use sexton_store::open::Opened;

use super::outcome::AttemptOutcome;

/// An attempt that is under way, in a worker that traces.
#[derive(Debug)]
pub(crate) struct AttemptSpan {
    place: Place,
    queue: String,
    began: DateTime<Utc>,
}

impl AttemptSpan {
    /// Begins the span of the attempt that `delivery` from `queue` opened; `None`: nothing is traced.
    pub(crate) fn begin(delivery: &Delivery, queue: &str, opened: &Opened) -> Option<Self> {
        is_on().then(|| {
            let properties = &delivery.properties;
            let message = MessageTrace {
                traceparent: properties.traceparent.as_deref(),
                tracestate: properties.tracestate.as_deref(),
                published_s: properties.timestamp_s,
            };
            let place = traces::attempt(opened.execution_id, opened.attempt, message, clock::now());
            Self { place, queue: queue.to_owned(), began: clock::now() }
        })
    }

    /// Returns its place, for what the task calls.
    pub(super) fn context(&self) -> TraceContext {
        self.place.context.clone()
    }

    /// Ends it. Of an error it says the class alone, because the message may repeat params.
    pub(super) fn end(self, opened: &Opened, end: &AttemptOutcome) {
        // An attempt that was put off has a class as well, and did not fail.
        let failed = !matches!(
            end.ending,
            AttemptEnd::Success | AttemptEnd::Snoozed { .. } | AttemptEnd::Locked(_)
        );
        let class = end.error.as_ref().filter(|_| failed).map(|(class, _)| class.clone());
        self.record(opened, end.outcome, class);
    }

    fn record(self, opened: &Opened, outcome: &'static str, error: Option<String>) {
        let Self { place: Place { context, parent, links }, queue, began } = self;
        let mut attributes = message_attributes(&queue, opened.execution_id, opened.attempt);
        attributes.extend([
            KeyValue::new("messaging.operation.type", "process"),
            KeyValue::new("sexton.job", opened.job.clone()),
            KeyValue::new("sexton.execution_key", opened.execution_key.clone()),
            KeyValue::new("sexton.outcome", outcome),
        ]);
        attributes.extend(error.clone().map(|class| KeyValue::new("error.type", class)));
        record(Span {
            name: format!("process {queue}"),
            kind: SpanKind::Consumer,
            context,
            parent,
            links,
            began,
            ended: clock::now(),
            attributes,
            error,
        });
    }
}
