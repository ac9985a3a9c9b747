//! One state of the whole platform, as small as possible without losing relevant parts.
//!
//! Two reductions keep it finite however long an execution lives. Attempt numbers and revisions are only ever
//! compared with the row's, and only grow; so a message or a process only needs to know whether its number is still
//! the row's ([`Number`]), and whether its revision is ([`UnpublishedTicket::fresh`]). Tokens are only compared with
//! the row's too: it names the worker that holds it.

use sexton_model::retry::Usage;
use sexton_model::state::State;
use sexton_model::sweep::SweepDecision;

/// An attempt number, relative to the row's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Number {
    /// The row's own.
    Current,
    /// A lower one: its attempt was opened and has ended, or it was never opened and never will be.
    Overtaken,
}

impl Number {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Current, Self::Overtaken];
}

/// The owner of a row's token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// The row has no token.
    Nobody,
    /// The token of this worker.
    Worker(u8),
    /// A token that its worker has given up: it lives and will never use it.
    Left,
    /// The token of a dead process, whose task is dead too.
    Dead,
}

/// The execution's row.
#[expect(clippy::struct_excessive_bools, reason = "columns, as far as anything compares them")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// Whether it exists.
    pub claimed: bool,
    /// `state`.
    pub state: State,
    /// `ticket_published_at IS NULL`, in a state that has a ticket.
    pub unpublished: bool,
    /// `relay_after > now()`.
    pub held: bool,
    /// `next_attempt_at <= now()`, or null.
    pub due: bool,
    /// Whether it has been due for an hour.
    pub long_due: bool,
    /// `attempt = 1`, of a firing whose job has a `stale_after`.
    pub fresh: bool,
    /// Whether such a firing waits, and is stale.
    pub stale: bool,
    /// `retries_used`, `timeouts_used`, `crashes_used`, `snoozes_used`.
    pub used: UsedBudgets,
    /// `open_token`.
    pub holder: Holder,
    /// Whether the attempt was not renewed for a whole lease, by its observer's clock.
    pub lease_over: bool,
    /// `lease_until < now()`, although the lease is not over: the database's clock was set ahead.
    pub clock_ahead: bool,
    /// `cancel_requested`.
    pub cancel: bool,
    /// `ticket_published_at >=` the instant at which the sweep's pass began.
    pub marked_in_pass: bool,
}

/// The used budgets. In bytes, because there are millions of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct UsedBudgets {
    retries: u8,
    timeouts: u8,
    crashes: u8,
    snoozes: u8,
}

impl From<Usage> for UsedBudgets {
    fn from(used: Usage) -> Self {
        let Usage { retries, timeouts, crashes, snoozes } = used;
        let [retries, timeouts, crashes, snoozes] =
            [retries, timeouts, crashes, snoozes].map(|count| count as u8);
        Self { retries, timeouts, crashes, snoozes }
    }
}

impl From<UsedBudgets> for Usage {
    fn from(spent: UsedBudgets) -> Self {
        let UsedBudgets { retries, timeouts, crashes, snoozes } = spent;
        let [retries, timeouts, crashes, snoozes] =
            [retries, timeouts, crashes, snoozes].map(u32::from);
        Self { retries, timeouts, crashes, snoozes }
    }
}

/// A worker's step with its ticket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// It has no ticket.
    Idle,
    /// Received; not opened yet, or the open was not answered.
    Received,
    /// The task runs; `cut`: the worker cannot reach the database.
    Running {
        /// Renewals do not get through.
        cut: bool,
    },
    /// The task has ended; its end is not recorded.
    Ran(Ending),
    /// An earlier request, whose answer was lost, opened the attempt; the lease must be renewed before the task
    /// starts.
    Opened,
    /// Recorded; the next ticket is not published.
    Settled(UnpublishedTicket),
    /// Published; not marked. `true`: the row's revision is still the published one.
    Published(bool),
    /// To be copied unchanged to another queue.
    Moving(Queue),
    /// Only the acknowledgement is left.
    Acking,
}

/// How a task ended, as its worker knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ending {
    /// It succeeded.
    Success,
    /// It failed; another try may help.
    Retryable,
    /// It failed; no other try will help.
    Permanent,
    /// It timed out. Only where the bounds include every budget.
    TimedOut,
    /// It ran out of memory. Only where the bounds include every budget.
    Crashed,
    /// Cut short: by a cancel or by the worker's own stop.
    Interrupted,
    /// It snoozed. Only where the bounds include that.
    Snoozed,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Retryable,
        Self::Permanent,
        Self::TimedOut,
        Self::Crashed,
        Self::Interrupted,
        Self::Snoozed,
    ];

    /// Returns the trace's words about the task.
    pub const fn sentence_end(self) -> &'static str {
        match self {
            Self::Success => "succeeds",
            Self::Retryable => "fails, another try may help",
            Self::Permanent => "fails for good",
            Self::TimedOut => "takes too long, and the worker stops it",
            Self::Crashed => "runs out of memory",
            Self::Interrupted => "is cut short",
            Self::Snoozed => "is too early and asks to be run later",
        }
    }
}

