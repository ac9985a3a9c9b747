//! What a check says about a foreign job, in words.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use super::Ping;
use crate::duration;

/// Characters of a body that a text repeats.
const MAX_BODY_CHARS: usize = 1_000;

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

pub(super) fn paused() -> String {
    "the check was paused".to_owned()
}

pub(super) fn deleted() -> String {
    "the check was deleted".to_owned()
}

pub(super) fn failed(ping: &Ping) -> String {
    let status = ping.exit_code.map(|code| format!(" with exit status {code}")).unwrap_or_default();
    let by = ping.agent.as_deref().map(|agent| format!(" (sent by {agent})")).unwrap_or_default();
    let mut text = format!("it reported a failure{status} at {}{by}", instant(ping.at));
    if let Some(body) = ping.body.as_deref().map(str::trim_end).filter(|body| !body.is_empty()) {
        let skipped = body.chars().count().saturating_sub(MAX_BODY_CHARS);
        text.push_str("\nIt sent:\n");
        text.extend(body.chars().skip(skipped));
    }
    text
}

pub(super) fn too_long(started: DateTime<Utc>, limit: Duration) -> String {
    let limit = duration::format(limit);
    format!("the run that began at {} has not ended within {limit}", instant(started))
}

pub(super) fn missed(
    expected: DateTime<Utc>,
    missed: u32,
    grace: Duration,
    last: Option<DateTime<Utc>>,
) -> String {
    let (expected, grace) = (instant(expected), duration::format(grace));
    let pings = match missed {
        1 => format!("no ping within {grace} after {expected}, when one was expected"),
        number => {
            format!("{number} expected pings are missing, the last within {grace} after {expected}")
        }
    };
    match last {
        Some(last) => format!("{pings}; the last one arrived at {}", instant(last)),
        None => format!("{pings}; none has ever arrived"),
    }
}
