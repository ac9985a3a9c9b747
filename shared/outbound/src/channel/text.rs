//! Texts of messages, bounded.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use sexton_model::notification::Message;

/// Returns a text of at most `max` characters; one that is cut ends in an ellipsis.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(max.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Returns an instant in RFC 3339, in whole milliseconds.
pub(super) fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns what people need beside the headline, a line for each fact.
pub(super) fn facts(message: &Message) -> Vec<(&'static str, String)> {
    let Some(incident) = &message.incident else { return Vec::new() };
    let mut facts = vec![
        ("Incident", incident.id.to_string()),
        ("Opened", instant(incident.opened_at)),
        ("Occurrences", incident.occurrences.to_string()),
    ];
    let mut add = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("Resolved", incident.resolved_at.map(instant));
    add("Acknowledged by", incident.acknowledged_by.clone());
    add("Execution", incident.execution_id.map(|id| id.to_string()));
    add("Runbook", incident.runbook().map(str::to_owned));
    add("What to do", Some(incident.what_to_do().to_owned()));
    facts
}

/// Returns a message as plain text.
pub(super) fn plain(message: &Message) -> String {
    let mut out = format!("{}\n\n", message.text().trim_end());
    for (name, value) in facts(message) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name}: {value}");
    }
    if let Some(incident) = &message.incident {
        let _ = writeln!(out, "\n`sexton incidents show {}` shows all of it.", incident.id);
    }
    out
}
