//! How a running command is stopped: timeout, cancel, shutdown, a lost lease.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sexton_worker::executor::{Executor, HostInstant, Outcome, StopReason};
use tokio::time::timeout;

use super::fixture::{
    DEADLINE, Scene, executor, lease, long_lease, run, run_task, script, stdout, task,
};

/// Ignores SIGTERM, as does everything it starts.
const DEAF: &str = "trap '' TERM; echo ready >&3; (sleep 1000; :) & sleep 1000";

/// Cleans up on SIGTERM and reports success.
const POLITE: &str = "trap 'echo bye; exit 0' TERM; echo ready >&3; sleep 1000 & wait; wait";

#[tokio::test]
async fn a_timeout_kills_the_whole_group_of_a_command_that_ignores_sigterm() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell_with_grace(DEAF, Duration::from_millis(200));
    let mut task = task(json!({}));
    task.timeout = Duration::from_millis(300);
    let end = run_task(&executor, &task).await;
    assert_eq!((end.outcome, end.signal), (Outcome::TimedOut, Some(9)));
    signs.all_gone().await;
}

#[tokio::test]
async fn a_command_that_exits_on_sigterm_is_not_killed_and_still_timed_out() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let mut task = task(json!({}));
    task.timeout = Duration::from_millis(500);
    let end = run_task(&scene.shell(POLITE), &task).await;
    assert_eq!((&end.outcome, end.exit_code), (&Outcome::TimedOut, Some(0)));
    assert_eq!(stdout(&end), ["bye"]);
    signs.all_gone().await;
}

#[tokio::test]
async fn the_owner_stops_a_command_for_its_own_reason() {
    for (reason, outcome) in [
        (StopReason::Cancelled, Outcome::Cancelled),
        (StopReason::Interrupted, Outcome::Interrupted),
    ] {
        let scene = Scene::new();
        let mut signs = scene.signs();
        let (executor, task) = (scene.shell(POLITE), task(json!({})));
        let (supervisor, control) = long_lease();
        let running = tokio::spawn(async move { executor.run(&task, control).await });
        assert_eq!(signs.line().await, "ready");
        supervisor.stop(reason);
        let end = timeout(DEADLINE, running).await.unwrap().unwrap();
        assert_eq!((&end.outcome, end.exit_code), (&outcome, Some(0)));
        assert_eq!(stdout(&end), ["bye"]);
        signs.all_gone().await;
    }
}

#[tokio::test]
async fn a_forced_stop_and_a_lost_lease_do_not_wait_for_the_grace() {
    for (hurried, outcome) in [(true, Outcome::Interrupted), (false, Outcome::LeaseLost)] {
        let scene = Scene::new();
        let mut signs = scene.signs();
        // The grace period is longer than the test's deadline.
        let executor = scene.shell_with_grace(DEAF, 2 * DEADLINE);
        let task = task(json!({}));
        let (supervisor, control) = long_lease();
        let running = tokio::spawn(async move { executor.run(&task, control).await });
        assert_eq!(signs.line().await, "ready");
        supervisor.stop(StopReason::Interrupted);
        if hurried {
            supervisor.stop_at_once(StopReason::Interrupted);
        } else {
            supervisor.stop(StopReason::LeaseLost);
        }
        let end = timeout(DEADLINE, running).await.unwrap().unwrap();
        assert_eq!((end.outcome, end.signal), (outcome, Some(9)));
        signs.all_gone().await;
    }
}

#[tokio::test]
async fn a_command_is_killed_when_its_lease_expires() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell_with_grace(DEAF, 2 * DEADLINE);
    let (_supervisor, control) = lease(Duration::from_secs(1));
    let task = task(json!({}));
    let end = timeout(DEADLINE, executor.run(&task, control)).await.unwrap();
    assert_eq!((end.outcome, end.signal), (Outcome::LeaseLost, Some(9)));
    signs.all_gone().await;
}

#[tokio::test]
async fn a_renewed_lease_lets_a_command_finish() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell("echo ready >&3; sleep 2");
    let (supervisor, control) = lease(Duration::from_millis(1500));
    let task = task(json!({}));
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    assert_eq!(signs.line().await, "ready");
    supervisor.extend_lease(HostInstant::now() + DEADLINE);
    let end = timeout(DEADLINE, running).await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_command_is_not_started_under_an_expired_lease() {
    let scene = Scene::new();
    let (_supervisor, control) = lease(Duration::ZERO);
    let end = scene.shell("echo started").run(&task(json!({})), control).await;
    assert_eq!((end.outcome, end.output.lines.len()), (Outcome::LeaseLost, 0));
}

#[tokio::test]
async fn a_command_whose_guard_is_killed_is_killed_by_the_worker() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell(&format!("echo $PPID >&3; {DEAF}"));
    let task = task(json!({}));
    let (_supervisor, control) = long_lease();
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    let guard: i32 = signs.line().await.parse().unwrap();
    assert_eq!(signs.line().await, "ready");
    kill_process(Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    let end = timeout(DEADLINE, running).await.unwrap().unwrap();
    assert!(matches!(end.outcome, Outcome::GuardLost { .. }), "{end:?}");
    signs.all_gone().await;
}

#[tokio::test]
async fn a_command_that_kills_its_guard_at_once_is_found_all_the_same() {
    // Mostly before the guard can report which process it has started.
    for _ in 0..20 {
        let scene = Scene::new();
        let mut signs = scene.signs();
        let end = run(&scene.shell("kill -KILL $PPID; echo ready >&3; sleep 1000")).await;
        assert!(matches!(end.outcome, Outcome::GuardLost { .. }), "{end:?}");
        signs.all_gone().await;
    }
}

#[tokio::test]
async fn a_frozen_guard_is_abandoned_and_its_command_killed() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell(&format!("echo $PPID >&3; {DEAF}"));
    let task = task(json!({}));
    let (supervisor, control) = long_lease();
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    let guard: i32 = signs.line().await.parse().unwrap();
    assert_eq!(signs.line().await, "ready");
    kill_process(Pid::from_raw(guard).unwrap(), Signal::STOP).unwrap();
    supervisor.stop_at_once(StopReason::Cancelled);
    let end = timeout(DEADLINE, running).await.unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Cancelled);
    signs.all_gone().await;
}

#[tokio::test]
async fn an_order_that_arrives_with_the_end_of_a_large_assignment_is_carried_out_at_once() {
    // A guard that did not see the order would be given up after ten seconds, each time.
    let stopping = async {
        for _ in 0..10 {
            let (supervisor, control) = long_lease();
            let task = task(json!({ "text": "x".repeat(150_000) }));
            let executor = executor(script("sleep 1000"));
            let running = tokio::spawn(async move { executor.run(&task, control).await });
            // Until it waits for its guard, which has only just been started.
            tokio::task::yield_now().await;
            supervisor.stop_at_once(StopReason::Cancelled);
            let end = running.await.unwrap();
            assert_eq!(end.outcome, Outcome::Cancelled);
        }
    };
    timeout(DEADLINE, stopping).await.expect("the orders are carried out at once");
}
