//! Alerts for an Alertmanager, by its API of version 2.
//!
//! An Alertmanager identifies an alert by its labels. So these are made of what never changes in an incident, and hold its id.
//! An alert without an end is over there after five minutes in which nobody repeats it; so each open incident's has an end
//! in a year, and its end is sent when it is over.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::{Map, Value, json};
use sexton_model::incident::{IncidentState, NotificationKind, SubjectKind};
use sexton_model::notification::{Incident, Message};

use super::text::{cut, instant};

/// Longest value of a label or an annotation, in characters.
const MAX_TEXT_CHARS: usize = 4_000;
/// Most labels of a job.
const MAX_LABELS: usize = 50;
/// How long an alert lasts that nobody ends.
const OPEN_FOR: TimeDelta = TimeDelta::days(366);

/// Returns the body: an alert for each message. A message of what an Alertmanager knows nothing of, an acknowledgement, repeats
/// its alert.
pub fn body(messages: &[Message]) -> Value {
    messages.iter().map(alert).collect()
}

fn alert(message: &Message) -> Value {
    let Some(incident) = &message.incident else { return test(message) };
    let is_over =
        message.kind == NotificationKind::Resolved || incident.state == IncidentState::Resolved;
    let ends_at = match incident.resolved_at.filter(|_| is_over) {
        Some(at) => at,
        None if is_over => message.created_at,
        None => incident.opened_at + OPEN_FOR,
    };
    let mut annotations = Map::new();
    let mut annotate = |name: &str, text: &str| {
        if !text.is_empty() {
            annotations.insert(name.to_owned(), cut(text, MAX_TEXT_CHARS).into());
        }
    };
    annotate("summary", &message.title());
    annotate("description", message.text());
    annotate("cause", &incident.cause);
    annotate("what_to_do", incident.what_to_do());
    annotate("runbook_url", incident.runbook().unwrap_or_default());
    json!({
        "labels": labels(incident),
        "annotations": annotations,
        "startsAt": instant(incident.opened_at),
        "endsAt": instant(ends_at),
    })
}

fn labels(incident: &Incident) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = incident
        .labels
        .iter()
        .take(MAX_LABELS)
        .map(|(name, value)| (label_name(name), cut(value, MAX_TEXT_CHARS)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let (alert, subject) = match incident.subject_kind {
        SubjectKind::Job => ("SextonJob", "job"),
        SubjectKind::Check => ("SextonCheck", "check"),
        SubjectKind::Group => ("SextonFailureGroup", "group"),
        SubjectKind::Platform => ("SextonPlatform", "finding"),
        SubjectKind::Channel => ("SextonChannel", "channel"),
    };
    // After the job's, so that no label of a job replaces one of these.
    labels.insert("alertname".to_owned(), alert.to_owned());
    labels.insert(subject.to_owned(), cut(&incident.name, MAX_TEXT_CHARS));
    labels.insert("severity".to_owned(), incident.severity.as_str().to_owned());
    labels.insert("incident".to_owned(), incident.id.to_string());
    labels
}

/// Returns a name that an Alertmanager takes: letters, digits and underscores, no digit first.
fn label_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("_{name}")
    } else {
        name
    }
}

/// Returns an alert that is over at once.
fn test(message: &Message) -> Value {
    let at = instant(message.created_at);
    json!({
        "labels": {"alertname": "SextonTest", "severity": "low"},
        "annotations": {"summary": message.title()},
        "startsAt": at,
        "endsAt": instant(message.created_at + TimeDelta::minutes(1)),
    })
}
