//! Who ends an attempt that was lost tells of the parked task, whoever it is: beside a scheduler's rescuer, the
//! worker that takes the seat of the dead one, and the one to which the ticket comes.

use sexton_tests::platform::{Platform, Program};

use super::notice::{JSON, parked};
use crate::process::{IN_THE_END, by_hand, until};

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
    until(&platform, "executions WHERE state = 'running'", 1).await;
    scheduler.kill();
    worker.kill();
    platform
}

async fn is_told_once(platform: &Platform, mut heir: Program) {
    until(platform, "executions WHERE state = 'failed' AND error_class = 'lost'", 1).await;
    let told = async || (!parked(&platform.logs()).is_empty()).then_some(());
    platform.eventually("the task is told of", IN_THE_END, told).await;
    heir.terminate();
    heir.exit(IN_THE_END).await;
    let [line] = parked(&platform.logs()).try_into().unwrap();
    assert_eq!((&line["level"], &line["error.class"]), (&"ERROR".into(), &"lost".into()), "{line}");
    assert_eq!(line["job.name"], "a.b");
}

#[tokio::test]
async fn a_task_that_the_successor_of_a_dead_worker_parks_is_told_of() {
    // Nobody waits for this lease.
    let platform = bereaved("1h").await;
    let heir = platform.start_worker("w1", &JSON).unwrap();
    is_told_once(&platform, heir).await;
}

#[tokio::test]
async fn a_task_that_is_parked_by_whom_its_ticket_comes_to_is_told_of() {
    let platform = bereaved("1s").await;
    // No scheduler is there to see it, and a worker in another seat knows nothing of the dead one.
    until(&platform, "executions WHERE state = 'running' AND lease_until < now()", 1).await;
    let stranger = platform.start_worker("w2", &JSON).unwrap();
    is_told_once(&platform, stranger).await;
}
