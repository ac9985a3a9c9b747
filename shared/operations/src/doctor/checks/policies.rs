//! Checks for RabbitMQ's own interventions in queues, and names the likely policy.

use sexton_model::queue_incident::QueueIncidentKind;
use sexton_store::queue_incidents::RecordedQueueIncident;

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
        let queue_incidents: Vec<String> = rows
            .queue_incidents
            .iter()
            .filter(|incident| code_of(incident) == Some(code))
            .map(|one| describe_incident(one, &ago(one.last_at, rows.overview.now)))
            .collect();
        if !queue_incidents.is_empty() {
            found.push(Finding::new(code, join_first(queue_incidents)));
        }
    }
}

fn code_of(incident: &RecordedQueueIncident) -> Option<Code> {
    match incident.kind {
        QueueIncidentKind::Missing if incident.times < MIN_MISSING_TIMES => None,
        QueueIncidentKind::Expired | QueueIncidentKind::Missing => Some(Code::MessagesExpired),
        QueueIncidentKind::Overflowed | QueueIncidentKind::Refused => Some(Code::MessagesRefused),
        QueueIncidentKind::Vanished => Some(Code::QueuesVanished),
    }
}

fn describe_incident(incident: &RecordedQueueIncident, last: &str) -> String {
    let RecordedQueueIncident { queue, kind, messages, .. } = incident;
    let what = match kind {
        QueueIncidentKind::Expired => format!("{messages} messages expired in queue {queue}"),
        QueueIncidentKind::Missing => {
            format!("{messages} parked messages were gone from queue {queue}")
        }
        QueueIncidentKind::Overflowed => {
            format!("{messages} messages were dropped by the full queue {queue}")
        }
        QueueIncidentKind::Refused => format!("{messages} messages were refused by queue {queue}"),
        QueueIncidentKind::Vanished => format!("queue {queue} was gone"),
    };
    format!("{what}, last {last}")
}
