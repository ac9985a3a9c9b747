//! Parses a `[[route]]`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use crate::incident::Severity;
use crate::jobs_file::fields::Fields;
use crate::jobs_file::limits::MAX_LABELS;
use crate::params::{RESERVED_NAME, UNREADABLE_NAME};
use crate::quoting::quoted;
use crate::routing::{Escalation, Route};
use crate::suggest::nearest;

/// `escalate.after`.
pub(super) const ESCALATE_AFTER: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_hours(30 * 24);
/// Longest value of a label, in bytes.
const MAX_LABEL_BYTES: usize = 500;
/// Most channels that one route names.
const MAX_NAMES: usize = 20;

/// Reads a route; reports every problem. `known` are the names of the file's channels.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>, known: &[&str]) -> Route {
    let hints =
        [("channel", "write channels = [\"…\"]"), ("severities", "write severity = [\"…\"]")];
    fields.report_unknown_fields(&["labels", "severity", "channels", "escalate"], &[], &hints);
    let labels = labels(fields);
    let severities = severities(fields);
    if !fields.has("channels") {
        fields.problem("channels", "is missing; write the names of channels");
    }
    let channels = channels(fields, known);
    let escalation = if fields.has("escalate") { escalation(fields, known) } else { None };
    Route { labels, severities, channels, escalation }
}

fn labels(fields: &mut Fields<'_, '_, '_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(mut inside) = fields.inside("labels", "labels.") else { return labels };
    let all: Vec<_> = inside.all().collect();
    if all.len() > MAX_LABELS {
        let message = format!("has {} labels; {MAX_LABELS} at most", all.len());
        fields.problem("labels", message);
        return labels;
    }
    for (name, at, _) in all {
        if name == RESERVED_NAME {
            inside.problem_at(at, name, UNREADABLE_NAME.to_owned());
        } else if let Some(value) = inside.text(name, MAX_LABEL_BYTES) {
            labels.insert(name.to_owned(), value.to_owned());
        }
    }
    labels
}

fn severities(fields: &mut Fields<'_, '_, '_>) -> Vec<Severity> {
    let shape = "must be a list of low, medium and high";
    let Some(texts) = texts(fields, "severity", shape) else { return Vec::new() };
    let mut severities = Vec::new();
    for text in texts {
        match Severity::parse(text) {
            Some(severity) if severities.contains(&severity) => {
                fields.problem("severity", format!("has {} twice", quoted(text)));
            }
            Some(severity) => severities.push(severity),
            None => {
                fields.problem("severity", format!("{} is not known; it {shape}", quoted(text)));
            }
        }
    }
    severities
}

/// Reads the names of channels; each must be one of the file's.
fn channels(fields: &mut Fields<'_, '_, '_>, known: &[&str]) -> Vec<String> {
    let shape = "must be a list of names of channels, such as [\"ops\"]";
    let Some(texts) = texts(fields, "channels", shape) else { return Vec::new() };
    let mut channels: Vec<String> = Vec::new();
    for name in texts {
        if !known.contains(&name) {
            let near = nearest(name, known.iter().copied());
            let hint = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            fields
                .problem("channels", format!("{} is no channel of this file{hint}", quoted(name)));
        } else if channels.iter().any(|other| other == name) {
            fields.problem("channels", format!("has {} twice", quoted(name)));
        } else {
            channels.push(name.to_owned());
        }
    }
    channels
}

fn escalation(fields: &mut Fields<'_, '_, '_>, known: &[&str]) -> Option<Escalation> {
    let mut inside = fields.inside("escalate", "escalate.")?;
    inside.report_unknown_fields(&["after", "channels"], &[], &[]);
    for name in ["after", "channels"] {
        if !inside.has(name) {
            inside.problem(name, "is missing");
        }
    }
    let channels = channels(&mut inside, known);
    let after = inside.duration("after", ESCALATE_AFTER)?;
    Some(Escalation { after, channels })
}

fn texts<'a>(fields: &mut Fields<'a, '_, '_>, name: &str, shape: &str) -> Option<Vec<&'a str>> {
    let value = fields.raw(name)?;
    let texts: Option<Vec<&'a str>> = value.get_ref().as_array().and_then(|array| {
        array
            .iter()
            .map(|one| match one.get_ref() {
                DeValue::String(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect()
    });
    match texts {
        Some(texts) if texts.is_empty() || texts.len() > MAX_NAMES => {
            fields.problem(name, format!("has {} entries; write 1 to {MAX_NAMES}", texts.len()));
            None
        }
        Some(texts) => Some(texts),
        None => {
            fields.problem(name, shape);
            None
        }
    }
}
