//! One state of the whole platform, as small as it can be without losing what matters.
//!
//! Two reductions keep it finite however long an execution lives. Attempt numbers and revisions are
//! only ever compared with the row's, and only grow; so a message or a process needs to know no more
//! than whether the number it holds is still the row's ([`Number`]), and whether the revision is
//! ([`UnpublishedTicket::fresh`]). Tokens are only compared with the row's too: it names the worker that holds it.

use sexton_model::retry::Usage;
use sexton_model::state::State;
use sexton_model::sweep::SweepDecision;

/// An attempt number, seen from the row.
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

/// Whose token a row bears.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// It bears none.
    Nobody,
    /// The token that this worker has in hand.
    Worker(u8),
    /// A token that its worker has given up: it lives and will never use it.
    Left,
    /// The token of a process that is dead, its task with it.
    Dead,
}

/// The execution's row.
#[expect(clippy::struct_excessive_bools, reason = "columns, as far as anything compares them")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// Whether it is there.
    pub claimed: bool,
    /// `state`.
    pub state: State,
    /// `ticket_published_at IS NULL`, in a state that has a ticket.
    pub owed: bool,
    /// `relay_after > now()`.
    pub held: bool,
    /// `next_attempt_at <= now()`, or null.
    pub due: bool,
    /// Whether it has been due for an hour.
    pub long_due: bool,
    /// `attempt = 1`, of a firing whose job has a `stale_after`.
    pub fresh: bool,
    /// Whether such a one waits, and is too old to be begun.
    pub stale: bool,
    /// `retries_used`, `timeouts_used`, `crashes_used`, `snoozes_used`.
    pub used: UsedBudgets,
    /// `open_token`.
    pub holder: Holder,
    /// Nobody has renewed the attempt for a whole lease, by the clock of whoever watches it.
    pub lease_over: bool,
    /// `lease_until < now()`, though it is not over: the database's clock was set ahead.
    pub clock_ahead: bool,
    /// `cancel_requested`.
    pub cancel: bool,
    /// `ticket_published_at >=` the instant at which the sweep's pass began.
    pub marked_in_pass: bool,
}

/// What is used up of the budgets. In bytes: there are millions of rows.
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

/// What a worker does with the ticket it was handed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// It has none.
    Idle,
    /// Received. The open was not asked for, or was asked for without an answer.
    Received,
    /// The task runs; `cut`: the worker cannot reach the database.
    Running {
        /// Renewals do not get through.
        cut: bool,
    },
    /// The task has ended; its end is not recorded.
    Ran(Ending),
    /// It opened the attempt by an earlier request, whose answer was lost; the lease is to be
    /// renewed before the task starts.
    Opened,
    /// Recorded; the next ticket is not published.
    Settled(UnpublishedTicket),
    /// Published; not marked. `true`: the row's revision is still the published one.
    Published(bool),
    /// To be passed on to another queue as it is.
    Moving(Queue),
    /// Only the acknowledgement is left.
    Acking,
}

/// How a task ended, as the worker knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ending {
    /// Well.
    Success,
    /// Badly; another try may help.
    Retryable,
    /// Badly; no other try will help.
    Permanent,
    /// It took too long. Only where the bounds ask for every budget.
    TimedOut,
    /// It ran out of memory. Only where the bounds ask for every budget.
    Crashed,
    /// Cut short: by a cancel or by the worker's own stop.
    Interrupted,
    /// It is too early, says the task. Only where the bounds let it.
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

    /// What a trace says of the task.
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
    /// Where it is.
    pub step: Step,
    /// The number on its ticket. `Current` while it has none.
    pub number: Number,
    /// Whether the broker still counts the ticket as handed out to it. Otherwise the connection was
    /// lost, or it was acknowledged early.
    pub delivery: bool,
}

/// A ticket that somebody is about to publish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnpublishedTicket {
    /// The number on it.
    pub number: Number,
    /// Whether the row's revision is still the one at which it was owed.
    pub fresh: bool,
    /// Where it goes.
    pub to: Queue,
}

/// What a scheduler's publishing loops have in hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheduler {
    /// It has planned the firing and not claimed it.
    Planned,
    /// Nothing.
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
    /// What traces call it.
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

/// What a message in the failed queue is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parked {
    /// The row's number, put there by the platform or by a hand.
    Plain,
    /// The row's number, with the broker's note that it moved it there itself.
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
    /// None is under way.
    Idle,
    /// One is.
    Pass {
        /// Messages of the initial count that were not looked at.
        left: u8,
        /// Whether a message of the execution was kept in this pass.
        seen: bool,
        /// The message it has taken.
        hand: HeldMessage,
    },
}

/// What the sweep has in hand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeldMessage {
    /// Nothing.
    Empty,
    /// A message; its row was not read.
    Got(Parked),
    /// A message and what is to become of it.
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
    /// Its execution is to be failed first; then it goes.
    Fail,
}

impl From<SweepDecision> for SweepOutcome {
    fn from(verdict: SweepDecision) -> Self {
        match verdict {
            SweepDecision::Keep => Self::Keep,
            // Of policies, which the model does not have.
            SweepDecision::Remove | SweepDecision::Republish => Self::Remove,
            SweepDecision::Fail(_) => Self::Fail,
        }
    }
}

/// What must never happen, noted by the step in which it did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SafetyViolation {
    /// A number was opened a second time, or by another ticket than its own.
    OpenedTwice,
    /// An attempt was opened before it was due.
    OpenedEarly,
    /// A row left a final state.
    FinalLeft,
    /// A failed execution was opened, and nobody had touched it.
    FailedOpened,
}

/// All of it.
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
    /// The ladder.
    pub ladder: Tickets,
    /// The failed queue; during a pass, what was in it when the pass began.
    pub failed: FailedQueue,
    /// What came into the failed queue since the pass began.
    pub tail: FailedQueue,
    /// Faults that may still strike.
    pub faults: u8,
    /// Deeds of people that may still be done.
    pub people: u8,
    /// Whether messages may be missing for a reason outside of the protocol: the broker was wiped, or
    /// a hand moved one where it does not belong.
    pub excused: bool,
    /// Whether somebody has done something; only then may a failed execution run.
    pub touched: bool,
    /// What went wrong.
    pub wrong: Option<SafetyViolation>,
}
