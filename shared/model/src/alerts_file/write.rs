//! Writes an alerts file, so that what is applied can be read, kept and applied again.

use std::fmt::Write as _;

use serde_json::Value;

use super::AlertsFile;
use crate::channel::Channel;
use crate::duration;
use crate::incident::Severity;
use crate::routing::Route;

impl AlertsFile {
    /// Returns the file's text; parsed, it is equal to this value.
    pub fn to_toml(&self) -> String {
        let channels = self.channels.iter().map(channel);
        let routes = self.routes.iter().map(route);
        channels.chain(routes).collect::<Vec<_>>().join("\n")
    }
}

fn channel(channel: &Channel) -> String {
    let kind = channel.settings.kind().as_str();
    let (name, config) = (text(&channel.name), inline(&channel.settings.config()));
    format!("[[channel]]\nname = {name}\n{kind} = {config}\n")
}

fn route(route: &Route) -> String {
    let mut out = "[[route]]\n".to_owned();
    // Writing to a String cannot fail.
    if !route.labels.is_empty() {
        let labels =
            route.labels.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
        let _ = writeln!(out, "labels = {{ {} }}", labels.collect::<Vec<_>>().join(", "));
    }
    if !route.severities.is_empty() {
        let severities = route.severities.iter().copied().map(Severity::as_str);
        let _ = writeln!(out, "severity = {}", list(severities));
    }
    let names = |names: &[String]| list(names.iter().map(String::as_str));
    let _ = writeln!(out, "channels = {}", names(&route.channels));
    if let Some(escalation) = &route.escalation {
        let (after, channels) = (duration::format(escalation.after), names(&escalation.channels));
        let _ = writeln!(out, "escalate = {{ after = \"{after}\", channels = {channels} }}");
    }
    out
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(text).collect::<Vec<_>>().join(", "))
}

/// Writes a document of texts, booleans, lists and tables.
fn inline(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(all) => format!("[{}]", all.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(all) => {
            let fields = all.iter().map(|(name, value)| format!("{name} = {}", inline(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a text in quotes. JSON's escapes are TOML's too, but for DEL, which JSON does not escape.
fn text(value: &str) -> String {
    Value::from(value).to_string().replace('\x7f', "\\u007f")
}
