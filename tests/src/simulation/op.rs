//! What can happen, as plain data.
//!
//! An index is taken modulo what is there, and an operation that finds nothing to act on does
//! nothing. So every part of a list of operations is a list of operations again, and a failing list
//! can be made shorter by leaving out whatever is not needed.
//!
//! The operations print as Rust, to be pasted into a test.

use std::fmt;

/// Where the way between a process and a server is cut, in one call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere.
    No,
    /// Before the commit, or before the broker has the message: nothing happened.
    Before,
    /// After the commit, or before the confirm comes back: it happened, and the process does not
    /// know.
    After,
}

/// How a task ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well.
    Succeeds,
    /// Badly, and another try may help.
    Fails,
    /// Badly, and no other try will help.
    FailsForGood,
    /// Badly, with an error of a class that is called permanent.
    FailsHopelessly,
    /// It takes too long.
    TimesOut,
    /// It runs out of memory.
    Crashes,
    /// Its worker stops.
    IsInterrupted,
    /// It asks to be run later.
    Snoozes,
}

/// The answer of a question, or of the verify command instead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ScriptedAnswer {
    /// The effect has happened.
    Yes,
    /// It has not.
    No,
    /// Something that is no answer.
    Neither,
}

impl ScriptedAnswer {
    /// As the result of the question.
    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Yes => true.into(),
            Self::No => false.into(),
            Self::Neither => "perhaps".into(),
        }
    }
}

/// What a bulk is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Requeue.
    Requeue,
    /// Discard.
    Discard,
    /// Restore.
    Restore,
}

/// Which executions it means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BulkTarget {
    /// Whatever is there.
    All,
    /// Those of the group of the first.
    Group,
    /// Some that the operator names, at the attempts that he saw a moment ago.
    Named,
    /// What the bulk before has done.
    Before,
}

/// Under which terms it is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BulkMode {
    /// At once.
    Plain,
    /// One every ten seconds.
    Paced,
    /// One first.
    Canary,
    /// Jobs' verify tasks run first.
    Verified,
    /// The same, with two first and one every ten seconds.
    VerifiedSlowly,
    /// A verify command runs first.
    Commanded,
}

/// A queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Of the pool.
    Main,
    /// The delay queues together.
    DelayQueues,
    /// Of the parked.
    Failed,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "indices, all of them; `cut` is where the call is cut")]
pub enum Op {
    /// Time passes. The delay queues return what has waited long enough; a worker kills the tasks
    /// whose lease is nearly over by its own clock.
    Wait { ms: u64 },
    /// The database's clock is set ahead, and no time passes.
    SetClock { ms: u64 },

    /// A scheduler claims what is due.
    Plan { cut: Cut },
    /// A scheduler lets executions go that wait for their job.
    Admit { cut: Cut },
    /// A hand in the database sets a job's cursor back by some firings.
    SetBack { job: u8, firings: u8 },
    /// The database's time jumps against what a planner last saw.
    Jump { back: bool },
    /// An operator decides what was set aside meanwhile; `Cut::After`: of one job, then his command
    /// dies.
    Release { discard: bool, cut: Cut },
    /// A relay takes unpublished tickets.
    Relay { limit: u8, cut: Cut },
    /// A scheduler publishes a ticket that it claimed or took.
    Publish { ticket: u8, cut: Cut },
    /// It marks what it published.
    Mark { cut: Cut },
    /// It is killed: what it held is forgotten.
    SchedulerDies,
    /// The rescuer looks at the open attempts, and finds those that it has seen unrenewed for a lease.
    FindLost,
    /// It ends those that it found, however long ago.
    EndLost { cut: Cut },
    /// The reconciler marks unpublished what seems lost; `wrong`: it takes the main queue for empty.
    Reconcile { wrong: bool, cut: Cut },
    /// The sweep's next effect: begin, take a message, judge it, put it back or remove it, finish.
    Sweep { cut: Cut },
    /// It is killed, or loses its lock: the message in its hand returns.
    SweepDies,
    /// Retention removes what is older than 30 days.
    Prune,
    /// A scheduler writes down what a bulk means, the next two executions.
    Prepare { bulk: u8, cut: Cut },
    /// It collects the answers to a bulk's questions, and asks further ones.
    Question { bulk: u8, cut: Cut },
    /// It executes a batch of a bulk; it holds the unpublished tickets then.
    Carry { bulk: u8, cut: Cut },

