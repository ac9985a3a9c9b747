//! Catch-up that is held after a jump of the database's time: planners, a clock, operators.
//!
//! The other models have a firing either claimed or not. This one follows the claim transactions themselves, split
//! wherever another may come in between under READ COMMITTED: the unlocked read of the clock and the hold, the wait
//! for the clock's row, the judgement under its lock with its writes, the lock that keeps the hold, the locks of due
//! jobs, the commit. A transaction's writes are invisible before its commit, and its locks end with it, however it
//! ends. Operators decide job by job, each in a transaction, and end the hold in one more.
//!
//! An instant is a whole hour: firings lie at hours 1 to [`FIRINGS`], the clock goes that far, and an hour without a
//! reading is the longest that is no jump. [`sexton_model::time_jump::detect_jump`] decides jumps,
//! [`sexton_model::plan`] the dispositions of firings; see `Plans`.

mod model;
mod operator;
mod planner;
mod plans;
pub mod scenarios;
mod time;
mod trace;

use sexton_model::job::MisfirePolicy;

use crate::explorer::CheckedProperty;

pub use model::HeldCatchUp;
use plans::Plans;
pub use time::Action;

/// Number of firings of each job: one each hour from the first on.
pub const FIRINGS: usize = 4;
/// Maximum number of jobs.
pub const JOBS: usize = 2;
/// Maximum number of planners.
pub const PLANNERS: usize = 3;
/// Maximum number of operators.
pub const OPERATORS: usize = 2;

/// The fences against an unnoticed jump; each can be removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// The clock and the hold are read in one statement.
    OneLook,
    /// A jump is judged again under the lock of the clock's row.
    JudgeAgain,
    /// The hold and the new instant are written in one transaction.
    Together,
    /// A planner that finds a hold checks again, and if it has ended, begins another.
    HoldAgain,
    /// A planner keeps the hold from ending until its commit.
    KeepHold,
    /// The unique index of open holds.
    OneHold,
    /// Firings are set aside in the transaction that moves the cursor.
    WithCursor,
    /// A held firing is deleted when it gets its disposition.
    Delete,
    /// An operator reads the held firings after locking the job.
    ReadLocked,
    /// The hold ends only if no firing is set aside any more.
    Look,
    /// That check runs under the hold's lock.
    LockHold,
}

impl Fence {
    /// All fences, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::OneLook,
        Self::JudgeAgain,
        Self::Together,
        Self::HoldAgain,
        Self::KeepHold,
        Self::OneHold,
        Self::WithCursor,
        Self::Delete,
        Self::ReadLocked,
        Self::Look,
        Self::LockHold,
    ];

    /// Returns the name in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::OneLook => "one look",
            Self::JudgeAgain => "judging again",
            Self::Together => "hold and instant together",
            Self::HoldAgain => "holding again",
            Self::KeepHold => "keeping the hold",
            Self::OneHold => "unique hold",
            Self::WithCursor => "aside with the cursor",
            Self::Delete => "deleting what is decided",
            Self::ReadLocked => "reading under the lock",
            Self::Look => "looking before the end",
            Self::LockHold => "looking under the lock",
        }
    }

    /// Returns the fence's meaning.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::OneLook => "A planner reads the clock and the hold in one statement.",
            Self::JudgeAgain => "A planner judges a jump again under the lock of the clock's row.",
            Self::Together => "A planner writes the hold and the new instant in one transaction.",
            Self::HoldAgain => "A planner that finds its hold ended begins another.",
            Self::KeepHold => {
                "A planner that keeps to a hold locks it against its end until the commit."
            }
            Self::OneHold => "The unique index of holds without an end.",
            Self::WithCursor => {
                "A planner sets firings aside in the transaction that moves the cursor."
            }
            Self::Delete => {
                "The transaction that decides a firing deletes it from what is set aside."
            }
            Self::ReadLocked => "An operator reads what is set aside after the lock on the job.",
            Self::Look => "A hold ends only if nothing is set aside.",
            Self::LockHold => "An operator makes that look under the hold's lock.",
        }
    }

    /// Returns the property that breaks without it.
    pub const fn breaks(self) -> Property {
        match self {
            Self::OneLook | Self::Together | Self::HoldAgain => Property::NothingLateUnasked,
            Self::JudgeAgain => Property::OneHoldAJump,
            Self::OneHold => Property::OneHold,
            Self::WithCursor => Property::NothingLost,
            Self::Delete | Self::ReadLocked => Property::OneDisposition,
            Self::KeepHold | Self::Look | Self::LockHold => Property::HoldIsOpen,
        }
    }
}

