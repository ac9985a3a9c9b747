//! The executions of one job among one another: overlap policies, waiters, replacements.
//!
//! The other model follows one execution through everything that can happen to it. This one follows several
//! executions of a job that runs one at a time, and of each only the parts visible to the others: its state, whether
//! it waits, whether it was replaced, whether its task runs. Tickets are left out: an admitted row may be opened at
//! any later moment, and a waiter only by a copy of its ticket that somebody has put into the queue by hand. So are
//! leases: an attempt counts as lost when its worker is dead.
//!
//! [`sexton_model::plan::overlap`] decides a firing's disposition, [`sexton_model::state::next`] every change of state.
//! Statements are atomic where PostgreSQL makes them so; an unlocked read and the write that relies on it are two
//! steps, and so are the settlement of a task with effects in its own transaction and its commit.

mod model;
mod steps;
mod trace;

use sexton_model::job::Overlap;
use sexton_model::plan::overlap::{UnderWay, WaitReason};
use sexton_model::state::State;

use crate::explorer::{CheckedProperty, Mutant};

/// Number of executions in a history.
pub const EXECUTIONS: usize = 3;
/// Number of planners.
pub const PLANNERS: usize = 2;

/// The fences that keep executions apart; each can be removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// A claim reads the executions under way and writes under the lock of the job's row.
    JobLock,
    /// An admission checks again under that lock whether the job is free.
    AskAgain,
    /// An admission checks at all.
    Free,
    /// A claim that replaces is deferred while another transaction has locked a row that it replaces.
    PutOff,
    /// `replaced_by IS NULL`, in the settlement of a success.
    Replaced,
    /// No copy of a ticket opens a waiter.
    Waiter,
}

impl Fence {
    /// All fences, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::JobLock, Self::AskAgain, Self::Free, Self::PutOff, Self::Replaced, Self::Waiter];

    /// Returns the name in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::JobLock => "job lock",
            Self::AskAgain => "asking again",
            Self::Free => "free job",
            Self::PutOff => "putting off",
            Self::Replaced => "replaced_by",
            Self::Waiter => "waiter",
        }
    }

    /// Returns the fence's meaning.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::JobLock => "A claim looks and writes under the lock of the job's row.",
            Self::AskAgain => {
                "An admission asks again, under that lock, whether the job is free: the look before may be old."
            }
            Self::Free => "An admission asks at all whether the job is free.",
            Self::PutOff => {
                "A claim that replaces waits while somebody has locked a row of what it replaces."
            }
            Self::Replaced => "`replaced_by IS NULL`, in the settlement of a success.",
            Self::Waiter => "No copy of a ticket opens a waiter.",
        }
    }

    /// Returns the property that breaks without it.
    pub const fn breaks(self) -> Property {
        match self {
            Self::PutOff | Self::Replaced => Property::ReplacedNeverSucceeds,
            Self::JobLock | Self::AskAgain | Self::Free | Self::Waiter => Property::OneLetGo,
        }
    }

    /// Returns the policy under which a history without it is searched.
    pub const fn policy(self) -> Overlap {
        match self {
            Self::PutOff | Self::Replaced => Overlap::Replace,
            _ => Overlap::Queue,
        }
    }
}

/// The properties that must hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Property {
    /// At most one execution is under way without waiting, except those opened by hand in the queue.
    OneLetGo,
    /// No two tasks run at the same time.
    OneTask,
    /// At most one firing waits.
    OneFiringWaits,
    /// A replaced execution never succeeds after the claim that replaced it.
    ReplacedNeverSucceeds,
    /// Without further disturbances every execution can come to its end.
    EndReachable,
}

impl CheckedProperty<World> for Property {
    const ALL: &'static [Self] = &[
        Self::OneLetGo,
        Self::OneTask,
        Self::OneFiringWaits,
        Self::ReplacedNeverSucceeds,
        Self::EndReachable,
    ];
    const END_REACHABLE: Self = Self::EndReachable;

    fn sentence(self) -> &'static str {
        match self {
            Self::OneLetGo => "at most one execution of the job is admitted and has not ended",
            Self::OneTask => "the tasks of two executions never run at the same time",
            Self::OneFiringWaits => "at most one firing waits",
            Self::ReplacedNeverSucceeds => {
                "a replaced execution never succeeds after the claim that replaced it"
            }
            Self::EndReachable => "every execution can come to its end without further faults",
        }
    }

    fn is_broken(self, world: &World) -> bool {
        let count =
            |such: fn(&Execution) -> bool| world.executions.iter().filter(|one| such(one)).count();
        match self {
            Self::OneLetGo => count(|one| one.is_let_go() && !one.by_hand) > 1,
            Self::OneTask => count(|one| one.task == Task::Runs && !one.by_hand) > 1,
            Self::OneFiringWaits => {
                count(|one| matches!(one.waits, Some(WaitReason::Queue | WaitReason::Replace))) > 1
            }
            Self::ReplacedNeverSucceeds => {
                count(|one| one.condemned && one.state == Some(State::Succeeded)) > 0
            }
            Self::EndReachable => false,
        }
    }
}

