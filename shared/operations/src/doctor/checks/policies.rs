//! Checks for RabbitMQ's own interventions in queues, and names the likely policy.

use sexton_model::incident::IncidentKind;
use sexton_store::incidents::RecordedIncident;

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::ago;

/// Parked messages may vanish once by a purge or with a broker's data; if they vanish repeatedly, a policy removes
/// them.
const MIN_MISSING_TIMES: i64 = 2;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    for code in [Code::MessagesExpired, Code::MessagesRefused, Code::QueuesVanished] {
        let incidents: Vec<String> = rows
            .incidents
            .iter()
            .filter(|incident| code_of(incident) == Some(code))
            .map(|one| describe_incident(one, &ago(one.last_at, rows.overview.now)))
            .collect();
        if !incidents.is_empty() {
            found.push(Finding::new(code, join_first(incidents)));
        }
    }
}

fn code_of(incident: &RecordedIncident) -> Option<Code> {
    match incident.kind {
        IncidentKind::Missing if incident.times < MIN_MISSING_TIMES => None,
        IncidentKind::Expired | IncidentKind::Missing => Some(Code::MessagesExpired),
        IncidentKind::Overflowed | IncidentKind::Refused => Some(Code::MessagesRefused),
        IncidentKind::Vanished => Some(Code::QueuesVanished),
    }
}

fn describe_incident(incident: &RecordedIncident, last: &str) -> String {
    let RecordedIncident { queue, kind, messages, .. } = incident;
    let what = match kind {
        IncidentKind::Expired => format!("{messages} messages expired in queue {queue}"),
        IncidentKind::Missing => {
            format!("{messages} parked messages were gone from queue {queue}")
        }
        IncidentKind::Overflowed => {
            format!("{messages} messages were dropped by the full queue {queue}")
        }
        IncidentKind::Refused => format!("{messages} messages were refused by queue {queue}"),
        IncidentKind::Vanished => format!("queue {queue} was gone"),
    };
    format!("{what}, last {last}")
}