/// The properties that must hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// Every firing is an execution, in a gap, or set aside, and only once.
    OneDisposition,
    /// Every firing that a cursor has passed has a disposition.
    NothingLost,
    /// No planner decides firings that a jump made late before the hold is over.
    NothingLateUnasked,
    /// A hold exists as long as any firing is set aside: otherwise no operator would learn of it.
    HoldIsOpen,
    /// At most one hold is open.
    OneHold,
    /// A hold begins only after a jump for which none has begun.
    OneHoldAJump,
    /// Without further disturbances everything is decided and the hold ends.
    EndReachable,
}

impl CheckedProperty<World> for Property {
    const ALL: &'static [Self] = &[
        Self::OneDisposition,
        Self::NothingLost,
        Self::NothingLateUnasked,
        Self::HoldIsOpen,
        Self::OneHold,
        Self::OneHoldAJump,
        Self::EndReachable,
    ];
    const END_REACHABLE: Self = Self::EndReachable;

    fn sentence(self) -> &'static str {
        match self {
            Self::OneDisposition => {
                "a firing is an execution, or in a gap, or held, and no two of these"
            }
            Self::NothingLost => "every firing that a cursor has passed is one of these",
            Self::NothingLateUnasked => {
                "no planner decides what a jump made late before an operator has ended the hold"
            }
            Self::HoldIsOpen => "while a firing is held there is a hold",
            Self::OneHold => "at most one hold has no end",
            Self::OneHoldAJump => "no hold begins for a jump that was noticed before",
            Self::EndReachable => {
                "every firing can get its disposition, and the hold its end, without further faults"
            }
        }
    }

    fn is_broken(self, world: &World) -> bool {
        let any = |such: fn(&Job) -> bool| world.jobs.iter().any(such);
        match self {
            Self::OneDisposition => any(|job| {
                let held = job.held();
                job.twice || job.executed & job.gaps != 0 || (job.executed | job.gaps) & held != 0
            }),
            Self::NothingLost => world.jobs.iter().enumerate().any(|(number, job)| {
                let aside = world.planners.iter().fold(0, |all, one| all | one.aside[number]);
                // Between two transactions it is not lost yet.
                job.passed() & !(job.executed | job.gaps | job.held() | aside) != 0
            }),
            Self::NothingLateUnasked => world.unasked,
            Self::HoldIsOpen => world.holds == 0 && any(|job| job.held() != 0),
            Self::OneHold => world.holds > 1,
            Self::OneHoldAJump => world.needless,
            Self::EndReachable => false,
        }
    }
}

/// A job, as far as holds concern it. Firings are bits, the first the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Job {
    /// The number of the first firing without a disposition; [`FIRINGS`]: none.
    pub cursor: u8,
    /// Firings with an execution.
    pub executed: u8,
    /// Firings in gaps.
    pub gaps: u8,
    /// When each held firing was set aside; 0: it is not.
    pub held_at: [u8; FIRINGS],
    /// Not a column: firings that became late by a jump and are undecided.
    pub jumped: u8,
    /// Not a column: whether two gaps count the same firing.
    pub twice: bool,
}

impl Job {
    /// Returns the firings that are set aside.
    pub fn held(&self) -> u8 {
        let bits = self.held_at.iter().enumerate();
        bits.fold(0, |all, (firing, at)| all | (u8::from(*at > 0) << firing))
    }

    /// Returns the firings before the cursor.
    const fn passed(&self) -> u8 {
        (1 << self.cursor) - 1
    }
}

