//! A worker that is killed with all it has started, as a container or a host is.

use rustix::process::{Pid, Signal, kill_process};
use sexton_tests::platform::Platform;
use tokio::time::Instant;

use super::{BEYOND, FINAL_TIMEOUT, LEASE, Machine};
use crate::process::ledger::Ledger;
use crate::process::{by_hand, until};

/// The processes that descend from `ancestor`.
fn descendants(ancestor: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid): Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // Gone again: nobody's child any more.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        parents.push((pid, fields.split(' ').nth(1).unwrap().parse::<u32>().unwrap()));
    }
    let mut found = vec![ancestor];
    let mut seen = 0;
    while let Some(parent) = found.get(seen).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        seen += 1;
    }
    found.split_off(1)
}

#[tokio::test]
async fn an_attempt_that_died_with_its_worker_and_guard_is_retried_soon_after_its_lease() {
    is_tried_again(Machine::Shared).await;
}

/// The successor has another name, so no instance lock shows the death; the lease does.
pub(super) async fn is_tried_again(machine: Machine) {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "[ $SEXTON_ATTEMPT = 1 ] && sleep 300");
    platform.catalogue(&ledger.catalogue());
    let lease = format!("lease = \"{}s\"", LEASE.as_secs());
    platform.apply(&by_hand("a.b", "work", &lease)).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut doomed = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let begun = async || ledger.lines("begin").pop();
    platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    let mut other = platform.start_worker("w2", &[]).unwrap();
    other.ready().await;

    let rest = descendants(doomed.pid());
    assert!(rest.len() >= 2, "a guard and a task: {rest:?}");
    let killed = Instant::now();
    doomed.kill();
    for pid in rest {
        // The guard may have been faster with the task.
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
    let again = async || ledger.lines("begin").get(1).map(|_| killed.elapsed());
    let after = platform.eventually("it is tried again", FINAL_TIMEOUT, again).await;
    println!("MEASURED the next attempt began {after:?} after the kill, lease {LEASE:?}");
    assert!(
        after < machine.within(LEASE + BEYOND),
        "the next attempt began {after:?} after the kill"
    );
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    until(&platform, "sexton.all_attempts WHERE outcome = 'lost' AND number = 1", 1).await;
    ledger.no_overlap();
    ledger.each_attempt_once();
}
