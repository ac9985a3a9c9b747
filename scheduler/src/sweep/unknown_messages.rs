//! Handles messages that no row knows: records them, removes those that an operator discarded, and puts back
//! those whose discard was undone. See [`sexton_store::unknown_messages`] for the order and for the effects of
//! a crash.

use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};
use sexton_broker::frame_filter::PropertiesFlaw;
use sexton_broker::{ParkedMessage, Properties, Publication};
use sexton_model::ticket::IncomingMessage;
use sexton_service::fault;
use sexton_store::exclusive_lock::ExclusiveLock;
use sexton_store::timeout::with_timeout;
use sexton_store::unknown_messages::{
    self, Capacity, DIGEST_BYTES, Digest, RecordOutcome, SeenMessage,
};
use sexton_store::{Now, Store};
use tokio::time::Instant;

use super::Sweep;
use super::pass::{CONFIRM_INTERVAL, copy_error};
use crate::background_loop::{LoopError, QUERY_TIMEOUT};

/// The most messages that are put back before one pass.
const MAX_RESTORED_MESSAGES: u64 = 100;

/// Records a message that was taken from the queue and that no row knows, if it is already recorded or `room`
/// is left, which is reduced by what it needs.
pub(super) async fn record(
    store: &Store,
    message: &ParkedMessage,
    incoming: &IncomingMessage,
    room: &mut Capacity,
    pass: chrono::DateTime<chrono::Utc>,
    now: Now,
) -> Result<RecordOutcome, LoopError> {
    let properties = document(&message.delivery.properties).to_string();
    let (kind, why) = kind_and_reason(incoming, &message.delivery.properties);
    let seen = SeenMessage {
        digest: digest(&message.delivery.body, &properties),
        kind,
        reason: &why,
        body: &message.delivery.body,
        properties: &properties,
    };
    let (body, beside) = (seen.body.len(), properties.len());
    let noting = unknown_messages::record_message(store, &seen, pass, room.fits(body, beside), now);
    let noted = with_timeout(QUERY_TIMEOUT, noting).await?;
    if noted == (RecordOutcome::Kept { new: true }) {
        *room = room.minus(body, beside);
    }
    fault::point("scheduler.sweep_recorded");
    Ok(noted)
}

/// Publishes removed messages again whose discard was undone. Returns how many. Each copy is recorded when the
/// broker has confirmed it, so that a crash, or a stop in the middle, puts back at most one of them twice.
pub(super) async fn restore(
    sweep: &Sweep,
    lock: &mut ExclusiveLock,
    queue: &str,
    now: Now,
) -> Result<u64, LoopError> {
    let (store, mut count, mut confirmed) = (&sweep.store, 0, Instant::now());
    let mut last = Vec::new();
    while count < MAX_RESTORED_MESSAGES {
        let next =
            with_timeout(QUERY_TIMEOUT, unknown_messages::next_to_restore(store, &last)).await?;
        let Some(one) = next else { break };
        for left in (0..one.copies).rev() {
            sweep.note_progress();
            if sweep.stop.is_cancelled() {
                return Ok(count);
            }
            let copy = Publication::copy(queue, one.body.clone(), properties(&one.properties));
            sweep.publisher.publish_one(copy).await.map_err(copy_error)?;
            if left > 0 {
                // Whether or not the mark is unchanged: a pass that lost its lock may have met a copy and
                // removed it, and the remaining copies must be restored all the same.
                with_timeout(
                    QUERY_TIMEOUT,
                    unknown_messages::mark_copy_restored(store, &one.digest),
                )
                .await?;
            }
            if confirmed.elapsed() >= CONFIRM_INTERVAL {
                with_timeout(QUERY_TIMEOUT, lock.confirm()).await?;
                confirmed = Instant::now();
            }
        }
        fault::point("scheduler.sweep_restored");
        with_timeout(QUERY_TIMEOUT, unknown_messages::mark_restored(store, &one.digest, now))
            .await?;
        last = one.digest;
        count += 1;
    }
    Ok(count)
}

