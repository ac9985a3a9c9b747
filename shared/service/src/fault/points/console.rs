//! Where the operators' console can be struck, in the order of the source.

use super::Reruns::Never;
use super::{Point, at};

pub(super) const POINTS: &[Point] = &[
    at(
        "console.triggered",
        Never,
        "an execution is claimed",
        "the operator is told",
        "a pending row that owes its ticket: the relay; the same key again finds it",
        "the command",
    ),
    at(
        "console.requeued",
        Never,
        "a failed execution is requeued",
        "the next is, or the operator is told",
        "pending rows that owe their ticket: the relay; the command again says which were requeued \
         already",
        "the command",
    ),
    at(
        "console.discarded",
        Never,
        "a failed execution is discarded",
        "the next is, or the operator is told",
        "discarded rows: the sweep removes their messages; the command again does the rest",
        "the command",
    ),
    at(
        "console.restored",
        Never,
        "a discarded execution is restored",
        "the next is, or the operator is told",
        "failed rows that owe their message: the relay; the command again does the rest",
        "the command",
    ),
    at(
        "console.cancelled",
        Never,
        "a cancel is recorded",
        "the operator is told",
        "a cancelled row, or a running one whose worker ends the task; the command again says so",
        "the command",
    ),
    at(
        "console.applied",
        Never,
        "jobs are applied, all of them",
        "the operator is told",
        "jobs that fire; applied again, they do not change",
        "the command",
    ),
    at(
        "console.paused",
        Never,
        "a job is paused",
        "the operator is told",
        "a paused job; the command again says so",
        "the command",
    ),
    at(
        "console.resumed",
        Never,
        "a job is resumed",
        "the operator is told",
        "an active job; the command again says so",
        "the command",
    ),
    at(
        "console.backfilled",
        Never,
        "a batch of a backfill is claimed",
        "the next is, or the operator is told",
        "pending rows that owe their tickets: the relay; the command again finds them and does the rest",
        "the command",
    ),
    at(
        "console.deleted",
        Never,
        "a job is deleted",
        "the operator is told",
        "a job that never fires again; the command again does not find it",
        "the command",
    ),
];
