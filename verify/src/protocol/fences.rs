//! The fences of the protocol, as data: each can be taken down, to see what it holds off.

use crate::protocol::parts::Part;

/// One fence: a condition without which the protocol breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// `attempt = n`, in every statement that acts on a ticket or an attempt.
    AttemptNumber,
    /// `state IN (…)`, which is the transition table, in every statement that changes a state.
    State,
    /// `open_token = mine`: in the look that answers a ticket that opened nothing, in the settlement.
    Worker,
    /// The same renewal, for a whole lease: wherever an attempt is ended as lost and its worker is not known to
    /// be dead.
    Lease,
    /// Of which that length is taken by the observer's own clock, and not by the database's.
    Observation,
    /// `next_attempt_at <= now()`, in the open.
    DueTime,
    /// `UNIQUE (job_id, execution_key)`, in the claim.
    UniqueKey,
    /// `rev = mine AND ticket_published_at IS NULL`, in the mark that pays a debt.
    TicketPublishedAt,
    /// The worker's own clock, by which a task is dead before its lease is over.
    OwnClock,
    /// The renewal before a task starts whose open was answered only when it was asked for again: by
    /// then the lease may be over.
    RenewalFirst,
    /// `attempt = attempt + 1` also where a ticket is failed that nobody could open.
    NewNumber,
    /// `rev = rev + 1` where a ticket is handed back to its row, also if the row says that it is unpublished: a mark of
    /// the ticket that was in hand may still be on its way.
    NewRevision,
}

impl Fence {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::AttemptNumber,
        Self::State,
        Self::Worker,
        Self::Lease,
        Self::Observation,
        Self::DueTime,
        Self::UniqueKey,
        Self::TicketPublishedAt,
        Self::OwnClock,
        Self::RenewalFirst,
        Self::NewNumber,
        Self::NewRevision,
    ];

    /// What it is called in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::AttemptNumber => "attempt number",
            Self::State => "state",
            Self::Worker => "worker",
            Self::Lease => "lease",
            Self::Observation => "observation",
            Self::DueTime => "due time",
            Self::UniqueKey => "unique key",
            Self::TicketPublishedAt => "ticket_published_at",
            Self::OwnClock => "own clock",
            Self::RenewalFirst => "renewal first",
            Self::NewNumber => "new number",
            Self::NewRevision => "new revision",
        }
    }
}

/// Which fences stand, and which parts work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fences {
    up: [bool; Fence::ALL.len()],
    token_alone: bool,
    missing: Option<Part>,
}

impl Fences {
    /// All of them.
    pub const ALL: Self = Self { up: [true; Fence::ALL.len()], token_alone: false, missing: None };

    /// These but one.
    #[must_use]
    pub const fn without(mut self, fence: Fence) -> Self {
        self.up[fence as usize] = false;
        self
    }

    /// These, but a part of the platform is missing.
    #[must_use]
    pub const fn missing(self, part: Part) -> Self {
        Self { missing: Some(part), ..self }
    }

    /// Whether a part of the platform is there.
    pub fn works(self, part: Part) -> bool {
        self.missing != Some(part)
    }

    /// These, but that a renewal and a settlement ask for the token and for nothing else.
    #[must_use]
    pub const fn token_alone(self) -> Self {
        Self { token_alone: true, ..self }
    }

    /// Whether `fence` stands in a renewal and in a settlement.
    pub const fn has_in_settlement(self, fence: Fence) -> bool {
        self.has(fence) && (!self.token_alone || matches!(fence, Fence::Worker))
    }

    /// Whether `fence` stands.
    pub const fn has(self, fence: Fence) -> bool {
        self.up[fence as usize]
    }
}