fn kind_and_reason(incoming: &IncomingMessage, properties: &Properties) -> (&'static str, String) {
    match (incoming, properties.flaw) {
        (_, Some(flaw)) => ("unreadable", format!("its properties: {}", flaw.as_str())),
        (IncomingMessage::Ticket { execution_id, attempt }, _) => (
            "ticket",
            format!("there is no execution {execution_id}, whose attempt {attempt} it names"),
        ),
        // The worker that refused to adopt the message has added the reason.
        (IncomingMessage::Foreign(task), _) => {
            let plain = || format!("a task of another program, of the type {}", task.task_type);
            ("foreign", properties.failed_reason.clone().unwrap_or_else(plain))
        }
        (IncomingMessage::Unreadable { reason }, _) => ("unreadable", reason.clone()),
    }
}

/// Hashes body and properties, each with its length, so that no two messages have the same input.
fn digest(body: &[u8], properties: &str) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in [body, properties.as_bytes()] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Returns the properties that a copy keeps, under their AMQP names, without absent ones. The result is the
/// same for a message and its copy, and therefore leaves out the flaw, which a copy does not have.
fn document(properties: &Properties) -> Value {
    let mut all = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    set("message_id", properties.message_id.as_ref().map(|it| json!(it)));
    set("type", properties.kind.as_ref().map(|it| json!(it)));
    set("content_type", properties.content_type.as_ref().map(|it| json!(it)));
    set("timestamp", properties.timestamp_s.map(|it| json!(it)));
    set("sexton-attempt", properties.attempt.map(|it| json!(it)));
    set("sexton-schema", properties.schema.map(|it| json!(it)));
    set("traceparent", properties.traceparent.as_ref().map(|it| json!(it)));
    set("tracestate", properties.tracestate.as_ref().map(|it| json!(it)));
    set("sexton-failed-reason", properties.failed_reason.as_ref().map(|it| json!(it)));
    set("sexton-failed-at", properties.failed_at.as_ref().map(|it| json!(it)));
    Value::Object(all)
}

/// Parses the text that [`document`] wrote.
fn properties(document: &str) -> Properties {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let text = |name: &str| document[name].as_str().map(str::to_owned);
    Properties {
        message_id: text("message_id"),
        kind: text("type"),
        content_type: text("content_type"),
        timestamp_s: document["timestamp"].as_u64(),
        expiration_ms: None,
        delays: None,
        attempt: document["sexton-attempt"].as_i64(),
        schema: document["sexton-schema"].as_i64(),
        traceparent: text("traceparent"),
        tracestate: text("tracestate"),
        failed_reason: text("sexton-failed-reason"),
        failed_at: text("sexton-failed-at"),
        flaw: None::<PropertiesFlaw>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Properties {
        Properties {
            message_id: Some("nul \0 in it".to_owned()),
            kind: Some("report".to_owned()),
            content_type: Some("application/json".to_owned()),
            timestamp_s: Some(u64::MAX),
            expiration_ms: None,
            delays: None,
            attempt: Some(-3),
            schema: Some(1),
            traceparent: Some("00-a-b-01".to_owned()),
            tracestate: Some("vendor=1".to_owned()),
            failed_reason: Some("not JSON".to_owned()),
            failed_at: Some("2025-01-01T00:00:00Z".to_owned()),
            flaw: None,
        }
    }

    #[test]
    fn properties_are_the_same_after_they_were_kept_as_text() {
        for original in [full(), Properties::default()] {
            let text = document(&original).to_string();
            assert!(!text.contains('\0'), "PostgreSQL keeps no such character");
            assert_eq!(properties(&text), original);
        }
    }

    #[test]
    fn equal_messages_have_one_digest_and_others_have_others() {
        let flawed = Properties { flaw: Some(PropertiesFlaw::Malformed), ..Properties::default() };
        let plain = document(&Properties::default()).to_string();
        assert_eq!(document(&flawed).to_string(), plain, "a copy of it has no flaw");
        let digests = [
            digest(b"a", &plain),
            digest(b"b", &plain),
            digest(b"a{", "}"),
            digest(b"a", &document(&full()).to_string()),
        ];
        for (at, one) in digests.iter().enumerate() {
            assert!(!digests[..at].contains(one));
        }
        assert_eq!(digest(b"a", &plain), digests[0]);
    }
}