/// The state of an execution's attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// No attempt is open.
    None,
    /// It runs.
    Runs,
    /// It has ended, well or not; its end is not recorded.
    Ended(bool),
    /// Its success is recorded in its own transaction, which is not committed: its row is locked.
    Committing,
    /// Its worker is dead.
    Dead,
}

/// An execution, as far as the others of its job can see it.
#[expect(clippy::struct_excessive_bools, reason = "columns, as far as anything compares them")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Execution {
    /// `state`; `None`: it is not claimed.
    pub state: Option<State>,
    /// The reason, for a waiter.
    pub waits: Option<WaitReason>,
    /// `cancel_requested`.
    pub cancel: bool,
    /// `replaced_by IS NOT NULL`.
    pub replaced: bool,
    /// Whether the retry is used up.
    pub retried: bool,
    /// The attempt.
    pub task: Task,
    /// Whether a copy of its ticket is in the main queue, put there by hand.
    pub copy: bool,
    /// Whether it was opened by such a copy while it was failed, which people may do.
    pub by_hand: bool,
    /// Not a column: whether it was under way when a replacing firing was claimed.
    pub condemned: bool,
}

impl Execution {
    const NONE: Self = Self {
        state: None,
        waits: None,
        cancel: false,
        replaced: false,
        retried: false,
        task: Task::None,
        copy: false,
        by_hand: false,
        condemned: false,
    };

    /// Returns whether it is under way and no waiter.
    fn is_let_go(&self) -> bool {
        self.waits.is_none() && self.state.is_some_and(State::is_under_way)
    }
}

/// A planner's unlocked read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Planner {
    /// Nothing.
    Idle,
    /// The executions under way, read for a claim: only without the job's lock.
    SawUnderWay(UnderWay),
    /// That the job was free, with a waiter.
    SawFree,
}

/// The whole state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// In the order of their claims.
    pub executions: [Execution; EXECUTIONS],
    /// The schedulers' planners.
    pub planners: [Planner; PLANNERS],
    /// Deaths of workers that may still happen.
    pub faults: u8,
    /// Number of people's actions that may still happen.
    pub people: u8,
}

/// A job, with the bounds of the check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// `queue` or `replace`.
    pub policy: Overlap,
    /// The missing fence.
    pub without: Option<Fence>,
    /// Whether waiters are admitted at all.
    pub admits: bool,
    /// Deaths of workers in one history.
    pub faults: u8,
    /// Number of people's actions in one history.
    pub people: u8,
}

impl Job {
    /// Returns the job with all fences.
    pub const fn whole(policy: Overlap) -> Self {
        Self { policy, without: None, admits: true, faults: 1, people: 2 }
    }

    /// The two policies that keep executions apart.
    pub const BOTH: [Self; 2] = [Self::whole(Overlap::Queue), Self::whole(Overlap::Replace)];

    /// Returns the job without each fence.
    pub fn mutants() -> Vec<Mutant<Self>> {
        let without = |fence: Fence| Mutant {
            heading: format!("Without {}", fence.title()),
            explanation: fence.explanation(),
            model: Self { without: Some(fence), ..Self::whole(fence.policy()) },
            breaks: fence.breaks(),
        };
        Fence::ALL.map(without).into()
    }

    fn has(self, fence: Fence) -> bool {
        self.without != Some(fence)
    }
}

/// One action; numbers are those of planners and of executions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A planner reads the executions under way, to claim the next firing: only without the job's lock.
    LookToClaim(usize),
    /// A planner claims the next firing.
    Claim(usize),
    /// A planner looks for waiters whose job is free.
    LookForWaiters(usize),
    /// A planner admits the longest waiting one.
    Admit(usize),
    /// A worker opens the execution's ticket.
    Open(usize),
    /// Its task ends, with success or not.
    End(usize, bool),
    /// Its worker records the end.
    Settle(usize),
    /// Its worker records the success in the task's own transaction, or learns that it must not.
    Write(usize),
    /// That transaction is committed.
    Commit(usize),
    /// The rescuer ends its attempt as lost.
    Lose(usize),
    /// Its worker dies.
    Die(usize),
    /// Somebody triggers an execution.
    Trigger,
    /// Somebody cancels it.
    Cancel(usize),
    /// Somebody requeues it.
    Requeue(usize),
    /// Somebody copies its parked message into the main queue.
    CopyBack(usize),
}

impl Action {
    /// Returns every action, in an order that never changes.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for planner in 0..PLANNERS {
            all.extend([
                Self::LookToClaim(planner),
                Self::Claim(planner),
                Self::LookForWaiters(planner),
                Self::Admit(planner),
            ]);
        }
        for one in 0..EXECUTIONS {
            all.extend([
                Self::Open(one),
                Self::End(one, true),
                Self::End(one, false),
                Self::Settle(one),
                Self::Write(one),
                Self::Commit(one),
                Self::Lose(one),
                Self::Die(one),
                Self::Cancel(one),
                Self::Requeue(one),
                Self::CopyBack(one),
            ]);
        }
        all.push(Self::Trigger);
        all
    }

    /// Returns whether it comes from outside.
    pub const fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::Die(_) | Self::Trigger | Self::Cancel(_) | Self::Requeue(_) | Self::CopyBack(_)
        )
    }
}
