//! Parses `heartbeat`.

use super::fields::Fields;
use super::limits::MAX_HEARTBEAT_URL_BYTES;
use super::secret::secret_reference;
use crate::heartbeat::{HeartbeatEvent, HeartbeatUrl, JobHeartbeat};
use crate::quoting::quoted;
use crate::target_url::http_url;

/// Parses the table, and reports every problem.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<JobHeartbeat> {
    let mut inside = fields.inside("heartbeat", "heartbeat.")?;
    inside.report_unknown_fields(
        &["url", "on", "allow_private"],
        &[],
        &[("method", "it is always a POST"), ("body", "it is always a short text")],
    );
    let url = url(&mut inside);
    let on = events(&mut inside);
    let allow_private = inside.boolean("allow_private").unwrap_or_default();
    Some(JobHeartbeat { url: url?, on: on?, allow_private })
}

fn url(fields: &mut Fields<'_, '_, '_>) -> Option<HeartbeatUrl> {
    let Some(value) = fields.raw("url") else {
        fields.problem(
            "url",
            "is missing; write the URL of the check, or { env = \"NAME\" } if it is a secret",
        );
        return None;
    };
    if value.get_ref().as_str().is_none() {
        let reference = secret_reference(value.get_ref());
        return reference
            .map_err(|message| fields.problem("url", message))
            .ok()
            .map(HeartbeatUrl::Secret);
    }
    let text = fields.text("url", MAX_HEARTBEAT_URL_BYTES)?;
    http_url(text)
        .map_err(|message| fields.problem("url", message))
        .ok()
        .map(|_| HeartbeatUrl::Plain(text.to_owned()))
}

fn events(fields: &mut Fields<'_, '_, '_>) -> Option<Vec<HeartbeatEvent>> {
    let shape = "must be a list of \"start\", \"success\" and \"failure\"";
    let Some(value) = fields.raw("on") else { return Some(HeartbeatEvent::ALL.to_vec()) };
    let texts: Option<Vec<&str>> = value
        .get_ref()
        .as_array()
        .and_then(|array| array.iter().map(|one| one.get_ref().as_str()).collect());
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
        fields.problem("on", shape);
        return None;
    };
    let mut events = Vec::new();
    for text in texts {
        match HeartbeatEvent::parse(text) {
            Some(event) if events.contains(&event) => {
                fields.problem("on", format!("names {} twice", quoted(text)));
            }
            Some(event) => events.push(event),
            None => fields.problem("on", format!("{} is none; it {shape}", quoted(text))),
        }
    }
    events.sort_unstable();
    Some(events)
}