/// A worker process with one slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Worker {
    /// Its step.
    pub step: Step,
    /// The number on its ticket. `Current` while it has none.
    pub number: Number,
    /// Whether the broker still counts the ticket as delivered to it. Otherwise the connection was lost, or it was
    /// acknowledged early.
    pub delivery: bool,
}

/// A ticket that a process is about to publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnpublishedTicket {
    /// The number on it.
    pub number: Number,
    /// Whether the row's revision is still the one at which it became unpublished.
    pub fresh: bool,
    /// Its destination.
    pub to: Queue,
}

/// The state of a scheduler's publishing loops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheduler {
    /// It has planned the firing and not claimed it.
    Planned,
    /// No ticket.
    Idle,
    /// A ticket to publish.
    Holding(UnpublishedTicket),
    /// A published ticket to mark. `true`: the row's revision is still the published one.
    Published(bool),
}

/// The kinds of queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Queue {
    /// The pool's main queue.
    Main,
    /// The delay queues, seen as one.
    Delay,
    /// The failed queue.
    Failed,
}

impl Queue {
    /// Returns its name in traces.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Main => "main queue",
            Self::Delay => "delay queue",
            Self::Failed => "failed queue",
        }
    }
}

/// Tickets in the main queue or the delay queues: how many of each number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tickets {
    /// With the row's number.
    pub current: u8,
    /// With a lower one.
    pub overtaken: u8,
}

/// The kind of a message in the failed queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parked {
    /// The row's number, put there by the platform or by hand.
    Plain,
    /// The row's number, with the broker's dead-letter reason.
    Noted,
    /// A lower number.
    Overtaken,
}

impl Parked {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Noted, Self::Overtaken];

    /// Its number.
    pub const fn number(self) -> Number {
        match self {
            Self::Plain | Self::Noted => Number::Current,
            Self::Overtaken => Number::Overtaken,
        }
    }
}

/// Messages in the failed queue: how many of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FailedQueue {
    /// See [`Parked::Plain`].
    pub plain: u8,
    /// See [`Parked::Noted`].
    pub noted: u8,
    /// See [`Parked::Overtaken`].
    pub overtaken: u8,
}

/// The sweep's pass over the failed queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sweep {
    /// No pass is under way.
    Idle,
    /// A pass is under way.
    Pass {
        /// Number of messages of the initial count that were not taken yet.
        left: u8,
        /// Whether a message of the execution was kept in this pass.
        seen: bool,
        /// The message it has taken.
        hand: HeldMessage,
    },
}

/// The message that the sweep holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeldMessage {
    /// None.
    Empty,
    /// A message; its row was not read.
    Got(Parked),
    /// A judged message.
    Judged(Parked, SweepOutcome),
    /// A message that was copied to the tail, the original not acknowledged.
    Copied(Parked),
}

/// The sweep's verdict, as far as it was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SweepOutcome {
    /// Stays.
    Keep,
    /// Goes.
    Remove,
    /// Its execution must fail first; then it is removed.
    Fail,
}

impl From<SweepDecision> for SweepOutcome {
    fn from(verdict: SweepDecision) -> Self {
        match verdict {
            SweepDecision::Keep => Self::Keep,
            // Caused by policies, which the model does not have.
            SweepDecision::Remove | SweepDecision::Republish => Self::Remove,
            SweepDecision::Fail(_) => Self::Fail,
        }
    }
}

/// A violation, recorded by the step that caused it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SafetyViolation {
    /// A number was opened a second time, or by another ticket than its own.
    OpenedTwice,
    /// An attempt was opened before it was due.
    OpenedEarly,
    /// A row left a final state.
    FinalLeft,
    /// A failed execution was opened without a person's action.
    FailedOpened,
}

/// The whole state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct World {
    /// The row.
    pub row: Row,
    /// Whether the firing was claimed a second time. The second row's own life is not followed.
    pub second_row: bool,
    /// The workers A and B.
    pub workers: [Worker; 2],
    /// The schedulers 1 and 2.
    pub schedulers: [Scheduler; 2],
    /// The sweep, which runs in one of them.
    pub sweep: Sweep,
    /// The main queue.
    pub main: Tickets,
    /// The delay queues.
    pub delayed: Tickets,
    /// The failed queue; during a pass, what was in it when the pass began.
    pub failed: FailedQueue,
    /// Messages that came into the failed queue since the pass began.
    pub tail: FailedQueue,
    /// Faults that may still strike.
    pub faults: u8,
    /// Number of people's actions that may still happen.
    pub people: u8,
    /// Whether messages may be missing for a reason outside the protocol: the broker was wiped, or somebody moved one
    /// to a wrong place.
    pub excused: bool,
    /// Whether a person has acted; only then may a failed execution run.
    pub touched: bool,
    /// The violation.
    pub wrong: Option<SafetyViolation>,
}