/// The phase of a planner's claim transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Phase {
    /// No transaction.
    #[default]
    Idle,
    /// It has begun, which fixes its `now()`.
    Begun,
    /// It has read the hold and not yet the clock: only without [`Fence::OneLook`].
    HalfRead,
    /// It has read the clock and the hold.
    Read,
    /// It waits for the clock's row; the instant it would judge.
    Asks(u8),
    /// The same after another transaction changed the row: it reads the clock again once it has it.
    AsksAnew,
    /// It has the row, and judges this instant.
    Locked(u8),
    /// It has written a jump.
    Noticed,
    /// The new instant is committed, the hold not yet: only without [`Fence::Together`].
    Behind,
    /// It has noticed no jump.
    Looked,
    /// It knows whether catch-up is held.
    Ready,
    /// It has locked jobs and decided.
    Planned,
    /// The cursors are committed, the held firings are not: only without [`Fence::WithCursor`].
    Aside,
}

/// A planner with its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Planner {
    /// Its phase.
    pub phase: Phase,
    /// The transaction's `now()`.
    pub now: u8,
    /// The last instant seen, as it was read.
    pub seen: u8,
    /// Whether catch-up is held, as far as it knows.
    pub held: bool,
    /// Whether it has locked the clock's row, and the instant that it writes, if any.
    pub clock: Option<Option<u8>>,
    /// Whether it writes a hold.
    pub opens: bool,
    /// Whether it keeps the hold from ending.
    pub keeps: bool,
    /// The jobs that it has locked.
    pub jobs: u8,
    /// The firings that it still sets aside: only without [`Fence::WithCursor`].
    pub aside: [u8; JOBS],
}

/// An operator's decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Verdict {
    /// The policies judge.
    #[default]
    Release,
    /// All of it becomes gaps.
    Discard,
}

/// The phase of an operator's call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Turn {
    /// No call.
    #[default]
    Idle,
    /// This job is next.
    Next(u8),
    /// It has locked this job.
    Locked(u8),
    /// It has decided all jobs.
    Ending,
    /// It has locked the hold.
    EndLocked,
    /// It has seen that no firing is left: only without [`Fence::LockHold`].
    SawNothing,
}

/// An operator with a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Operator {
    /// Its phase.
    pub turn: Turn,
    /// The decision.
    pub verdict: Verdict,
    /// The job; `None`: all, which ends the hold.
    pub only: Option<u8>,
    /// The firings read before the job was locked: only without [`Fence::ReadLocked`].
    pub saw: [u8; FIRINGS],
}

/// The whole state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// The database's clock.
    pub clock: u8,
    /// Not a column: the latest time that it has shown.
    pub high: u8,
    /// `planner_clock.seen_at`.
    pub seen: u8,
    /// Number of open rows of `holds`.
    pub holds: u8,
    /// The jobs.
    pub jobs: [Job; JOBS],
    /// The planners.
    pub planners: [Planner; PLANNERS],
    /// The operators.
    pub operators: [Operator; OPERATORS],
    /// Jumps that may still happen.
    pub jumps: u8,
    /// Deaths that may still happen.
    pub deaths: u8,
    /// Not a column: whether a jump or an absence has not been noticed yet, or a transaction has written an instant
    /// from which the clock had been set back.
    pub hold_is_due: bool,
    /// Not a column: whether a hold began without one.
    pub needless: bool,
    /// Not a column: whether a planner has decided firings that a jump had made late.
    pub unasked: bool,
}

/// The bounds, and the missing part of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Jobs, 1 to [`JOBS`].
    pub jobs: usize,
    /// Planners, 1 to [`PLANNERS`].
    pub planners: usize,
    /// Operators, 0 to [`OPERATORS`].
    pub operators: usize,
    /// Jumps in one history.
    pub jumps: u8,
    /// Deaths, of planners and operators, in one history.
    pub deaths: u8,
    /// The jobs' misfire policy.
    pub policy: MisfirePolicy,
    /// The missing fence.
    pub without: Option<Fence>,
    /// Whether a discard also covers firings that no planner has reached. In the product it does not.
    pub discards_all: bool,
}

impl Bounds {
    fn has(&self, fence: Fence) -> bool {
        self.without != Some(fence)
    }
}
