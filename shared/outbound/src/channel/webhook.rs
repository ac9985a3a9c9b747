//! A webhook, by Standard Webhooks 1.0.
//!
//! The id is the notification's, so a receiver recognises a repetition. The signature is HMAC-SHA256 over
//! `<id>.<timestamp>.<body>`, and the timestamp that of the try.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use sexton_model::notification::{Digest, Message};

use super::Delivery;
use super::text::{cut, instant};

/// Longest text of a body, in characters.
const MAX_TEXT_CHARS: usize = 4_000;
/// The beginning of a secret in base64, as Standard Webhooks writes it.
const SECRET_PREFIX: &str = "whsec_";

/// Returns the body.
pub fn body(delivery: &Delivery) -> Value {
    match delivery {
        Delivery::Single(message) => single(message),
        Delivery::Digest(digest) => of_digest(digest),
        Delivery::Batch(messages) => messages.first().map(single).unwrap_or_default(),
    }
}

/// Returns the value of `webhook-signature`.
///
/// # Errors
///
/// The secret begins with `whsec_` and is no base64 behind it.
pub fn signature(
    secret: &str,
    id: &str,
    timestamp: i64,
    body: &str,
) -> Result<String, &'static str> {
    let key = match secret.strip_prefix(SECRET_PREFIX) {
        Some(encoded) => {
            STANDARD.decode(encoded).map_err(|_| "the secret is no base64 behind whsec_")?
        }
        None => secret.as_bytes().to_vec(),
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    Ok(format!("v1,{}", STANDARD.encode(tag)))
}

fn single(message: &Message) -> Value {
    let kind = message.kind.as_str();
    let Some(incident) = &message.incident else {
        return json!({
            "type": "channel.test",
            "timestamp": instant(message.created_at),
            "data": {"title": cut(&message.title(), MAX_TEXT_CHARS), "text": cut(&message.detail, MAX_TEXT_CHARS)},
        });
    };
    json!({
        "type": format!("incident.{kind}"),
        "timestamp": instant(message.created_at),
        "data": {
            "title": cut(&message.title(), MAX_TEXT_CHARS),
            "text": cut(message.text(), MAX_TEXT_CHARS),
            "incident": {
                "id": incident.id,
                "subject_kind": incident.subject_kind.as_str(),
                "name": incident.name,
                "cause": incident.cause,
                "severity": incident.severity.as_str(),
                "labels": incident.labels,
                "detail": cut(&incident.detail, MAX_TEXT_CHARS),
                "job_id": incident.job_id,
                "execution_id": incident.execution_id,
                "state": incident.state.as_str(),
                "occurrences": incident.occurrences,
                "opened_at": instant(incident.opened_at),
                "acknowledged_by": incident.acknowledged_by,
                "resolved_at": incident.resolved_at.map(instant),
                "runbook": incident.runbook(),
                "what_to_do": incident.what_to_do(),
            },
        },
    })
}

fn of_digest(digest: &Digest) -> Value {
    let groups = digest.groups.iter().map(|group| {
        json!({
            "kind": group.kind.as_str(),
            "subject_kind": group.subject_kind.as_str(),
            "cause": group.cause,
            "severity": group.severity.as_str(),
            "count": group.count,
            "what_to_do": group.what_to_do(),
        })
    });
    json!({
        "type": "incidents.digest",
        "timestamp": instant(digest.since),
        "data": {
            "title": digest.title(),
            "text": cut(&digest.text(), MAX_TEXT_CHARS),
            "count": digest.count,
            "groups": groups.collect::<Value>(),
            "names": digest.names,
            "more_names": digest.more_names,
        },
    })
}
