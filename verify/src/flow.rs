//! The members of one flow among one another: who waits for whom, and what follows from an end.
//!
//! Of each execution only what the others see: its state, and its row in `flow_members`. Attempts are left out: a
//! member that is due ends at any later moment, well or not. What ends a member is a transaction of several steps: it writes
//! the row, follows the end, and commits; others read what is committed. [`sexton_model::flow::verdict`] decides what
//! becomes of a member, [`sexton_model::state::next`] every change of state.
//!
//! The flow: `a` and `b` begin; `c` waits for both by the predicate of the check; `d` waits for `c`, if that succeeds.

mod model;
mod steps;
mod trace;

use sexton_model::flow::RunsWhen;
use sexton_model::state::State;

use crate::explorer::{CheckedProperty, Mutant};

/// Number of members.
pub const MEMBERS: usize = 4;
/// Number of transactions that may be open at once.
pub const SESSIONS: usize = 2;
/// For whom each member waits.
pub const UPSTREAM: [&[usize]; MEMBERS] = [&[], &[], &[0, 1], &[2]];

/// The parts that keep a flow whole; each can be removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// An end is followed under the lock of the flow's row.
    FlowLock,
    /// An end is counted once, whatever is restored later.
    Counted,
    /// A failed member has not ended.
    Parked,
    /// Every end is followed, and not only those of workers.
    EveryEnd,
}

impl Fence {
    /// All parts, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::FlowLock, Self::Counted, Self::Parked, Self::EveryEnd];

    /// Returns the name in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FlowLock => "flow lock",
            Self::Counted => "counted once",
            Self::Parked => "parked is not ended",
            Self::EveryEnd => "every end",
        }
    }

    /// Returns the part's meaning.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::FlowLock => {
                "An end is followed under the lock of the flow's row, so of two last ends one sees the other."
            }
            Self::Counted => {
                "An end counts downstream once: a discard may be taken back, and the member end again."
            }
            Self::Parked => "A failed execution has not ended: it may be requeued.",
            Self::EveryEnd => "The trigger follows every end, also an operator's.",
        }
    }

    /// Returns the property that breaks without it.
    pub const fn breaks(self) -> Property {
        match self {
            Self::FlowLock | Self::EveryEnd => Property::EndReachable,
            Self::Counted | Self::Parked => Property::NeverEarly,
        }
    }
}

/// The properties that must hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// No member is decided before the ends of those upstream decide it.
    NeverEarly,
    /// No member is decided twice.
    Once,
    /// The flow counts the members that have not ended.
    OpenCount,
    /// Without further actions of people every member comes to its end, or waits for a parked one.
    EndReachable,
}

impl CheckedProperty<World> for Property {
    const ALL: &'static [Self] =
        &[Self::NeverEarly, Self::Once, Self::OpenCount, Self::EndReachable];
    const END_REACHABLE: Self = Self::EndReachable;

    fn sentence(self) -> &'static str {
        match self {
            Self::NeverEarly => {
                "no member runs or is skipped before the ends of those upstream decide it"
            }
            Self::Once => "no member of a flow is decided twice",
            Self::OpenCount => "a flow counts its members that have not ended",
            Self::EndReachable => "every member comes to its end, or waits for a parked one",
        }
    }

    fn is_broken(self, world: &World) -> bool {
        match self {
            Self::NeverEarly => world.early,
            Self::Once => world.members.iter().any(|member| member.decisions > 1),
            Self::OpenCount => {
                let open = world.members.iter().filter(|member| !ended(member.state)).count();
                usize::from(world.open) != open
            }
            Self::EndReachable => false,
        }
    }
}

/// Whether a state is an end, as the trigger sees it.
pub(crate) const fn ended(state: State) -> bool {
    matches!(state, State::Succeeded | State::Cancelled | State::Skipped | State::Discarded)
}

/// A member, as it is committed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// `executions.state`.
    pub state: State,
    /// `waits_for`.
    pub waits_for: u8,
    /// `unsuccessful`.
    pub unsuccessful: u8,
    /// `decided`.
    pub decided: bool,
    /// `counted`.
    pub counted: bool,
    /// Not a column: how often it was decided.
    pub decisions: u8,
    /// Not columns: whether it has ended at all, and once without success.
    pub ends: (bool, bool),
}

/// A transaction that changes a member's state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Session {
    /// The member, whose row it has locked.
    pub member: usize,
    /// The state that it writes.
    pub to: State,
    /// What it has read of the members, to follow the end; `None`: it has not followed it.
    pub read: Option<[(u8, u8); MEMBERS]>,
}

/// The whole state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// The members.
    pub members: [Member; MEMBERS],
    /// `flows.open`.
    pub open: u8,
    /// The open transactions.
    pub sessions: [Option<Session>; SESSIONS],
    /// Number of people's actions that may still happen.
    pub people: u8,
    /// Not a column: whether a member was decided too early.
    pub early: bool,
}

/// A flow, with the bounds of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The predicate of `c`.
    pub runs_when: RunsWhen,
    /// The missing part.
    pub without: Option<Fence>,
    /// Number of people's actions in one history.
    pub people: u8,
}

impl Flow {
    /// Returns the flow with all parts.
    pub const fn whole(runs_when: RunsWhen) -> Self {
        Self { runs_when, without: None, people: 3 }
    }

    /// The three predicates.
    pub const ALL: [Self; 3] = [
        Self::whole(RunsWhen::AllSucceeded),
        Self::whole(RunsWhen::AllDone),
        Self::whole(RunsWhen::AnyFailed),
    ];

    /// Returns the flow without each part.
    pub fn mutants() -> Vec<Mutant<Self>> {
        let without = |fence: Fence| Mutant {
            heading: format!("Without {}", fence.title()),
            explanation: fence.explanation(),
            model: Self { without: Some(fence), ..Self::whole(RunsWhen::AllDone) },
            breaks: fence.breaks(),
        };
        Fence::ALL.map(without).into()
    }

    pub(crate) fn has(self, fence: Fence) -> bool {
        self.without != Some(fence)
    }
}

/// One action; numbers are those of sessions and of members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A worker's transaction writes that the member has succeeded, or failed for good.
    End(usize, usize, bool),
    /// An operator's transaction cancels, requeues, discards or restores the member.
    Cancel(usize, usize),
    /// See [`Self::Cancel`].
    Requeue(usize, usize),
    /// See [`Self::Cancel`].
    Discard(usize, usize),
    /// See [`Self::Cancel`].
    Restore(usize, usize),
    /// The transaction follows the end: it reads the members downstream.
    Follow(usize),
    /// It commits.
    Commit(usize),
    /// It is rolled back: of two that wait for each other PostgreSQL refuses one.
    RollBack(usize),
}

impl Action {
    /// Returns every action, in an order that never changes.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for session in 0..SESSIONS {
            for member in 0..MEMBERS {
                all.extend([
                    Self::End(session, member, true),
                    Self::End(session, member, false),
                    Self::Cancel(session, member),
                    Self::Requeue(session, member),
                    Self::Discard(session, member),
                    Self::Restore(session, member),
                ]);
            }
            all.extend([Self::Follow(session), Self::Commit(session), Self::RollBack(session)]);
        }
        all
    }

    /// Returns whether it comes from outside.
    pub const fn is_disturbance(self) -> bool {
        matches!(self, Self::Cancel(..) | Self::Requeue(..) | Self::Discard(..) | Self::Restore(..))
    }
}
