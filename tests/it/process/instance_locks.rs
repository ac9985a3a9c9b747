//! A restarted worker knows that its predecessor is dead.

use rustix::process::{Pid, Signal, kill_process};
use sexton_tests::platform::{Platform, Program};

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};

#[tokio::test]
async fn a_restarted_worker_ends_its_predecessor_s_attempts_before_their_lease_is_over() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "[ $SEXTON_ATTEMPT = 1 ] && sleep 3000");
    platform.catalogue(&ledger.catalogue());
    // An hour: no test waits for this lease.
    platform.apply(&by_hand("a.b", "work", "lease = \"1h\"")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut first = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    platform
        .eventually("the task has begun", FINAL_TIMEOUT, async || ledger.lines("begin").pop())
        .await;

    // A worker with another name does not know whether the first is alive.
    let mut stranger = platform.start_worker("w2", &[]).unwrap();
    stranger.ready().await;
    // A worker of the same name must not take it for dead while it lives.
    let mut twin = platform.start_worker("w1", &[]).unwrap();
    twin.ready().await;
    assert_eq!(count(&platform, "sexton.executions WHERE state = 'running'").await, 1);

    first.kill();
    until(&platform, "sexton.all_attempts WHERE outcome = 'lost'", 1).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    ledger.no_overlap();
}

/// A platform whose task has released every lock that it inherited, and runs on; its ledger, its
/// programs, and the task's guard.
async fn released() -> (Platform, Ledger, [Program; 2], Pid) {
    let mut platform = Platform::new().await.unwrap();
    let file = platform.folder().join("guard");
    // Descriptor 9 is the ledger's.
    let body = format!(
        "if [ $SEXTON_ATTEMPT = 1 ]; then
            for fd in $(ls /proc/self/fd); do [ $fd -gt 2 ] && [ $fd != 9 ] && flock -u $fd; done
            echo $PPID > {file}.part && mv {file}.part {file}
            exec sleep 3000
        fi",
        file = file.display()
    );
    let ledger = Ledger::new(&platform, &body);
    platform.catalogue(&ledger.catalogue());
    // An hour: no test waits for this lease.
    platform.apply(&by_hand("a.b", "work", "lease = \"1h\"")).await.unwrap();
    let scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut first = platform.start_worker("w1", &[]).unwrap();
    first.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let guard = platform
        .eventually("the task has released what it could", FINAL_TIMEOUT, async || {
            std::fs::read_to_string(&file).ok()
        })
        .await;
    let guard = Pid::from_raw(guard.trim().parse().unwrap()).unwrap();
    (platform, ledger, [first, scheduler], guard)
}

#[tokio::test]
async fn a_task_that_closes_inherited_descriptors_does_not_release_its_worker_s_instance_lock() {
    let (platform, ledger, [mut first, _scheduler], _) = released().await;
    // It takes the instance lock before it is ready, if it can, and ends what its predecessor left behind.
    let mut twin = platform.start_worker("w1", &[]).unwrap();
    twin.ready().await;
    assert_eq!(count(&platform, "sexton.all_attempts WHERE outcome IS NULL").await, 1);
    assert_eq!(count(&platform, "sexton.instances WHERE instance_lock IS NOT NULL").await, 1);
    first.kill();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    ledger.no_overlap();
}

#[tokio::test]
async fn the_instance_lock_of_a_dead_worker_is_held_while_the_guard_of_its_task_lives() {
    let (platform, ledger, [mut first, _scheduler], guard) = released().await;
    // A stopped guard has not yet ended its task.
    kill_process(guard, Signal::STOP).unwrap();
    first.kill();
    let mut second = platform.start_worker("w1", &[]).unwrap();
    second.ready().await;
    assert_eq!(count(&platform, "sexton.all_attempts WHERE outcome IS NULL").await, 1);
    kill_process(guard, Signal::CONT).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    until(&platform, "sexton.all_attempts WHERE outcome = 'lost'", 1).await;
    ledger.no_overlap();
}

/// Whether the process has the lock file of a worker open.
fn has_lock_open(process: i32) -> bool {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    descriptors
        .filter_map(|one| std::fs::read_link(one.ok()?.path()).ok())
        .any(|file| file.extension().is_some_and(|ending| ending == "lock"))
}

#[tokio::test]
async fn a_guard_has_the_instance_lock_while_its_task_runs_and_not_while_it_waits_for_another() {
    let mut platform = Platform::new().await.unwrap();
    let folder = platform.folder().clone();
    let (guard, go) = (folder.join("guard"), folder.join("go"));
    let script = format!(
        "echo $PPID >{guard}.part; mv {guard}.part {guard}; until [ -e {go} ]; do sleep 0.05; done",
        guard = guard.display(),
        go = go.display()
    );
    platform.catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", '{script}']\n"));
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let begun = async || std::fs::read_to_string(&guard).ok()?.trim().parse().ok();
    let guard: i32 = platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    assert!(has_lock_open(guard));
    std::fs::write(&go, "").unwrap();
    let released = async || (!has_lock_open(guard)).then_some(());
    platform.eventually("the lock is released", FINAL_TIMEOUT, released).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
}