    /// The broker hands a message of the main queue, any of them, to a free slot.
    Deliver { slot: u8, message: u8 },
    /// A worker takes over a foreign task, or asks to open the tickets of all its slots.
    Ask { worker: u8, cut: Cut },
    /// It renews the leases of all its slots, and starts what had to be renewed first.
    Renew { worker: u8, cut: Cut },
    /// It stores what the tasks of its slots have written.
    Write { worker: u8, cut: Cut },
    /// A running task ends.
    End { slot: u8, end: End },
    /// A running question says something.
    Answer { slot: u8, reply: ScriptedAnswer },
    /// A worker records how the attempts of all its slots ended, or that they came too late.
    Settle { worker: u8, cut: Cut },
    /// A slot publishes the ticket that follows, or the copy of one that opened nothing.
    Send { slot: u8, cut: Cut },
    /// A worker marks what its slots published.
    MarkSent { worker: u8, cut: Cut },
    /// A slot acknowledges the ticket it is done with.
    Acknowledge { slot: u8 },
    /// A slot whose task runs for long acknowledges before its end.
    LetGo { slot: u8 },
    /// A slot gives an unopened ticket back to its queue.
    GiveBack { slot: u8 },
    /// A worker loses its connection to the broker: its tickets return, its tasks go on.
    Disconnect { worker: u8 },
    /// A worker is killed, and its tasks with it; another process starts in its place.
    WorkerDies { worker: u8 },
    /// That process takes the instance lock and ends the attempts of those before it.
    AcquireInstanceLock { worker: u8 },

    /// A message is doubled.
    Copy { queue: Queue, message: u8 },
    /// A message is lost.
    Lose { queue: Queue, message: u8 },
    /// The broker loses all its data.
    Wipe,
    /// A delay queue returns a ticket too early.
    Early { message: u8 },
    /// The broker parks a ticket that it handed out too often.
    Park { message: u8 },
    /// A tool drops a message's properties.
    Strip { queue: Queue, message: u8 },

    /// Somebody applies a job with another overlap policy.
    Overlap { job: u8, policy: u8 },
    /// Somebody triggers a job with a key of his own.
    Trigger { key: u8, cut: Cut },
    /// Somebody backfills a job's last firings, or the oldest that are gone, at a rate or at once.
    Backfill { job: u8, firings: u8, cut: Cut },
    /// Another program publishes a task.
    Foreign { key: u8 },
    /// An operator requeues; `stale`: he saw an earlier attempt.
    Requeue { row: u8, stale: bool },
    /// An operator gives a failed execution up.
    Discard { row: u8 },
    /// An operator takes that back.
    Restore { row: u8 },
    /// An operator cancels.
    Cancel { row: u8 },
    /// An operator gives a failed execution other params, and requeues it or not.
    Edit { row: u8, requeue: bool },
    /// An operator asks for a bulk.
    Bulk { action: BulkAction, target: BulkTarget, mode: BulkMode },
    /// An operator stops one.
    StopBulk { bulk: u8 },
    /// An operator lets one go on that is stopped or paused.
    ResumeBulk { bulk: u8 },
    /// The command that an operator asks of a bulk's items says something of one.
    Say { bulk: u8, item: u8, reply: ScriptedAnswer },
    /// A person moves a parked message to the main queue.
    MoveBack { message: u8 },
    /// A person copies a parked message to the main queue.
    CopyBack { message: u8 },
    /// A person moves a ticket of the main queue to the failed queue.
    MoveAway { message: u8 },
}

/// As Rust writes them.
macro_rules! words {
    ($($kind:ident { $($case:ident),+ })+) => {
        $(impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$case => concat!(stringify!($kind), "::", stringify!($case))),+
                })
            }
        })+
    };
}

words! {
    Cut { No, Before, After }
    End {
        Succeeds, Fails, FailsForGood, FailsHopelessly, TimesOut, Crashes, IsInterrupted, Snoozes
    }
    ScriptedAnswer { Yes, No, Neither }
    BulkAction { Requeue, Discard, Restore }
    BulkTarget { All, Group, Named, Before }
    BulkMode { Plain, Paced, Canary, Verified, VerifiedSlowly, Commanded }
    Queue { Main, DelayQueues, Failed }
}

/// A list of operations as Rust.
pub fn as_rust(ops: &[Op]) -> String {
    let lines: Vec<String> = ops.iter().map(|op| format!("    Op::{op:?},\n")).collect();
    lines.concat()
}

impl Op {
    /// What it is, without where and how.
    pub(super) fn kind(self) -> String {
        match self {
            Self::End { end, .. } => return format!("{end:?}"),
            Self::Answer { reply, .. } => return format!("Answer {reply:?}"),
            Self::Bulk { action, .. } => return format!("{action:?} of many"),
            _ => {}
        }
        let text = format!("{self:?}");
        text.split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}
