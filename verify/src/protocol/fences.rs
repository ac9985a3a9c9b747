//! The fences of the protocol, as data: each can be removed, to show its effect.

/// One fence: a condition without which the protocol breaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// `attempt = n`, in every statement that acts on a ticket or an attempt.
    AttemptNumber,
    /// `state IN (…)`, which is the transition table, in every statement that changes a state.
    State,
    /// `open_token = mine`: in the read after an open without a result, and in the settlement.
    Worker,
    /// The same renewal, for a whole lease: wherever an attempt is ended as lost and its worker is not known to be
    /// dead.
    Lease,
    /// That length by the observer's own clock, and not by the database's.
    Observation,
    /// `next_attempt_at <= now()`, in the open.
    DueTime,
    /// `UNIQUE (job_id, execution_key)`, in the claim.
    UniqueKey,
    /// `rev = mine AND ticket_published_at IS NULL`, in the mark of a published ticket.
    TicketPublishedAt,
    /// The worker's own clock, by which it kills a task before its lease is over.
    OwnClock,
    /// The renewal before a task's start if its open was answered only at a repetition: by then the lease may be
    /// over.
    RenewalFirst,
    /// `attempt = attempt + 1` also where an execution fails because no worker could open its ticket.
    NewNumber,
    /// `rev = rev + 1` where a ticket is returned to its row, even if the row says that it is unpublished: a mark of
    /// the returned ticket may still be on its way.
    NewRevision,
}

impl Fence {
    /// All fences, in the order of the documentation.
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

    /// Returns the name in the documentation.
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

    /// Returns the fence's meaning in the code.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::AttemptNumber => {
                "`attempt = n`, in every statement that acts on a ticket or an attempt."
            }
            Self::State => {
                "`state IN (…)`, the table of moves, in every statement that changes a state."
            }
            Self::Worker => {
                "`open_token = mine`, in the settlement and in the answer to a ticket that opened nothing."
            }
            Self::Lease => {
                "A rescuer ends an attempt only after it has seen the same renewal for a whole lease."
            }
            Self::Observation => {
                "The rescuer measures that time by its own monotonic clock, not by the database's."
            }
            Self::DueTime => "`next_attempt_at <= now()`, in the open.",
            Self::UniqueKey => "`UNIQUE (job_id, execution_key)`, in the claim.",
            Self::TicketPublishedAt => {
                "`rev = mine AND ticket_published_at IS NULL`, in the mark that follows a publish."
            }
            Self::OwnClock => {
                "A worker that cannot renew kills its task before the lease is over, by its own clock."
            }
            Self::RenewalFirst => {
                "A worker whose open was answered late renews the lease before it starts the task."
            }
            Self::NewNumber => {
                "`attempt = attempt + 1`, also where an execution fails whose ticket nobody could open."
            }
            Self::NewRevision => {
                "`rev = rev + 1` where a worker hands a ticket back to its row, also if the row says that the \
                 ticket is unpublished."
            }
        }
    }
}

/// A part that repairs: without it something waits for ever.
///
/// Fences keep wrong things from happening, and a missing one shows in a single state. These parts make right things
/// happen in the end, and a missing one shows only in the paths between states.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The relay, which publishes tickets that a worker or planner could not.
    Relay,
    /// The reconciler, which finds tickets that the broker lost.
    Reconciler,
    /// The rescuer and the instance lock, which end the attempts of dead workers.
    Rescuer,
    /// The end of the sweep's pass, which marks unseen messages as unpublished.
    SweepRepublishes,
    /// The sweep's removal of messages without a failed row.
    SweepRemoves,
    /// The counting of retries.
    Budget,
    /// The counting of snoozes.
    Patience,
}

impl Part {
    /// All parts, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Relay,
        Self::Reconciler,
        Self::Rescuer,
        Self::SweepRepublishes,
        Self::SweepRemoves,
        Self::Budget,
        Self::Patience,
    ];

    /// Returns the name in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Relay => "the relay",
            Self::Reconciler => "the reconciler",
            Self::Rescuer => "the rescuer",
            Self::SweepRepublishes => "republishing by the sweep",
            Self::SweepRemoves => "removals by the sweep",
            Self::Budget => "a retry budget",
            Self::Patience => "a bound on snoozes",
        }
    }

    /// Returns its effect.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Relay => "The relay publishes unpublished tickets.",
            Self::Reconciler => {
                "The reconciler marks tickets unpublished that the broker has lost."
            }
            Self::Rescuer => {
                "The rescuer, and the next holder of an instance lock, end lost attempts."
            }
            Self::SweepRepublishes => {
                "At the end of a pass the sweep marks messages of failed rows unpublished that it has not seen."
            }
            Self::SweepRemoves => "The sweep removes parked messages that no failed row has.",
            Self::Budget => "Each retry costs a budget.",
            Self::Patience => "Each snooze is counted.",
        }
    }
}

/// The fences and parts in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fences {
    up: [bool; Fence::ALL.len()],
    token_alone: bool,
    missing: Option<Part>,
}

impl Fences {
    /// All fences and parts.
    pub const ALL: Self = Self { up: [true; Fence::ALL.len()], token_alone: false, missing: None };

    /// Returns these without one fence.
    #[must_use]
    pub const fn without(mut self, fence: Fence) -> Self {
        self.up[fence as usize] = false;
        self
    }

    /// Returns these without one part.
    #[must_use]
    pub const fn missing(self, part: Part) -> Self {
        Self { missing: Some(part), ..self }
    }

    /// Returns whether a part is in place.
    pub fn works(self, part: Part) -> bool {
        self.missing != Some(part)
    }

    /// Returns these, except that a renewal and a settlement check only the token.
    #[must_use]
    pub const fn token_alone(self) -> Self {
        Self { token_alone: true, ..self }
    }

    /// Returns whether `fence` is in place in a renewal and in a settlement.
    pub const fn has_in_settlement(self, fence: Fence) -> bool {
        self.has(fence) && (!self.token_alone || matches!(fence, Fence::Worker))
    }

    /// Returns whether `fence` is in place.
    pub const fn has(self, fence: Fence) -> bool {
        self.up[fence as usize]
    }
}
