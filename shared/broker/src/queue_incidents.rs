//! Queue incidents that a link saw, until its process records them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sexton_model::delay_queues::DELAY_QUEUES_MS;
use sexton_model::queue_incident::{QueueIncident, QueueIncidentKind};

use crate::link::Link;
use crate::names::{failed_queue, main_queue, retry_queue};

/// Maximum number of queues and kinds in memory; further ones are dropped.
const MAX_REMEMBERED: usize = 500;

/// Counts by queue and kind.
#[derive(Debug, Default)]
pub(crate) struct QueueIncidents(Mutex<BTreeMap<(String, QueueIncidentKind), u64>>);

impl QueueIncidents {
    fn add(&self, queue: &str, kind: QueueIncidentKind, messages: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (queue.to_owned(), kind);
        if let Some(count) = counts.get_mut(&place) {
            *count = count.saturating_add(messages);
        } else if counts.len() < MAX_REMEMBERED {
            counts.insert(place, messages);
        }
    }

    fn take(&self) -> Vec<QueueIncident> {
        let counts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let incident = |((queue, kind), messages)| QueueIncident { queue, kind, messages };
        counts.into_iter().map(incident).collect()
    }
}

impl Link {
    /// Notes that `kind` happened to `messages` messages of a queue, until [`Self::take_queue_incidents`].
    pub fn note_queue_incident(&self, queue: &str, kind: QueueIncidentKind, messages: u64) {
        self.queue_incidents().add(queue, kind, messages);
    }

    /// Notes that a queue is missing, if this link has declared it.
    pub fn note_missing_queue(&self, queue: &str) {
        if self.has_declared(queue) {
            self.note_queue_incident(queue, QueueIncidentKind::Vanished, 1);
        }
    }

    /// Returns the noted incidents, and forgets them.
    pub fn take_queue_incidents(&self) -> Vec<QueueIncident> {
        self.queue_incidents().take()
    }

    fn has_declared(&self, queue: &str) -> bool {
        let namespace = self.namespace();
        queue == failed_queue(namespace)
            || self.pools().iter().any(|pool| {
                queue == main_queue(namespace, pool)
                    || DELAY_QUEUES_MS
                        .iter()
                        .any(|step| queue == retry_queue(namespace, pool, *step))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incidents_are_counted_by_queue_and_kind_bounded_and_taken_once() {
        let incidents = QueueIncidents::default();
        for queue in 0..2 * MAX_REMEMBERED {
            incidents.add(&format!("q{queue}"), QueueIncidentKind::Refused, 2);
        }
        incidents.add("q0", QueueIncidentKind::Refused, 3);
        let taken = incidents.take();
        assert_eq!(taken.len(), MAX_REMEMBERED);
        let first = taken.iter().find(|one| one.queue == "q0").unwrap();
        assert_eq!((first.kind, first.messages), (QueueIncidentKind::Refused, 5));
        assert_eq!(incidents.take(), []);
    }
}
