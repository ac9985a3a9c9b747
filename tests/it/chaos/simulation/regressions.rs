//! Shrunk lists of operations that once violated an invariant.

use sexton_tests::simulation::{
    BulkAction, BulkMode, BulkTarget, Cut, End, Op, Queue, SimulationRunner,
};

/// Fails if an invariant is violated after these operations, or on the way to the end that follows;
/// or if one of the operations no longer changes anything.
async fn holds_after(ops: &[Op]) {
    let broken = SimulationRunner::create().await.unwrap().run_keeping_database(ops).await.unwrap();
    assert!(broken.is_none(), "{broken:?}");
}

/// The broker parks one copy of a ticket, and the execution fails by that; the other copy is still
/// in the main queue. The failed row once had the number of both, and was opened as if it had been
/// requeued.
#[tokio::test]
async fn a_ticket_that_the_broker_parked_leaves_no_copy_that_opens_the_failed_execution() {
    holds_after(&[
        Op::Trigger { key: 0, cut: Cut::No },
        Op::Relay { limit: 100, cut: Cut::No },
        Op::Publish { ticket: 0, cut: Cut::No },
        Op::Copy { queue: Queue::Main, message: 0 },
        Op::Park { message: 0 },
        Op::Sweep { cut: Cut::No },
        Op::Sweep { cut: Cut::No },
        Op::Sweep { cut: Cut::No },
        Op::Deliver { slot: 0, message: 0 },
        Op::Ask { worker: 0, cut: Cut::No },
    ])
    .await;
}

/// The broker parks the message of a foreign task that a worker had adopted. It names no attempt,
/// so the sweep does not recognise the ticket in it: the task runs when the reconciler misses the
/// ticket, and the message stays.
#[tokio::test]
async fn a_foreign_task_whose_message_the_broker_parked_runs_all_the_same() {
    holds_after(&[
        Op::Foreign { key: 0 },
        Op::Deliver { slot: 0, message: 0 },
        Op::Ask { worker: 0, cut: Cut::No },
        Op::GiveBack { slot: 0 },
        Op::Park { message: 0 },
    ])
    .await;
}

/// A worker without a ticket's task type fails the execution after an hour, and another worker,
/// which has the type, receives a copy of the ticket.
#[tokio::test]
async fn a_ticket_that_nobody_offered_leaves_no_copy_that_opens_the_failed_execution() {
    holds_after(&[
        Op::Trigger { key: 2, cut: Cut::No },
        Op::Relay { limit: 100, cut: Cut::No },
        Op::Publish { ticket: 0, cut: Cut::No },
        Op::Copy { queue: Queue::Main, message: 0 },
        Op::Wait { ms: 3_700_000 },
        Op::Deliver { slot: 2, message: 0 },
        Op::Ask { worker: 1, cut: Cut::No },
        Op::Deliver { slot: 0, message: 0 },
        Op::Ask { worker: 0, cut: Cut::No },
    ])
    .await;
}

/// A bulk has selected an execution, another bulk requeues it, and it fails again at the very
/// instant at which the first one's operator listed it. The first then selects its new attempt, and
/// requeues it once.
#[tokio::test]
async fn an_execution_that_fails_again_at_the_instant_of_the_selection_is_processed_once() {
    let bulk =
        Op::Bulk { action: BulkAction::Requeue, target: BulkTarget::All, mode: BulkMode::Plain };
    let publish = Op::Publish { ticket: 0, cut: Cut::No };
    let deliver = Op::Deliver { slot: 0, message: 0 };
    let fails = Op::End { slot: 0, end: End::FailsForGood };
    let prepare = Op::Prepare { bulk: 0, cut: Cut::No };
    holds_after(&[
        Op::Trigger { key: 0, cut: Cut::No },
        Op::Trigger { key: 1, cut: Cut::No },
        Op::Relay { limit: 100, cut: Cut::No },
        publish,
        publish,
        deliver,
        deliver,
        Op::Ask { worker: 0, cut: Cut::No },
        fails,
        fails,
        Op::Settle { worker: 0, cut: Cut::No },
        Op::Wait { ms: 1_000 },
        bulk,
        prepare,
        bulk,
        prepare,
        prepare,
        Op::Carry { bulk: 0, cut: Cut::No },
        publish,
        deliver,
        Op::Ask { worker: 1, cut: Cut::No },
        fails,
        Op::Settle { worker: 1, cut: Cut::No },
    ])
    .await;
}
