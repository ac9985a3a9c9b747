//! What the simulation plays of a worker and of the sweep, taken away one at a time: it must notice.
//!
//! That it notices a fence of the store that is taken away was tried by hand, since the statements are
//! what they are in every build; see docs/internals/proof.md.

use sexton_tests::simulation::{Campaign, Cut, End, Op, Parts, Queue, SimulationRunner};

const CUT: Cut = Cut::No;

/// A triggered execution whose ticket is in the first worker's hand.
const DELIVERED: [Op; 4] = [
    Op::Trigger { key: 0, cut: CUT },
    Op::Relay { limit: 100, cut: CUT },
    Op::Publish { ticket: 0, cut: CUT },
    Op::Deliver { slot: 0, message: 0 },
];

/// The scheduler has seen the attempt, and a lease and more passes.
const PASSES: [Op; 2] = [Op::FindLost, Op::Wait { ms: 25_000 }];

/// Its attempt is lost, and the second worker is handed the next ticket and opens it.
const TAKEN_OVER: [Op; 6] = [
    Op::FindLost,
    Op::EndLost { cut: CUT },
    Op::Relay { limit: 100, cut: CUT },
    Op::Publish { ticket: 0, cut: CUT },
    Op::Deliver { slot: 2, message: 0 },
    Op::Ask { worker: 1, cut: CUT },
];

/// Without the part a promise breaks after these operations, with it none does.
async fn needed(without: Parts, ops: &[Op], what: &str) {
    let mut runner = SimulationRunner::create().await.unwrap();
    let broken = runner.run(ops, without).await.unwrap().expect("a promise should be broken");
    assert!(broken.text.contains(what), "{broken:?}");
    let broken = runner.run(ops, Parts::ALL).await.unwrap();
    assert!(broken.is_none(), "{broken:?}");
}

#[tokio::test]
async fn without_its_own_clock_a_worker_runs_a_task_beside_another() {
    let opened = [Op::Ask { worker: 0, cut: CUT }];
    let ops = [&DELIVERED[..], &opened, &PASSES, &TAKEN_OVER].concat();
    needed(Parts { own_clock: false, ..Parts::ALL }, &ops, "run at the same time").await;
}

#[tokio::test]
async fn a_task_that_starts_on_an_old_lease_runs_beside_another() {
    let open_at_0 = [Op::Ask { worker: 0, cut: Cut::After }];
    let again = [Op::Ask { worker: 0, cut: CUT }];
    let ops = [&DELIVERED[..], &open_at_0, &PASSES, &again, &TAKEN_OVER].concat();
    needed(Parts { renewal_first: false, ..Parts::ALL }, &ops, "run at the same time").await;
}

#[tokio::test]
async fn a_rescuer_that_trusts_the_database_clock_takes_a_live_attempt_when_the_clock_is_set() {
    let opened = [Op::Ask { worker: 0, cut: CUT }, Op::FindLost, Op::SetClock { ms: 60_000 }];
    let ops = [&DELIVERED[..], &opened, &TAKEN_OVER].concat();
    needed(Parts { observes: false, ..Parts::ALL }, &ops, "taken from a worker that holds it")
        .await;
}

#[tokio::test]
async fn without_republishing_a_sweep_leaves_a_failed_execution_without_its_message() {
    let parked = [
        Op::Ask { worker: 0, cut: CUT },
        Op::End { slot: 0, end: End::FailsForGood },
        Op::Settle { worker: 0, cut: CUT },
        Op::Send { slot: 0, cut: CUT },
        Op::MarkSent { worker: 0, cut: CUT },
        Op::Acknowledge { slot: 0 },
        Op::Lose { queue: Queue::Failed, message: 0 },
    ];
    let ops = [&DELIVERED[..], &parked].concat();
    needed(Parts { sweep_republishes: false, ..Parts::ALL }, &ops, "0 messages are parked").await;
}

#[tokio::test]
async fn without_admissions_an_execution_waits_for_its_job_for_ever() {
    let ops = [
        Op::Overlap { job: 0, policy: 2 },
        Op::Trigger { key: 0, cut: CUT },
        Op::Trigger { key: 3, cut: CUT },
    ];
    needed(Parts { admits: false, ..Parts::ALL }, &ops, "does not come to its end").await;
}

/// The whole way: drawn, found, made short, and found again.
#[tokio::test]
async fn a_violation_is_found_from_a_seed_and_shrunk_to_a_few_operations() {
    let parts = Parts { own_clock: false, ..Parts::ALL };
    let campaign = Campaign { seed: 1, cases: super::CASES, parts };
    let mut runner = SimulationRunner::create().await.unwrap();
    let found = runner.campaign(campaign).await.unwrap().expect_err("a promise should be broken");
    assert!(found.ops.len() <= 40, "{}", found.render());
    assert!(found.render().contains("    Op::"), "{}", found.render());
    assert!(runner.run(&found.ops, parts).await.unwrap().is_some(), "{}", found.render());
    assert!(runner.run(&found.ops, Parts::ALL).await.unwrap().is_none(), "{}", found.render());
}
