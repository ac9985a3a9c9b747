//! An event of PagerDuty's Events API, version 2.
//!
//! All events of an incident have its id as their `dedup_key`: PagerDuty makes one incident of its openings and reminders, and
//! the end resolves that.

use serde_json::{Value, json};
use sexton_model::incident::{NotificationKind, Severity};
use sexton_model::notification::Message;

use super::text::{cut, instant};

/// Longest summary, in characters.
const MAX_SUMMARY_CHARS: usize = 1_024;
/// Longest other text, in characters.
const MAX_TEXT_CHARS: usize = 1_000;
/// Longest `dedup_key`, in characters.
pub const MAX_KEY_CHARS: usize = 255;
/// Most labels in the details.
const MAX_LABELS: usize = 50;

/// Returns the body.
pub fn body(message: &Message, routing_key: &str) -> Value {
    let key = message.incident.as_ref().map_or(message.id, |incident| incident.id).to_string();
    let action = match message.kind {
        NotificationKind::Acknowledged => "acknowledge",
        NotificationKind::Resolved => "resolve",
        NotificationKind::Opened
        | NotificationKind::Reopened
        | NotificationKind::Reminder
        | NotificationKind::Escalated
        | NotificationKind::Test => "trigger",
    };
    let mut body = json!({"routing_key": routing_key, "event_action": action, "dedup_key": key});
    if action == "trigger" {
        body["client"] = "Sexton".into();
        body["payload"] = payload(message);
        let runbook = message.incident.as_ref().and_then(|incident| incident.runbook());
        if let Some(link) = runbook.filter(|text| text.starts_with("https://")) {
            body["links"] = json!([{"href": cut(link, MAX_TEXT_CHARS), "text": "Runbook"}]);
        }
    }
    body
}

fn payload(message: &Message) -> Value {
    let summary = cut(&message.title(), MAX_SUMMARY_CHARS);
    let Some(incident) = &message.incident else {
        return json!({"summary": summary, "source": "sexton", "severity": "info"});
    };
    let labels = incident.labels.iter().take(MAX_LABELS);
    json!({
        "summary": summary,
        "source": cut(&incident.name, MAX_TEXT_CHARS),
        "severity": match incident.severity {
            Severity::High => "critical",
            Severity::Medium => "error",
            Severity::Low => "warning",
        },
        "timestamp": instant(incident.opened_at),
        "component": cut(&incident.name, MAX_TEXT_CHARS),
        "class": cut(&incident.cause, MAX_TEXT_CHARS),
        "custom_details": {
            "text": cut(message.text(), MAX_TEXT_CHARS),
            "subject_kind": incident.subject_kind.as_str(),
            "occurrences": incident.occurrences,
            "execution_id": incident.execution_id,
            "what_to_do": incident.what_to_do(),
            "labels": labels.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<Value>(),
        },
    })
}
