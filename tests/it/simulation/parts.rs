//! What the simulation plays of a worker and of the sweep, taken away one at a time: it must notice.
//!
//! That it notices a fence of the store that is taken away was tried by hand, since the statements are
//! what they are in every build; see docs/proof.md.

use sexton_tests::simulation::{Campaign, Cut, End, Op, Plays, Queue, Stage};

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
async fn needed(without: Plays, ops: &[Op], what: &str) {
    let mut stage = Stage::create().await.unwrap();
    let broken = stage.run(ops, without).await.unwrap().expect("a promise should be broken");
    assert!(broken.text.contains(what), "{broken:?}");
    let broken = stage.run(ops, Plays::ALL).await.unwrap();
    assert!(broken.is_none(), "{broken:?}");
}

#[tokio::test]
async fn a_worker_without_a_clock_of_its_own_runs_a_task_beside_another() {
    let opened = [Op::Ask { worker: 0, cut: CUT }];
    let ops = [&DELIVERED[..], &opened, &PASSES, &TAKEN_OVER].concat();
    needed(Plays { own_clock: false, ..Plays::ALL }, &ops, "run at the same time").await;
}

#[tokio::test]
async fn a_task_that_starts_on_an_old_lease_runs_beside_another() {
    let asked = [Op::Ask { worker: 0, cut: Cut::After }];
    let again = [Op::Ask { worker: 0, cut: CUT }];
    let ops = [&DELIVERED[..], &asked, &PASSES, &again, &TAKEN_OVER].concat();
    needed(Plays { renewal_first: false, ..Plays::ALL }, &ops, "run at the same time").await;
}

#[tokio::test]
async fn a_rescuer_that_asks_the_database_s_clock_takes_an_attempt_from_its_worker_when_that_is_set()
 {
    let opened = [Op::Ask { worker: 0, cut: CUT }, Op::FindLost, Op::SetClock { ms: 60_000 }];
    let ops = [&DELIVERED[..], &opened, &TAKEN_OVER].concat();
    needed(Plays { observes: false, ..Plays::ALL }, &ops, "taken from a worker that holds it")
        .await;
}

#[tokio::test]
async fn a_sweep_that_owes_nothing_again_leaves_a_failed_execution_without_its_message() {
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
    needed(Plays { sweep_owes: false, ..Plays::ALL }, &ops, "0 messages are parked").await;
}

#[tokio::test]
async fn without_admissions_what_waits_for_its_job_waits_for_ever() {
    let ops = [
        Op::Overlap { job: 0, policy: 2 },
        Op::Trigger { key: 0, cut: CUT },
        Op::Trigger { key: 3, cut: CUT },
    ];
    needed(Plays { admits: false, ..Plays::ALL }, &ops, "does not come to its end").await;
}

/// The whole way: drawn, found, made short, and found again.
#[tokio::test]
async fn a_broken_promise_is_found_from_a_seed_and_told_as_a_few_operations() {
    let plays = Plays { own_clock: false, ..Plays::ALL };
    let campaign = Campaign { seed: 1, cases: super::CASES, plays };
    let mut stage = Stage::create().await.unwrap();
    let found = stage.campaign(campaign).await.unwrap().expect_err("a promise should be broken");
    assert!(found.ops.len() <= 40, "{}", found.tell());
    assert!(found.tell().contains("    Op::"), "{}", found.tell());
    assert!(stage.run(&found.ops, plays).await.unwrap().is_some(), "{}", found.tell());
    assert!(stage.run(&found.ops, Plays::ALL).await.unwrap().is_none(), "{}", found.tell());
}
