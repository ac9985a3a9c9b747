//! RabbitMQ's own interventions in queues and messages, mostly because of a policy.

/// The kind of an intervention.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QueueIncidentKind {
    /// Messages expired in a main queue, which has no time limit of its own: a policy with `message-ttl`.
    Expired,
    /// The queue was too full, and its oldest messages were dropped: `max-length` with `overflow`.
    Overflowed,
    /// The broker refused messages for it: `max-length` or `max-length-bytes`.
    Refused,
    /// It was declared on this connection and does not exist any more: `expires`, or somebody deleted it.
    Vanished,
    /// Parked messages were not in the failed queue any more: `message-ttl`, a purge, or a broker without its data.
    Missing,
}

impl QueueIncidentKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Expired, Self::Overflowed, Self::Refused, Self::Vanished, Self::Missing];

    /// Returns the database's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Overflowed => "overflowed",
            Self::Refused => "refused",
            Self::Vanished => "vanished",
            Self::Missing => "missing",
        }
    }

    /// The inverse of [`Self::as_str`].
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the kind for the reason with which the broker dead-lettered a message from a main queue.
    pub fn from_dead_letter_reason(reason: &str) -> Option<Self> {
        match reason {
            "expired" => Some(Self::Expired),
            "maxlen" => Some(Self::Overflowed),
            _ => None,
        }
    }
}

/// The interventions of one kind in one queue, as one process saw them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueIncident {
    /// Its name.
    pub queue: String,
    /// The kind.
    pub kind: QueueIncidentKind,
    /// Number of messages affected, or how often it happened.
    pub messages: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in QueueIncidentKind::ALL {
            assert_eq!(QueueIncidentKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(QueueIncidentKind::parse("other"), None);
        assert_eq!(QueueIncidentKind::from_dead_letter_reason("delivery_limit"), None);
    }
}
