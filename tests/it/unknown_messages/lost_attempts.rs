//! The process that ends a lost attempt logs the parked task: a scheduler's rescuer, or the worker that takes the
//! instance lock of the dead one. A worker to which the ticket comes ends nothing.

use sexton_tests::platform::{Platform, Program};

use super::parked_log::{JSON, parked};
use crate::bad_input::wire::{Message, Wire};
use crate::process::{FINAL_TIMEOUT, by_hand, until};

/// A platform, and a worker that has died in the one attempt that there may be, after its scheduler.
async fn bereaved(lease: &str) -> Platform {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/sleep\", \"3000\"]\n");
    let more = format!("lease = \"{lease}\"\nretry = {{ max_crashes = 1 }}");
    platform.apply(&by_hand("a.b", "work", &more)).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &JSON).unwrap();
    let mut worker = platform.start_worker("w1", &JSON).unwrap();
    let done = platform.sexton(&["jobs", "trigger", "a.b"]).await;
    assert!(done.status.success(), "{done}");
    until(&platform, "sexton.executions WHERE state = 'running'", 1).await;
    scheduler.kill();
    worker.kill();
    platform
}

async fn assert_logged_once(platform: &Platform, mut heir: Program) {
    until(platform, "sexton.executions WHERE state = 'failed' AND error_class = 'lost'", 1).await;
    let is_logged = async || (!parked(&platform.logs()).is_empty()).then_some(());
    platform.eventually("the task is logged", FINAL_TIMEOUT, is_logged).await;
    heir.terminate();
    heir.exit(FINAL_TIMEOUT).await;
    let [line] = parked(&platform.logs()).try_into().unwrap();
    assert_eq!((&line["level"], &line["error.class"]), (&"ERROR".into(), &"lost".into()), "{line}");
    assert_eq!(line["job.name"], "a.b");
}

#[tokio::test]
async fn a_task_parked_by_the_successor_of_a_dead_worker_is_logged() {
    // Nobody waits for this lease.
    let platform = bereaved("1h").await;
    let heir = platform.start_worker("w1", &JSON).unwrap();
    assert_logged_once(&platform, heir).await;
}

#[tokio::test]
async fn a_task_parked_by_a_later_scheduler_is_logged() {
    let platform = bereaved("1s").await;
    // The lease is over, and the scheduler that saw it begin is gone.
    until(&platform, "sexton.executions WHERE state = 'running' AND lease_until < now()", 1).await;
    let heir = platform.start_scheduler("s2", &JSON).unwrap();
    assert_logged_once(&platform, heir).await;
}

#[tokio::test]
async fn a_worker_drops_the_ticket_of_a_dead_worker_without_ending_its_attempt() {
    let platform = bereaved("1s").await;
    until(&platform, "sexton.executions WHERE state = 'running' AND lease_until < now()", 1).await;
    let wire = Wire::connect(&platform).await;
    let ready = async |wanted: u32| {
        let there = async || (wire.depth(wire.main()).await == wanted).then_some(());
        platform.eventually("the ticket is there, or gone", FINAL_TIMEOUT, there).await;
    };
    ready(1).await;
    wire.send(&[Message::new("no ticket")]).await;
    // With another instance name it knows nothing of the dead one, and it has not watched the lease. Its one slot takes
    // the message behind the ticket only once it has settled the ticket.
    let mut stranger = platform.start_worker("w2", &[JSON[0], ("WORKER_SLOTS", "1")]).unwrap();
    let behind = async || (wire.depth(wire.failed()).await == 1).then_some(());
    platform.eventually("the message behind is parked", FINAL_TIMEOUT, behind).await;
    stranger.terminate();
    stranger.exit(FINAL_TIMEOUT).await;
    // Not given back either: the ticket is spent.
    ready(0).await;
    until(&platform, "sexton.executions WHERE state = 'running' AND attempt = 1", 1).await;
    assert!(parked(&platform.logs()).is_empty());
}
