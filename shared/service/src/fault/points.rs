//! The list of fault points.

use crate::settings::Program;

/// A place between two effects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// How `FAULT_POINT` names it: the program, a full stop, the place.
    pub name: &'static str,
    /// The program that dies at it.
    pub program: Program,
    /// The effect that has happened.
    pub after: &'static str,
    /// The effect that has not.
    pub before: &'static str,
    /// What a process that dies here leaves behind, and who goes on from it.
    pub leaves: &'static str,
    /// Whether a task may have run in vain.
    pub reruns: Reruns,
}

/// How often the effects of a task happen when a process dies at a point, for each idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reruns {
    /// Once: no task had begun at the point, or its end was recorded.
    Never,
    /// Once more than without the fault: a task had begun and nobody knew of its end.
    Once,
}

use Reruns::{Never, Once};

/// All fault points. Each stands once in the source.
pub const POINTS: &[Point] = &[
    at(
        "scheduler.claimed",
        Never,
        "firings are claimed",
        "their tickets are handed over to be published",
        "pending rows that owe their ticket: the relay of any scheduler, after 5 s",
    ),
    at(
        "scheduler.published",
        Never,
        "tickets are confirmed",
        "their rows are marked",
        "a debt that is paid: the open pays it in the row, or the relay publishes a second copy",
    ),
    at(
        "scheduler.relay_taken",
        Never,
        "owed tickets are taken",
        "they are published",
        "rows that other relays pass over for half a minute: then any relay",
    ),
    at(
        "scheduler.relayed",
        Never,
        "owed tickets are confirmed",
        "their rows are marked",
        "a debt that is paid, as at scheduler.published, after half a minute",
    ),
    at(
        "scheduler.rescued",
        Once,
        "lost attempts are ended",
        "the relay is told",
        "retrying or failed rows that owe their ticket: any relay, within a second",
    ),
    at(
        "scheduler.sweep_failed",
        Never,
        "an execution is failed whose ticket the broker had parked",
        "the ticket is removed from the failed queue",
        "a failed row that owes its parked ticket: any relay, within a second; and a spent ticket in \
         the failed queue: the next pass removes it",
    ),
    at(
        "worker.received",
        Never,
        "a ticket is delivered",
        "it is opened",
        "an unacknowledged ticket: the broker delivers it again",
    ),
    at(
        "worker.opened",
        Never,
        "an attempt is opened",
        "its task starts",
        "a running row without a task: a worker in the same seat, or the rescuer when the lease \
         is over",
    ),
    at(
        "worker.ran",
        Once,
        "a task has ended",
        "its end is recorded",
        "a running row whose task has done its work: ended as lost, and the next attempt does it \
         again with the same idempotency key",
    ),
    at(
        "worker.settled",
        Never,
        "an attempt's end is recorded",
        "the ticket that follows is published, if one does",
        "a row that owes its ticket: the relay, after 5 s; the spent ticket comes again and \
         opens nothing",
    ),
    at(
        "worker.published",
        Never,
        "the ticket that follows is confirmed",
        "its row is marked",
        "a debt that is paid: the open, or a second copy by the relay",
    ),
    at(
        "worker.marked",
        Never,
        "all that follows from an attempt is done",
        "its ticket is acknowledged",
        "the spent ticket comes again and opens nothing",
    ),
    at(
        "worker.acked",
        Never,
        "a ticket is acknowledged",
        "the slot takes the next",
        "nothing; an acknowledgement that was not sent brings the ticket again, and it opens \
         nothing",
    ),
    at(
        "worker.moved",
        Never,
        "a copy of a message is confirmed in another queue",
        "the original is acknowledged",
        "two copies: of a ticket one opens, of a parked message both stay",
    ),
    at(
        "worker.adopted",
        Never,
        "an execution is made of another system's message",
        "its ticket is published, or the message opened as its ticket",
        "the message comes again: with a message id it finds its execution, without one it makes \
         a second",
    ),
];

/// A point whose program is the one that its name begins with.
const fn at(
    name: &'static str,
    reruns: Reruns,
    after: &'static str,
    before: &'static str,
    leaves: &'static str,
) -> Point {
    let program = match name.as_bytes()[0] {
        b's' => Program::Scheduler,
        b'w' => Program::Worker,
        _ => Program::Console,
    };
    Point { name, program, after, before, leaves, reruns }
}
