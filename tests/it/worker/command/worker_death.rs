//! A running command when its worker has died, or is frozen.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sexton_worker::executor::Executor;

use super::fixture::{DEADLINE, Scene, lease, long_lease, shell, task};

/// The variable that names the FIFO for the process that plays the worker.
const FIFO: &str = "SEXTON_TEST_FIFO";

/// The variable with the lease of the process that plays the worker, in milliseconds.
const LEASE_MS: &str = "SEXTON_TEST_LEASE_MS";

/// Not a test: the process that others kill. It runs a command that never ends, under one lease.
#[tokio::test]
#[ignore = "plays the worker for the tests below, which start it as a process of its own"]
async fn acts_as_the_worker() {
    let (Some(fifo), Ok(lease_ms)) = (std::env::var_os(FIFO), std::env::var(LEASE_MS)) else {
        return;
    };
    let script = "trap '' TERM HUP; echo $SEXTON_RESULT_FILE >&3
        [ -e $1.idle ] && exit
        echo ready >&3
        (sleep 1000; :) & sleep 1000";
    let executor = shell(Path::new(&fifo), script, DEADLINE);
    let (_supervisor, control) = lease(Duration::from_millis(lease_ms.parse().unwrap()));
    executor.run(&task(json!({})), control).await;
    // The guard is idle from now on.
    std::fs::write(Path::new(&fifo).with_extension("ended"), "").unwrap();
    std::future::pending::<()>().await;
}

async fn eventually(what: &str, done: impl Fn() -> bool) {
    let waiting = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect(what);
}

fn worker(scene: &Scene, lease: Duration) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "worker::command::worker_death::acts_as_the_worker"])
        .env(FIFO, scene.fifo())
        .env(LEASE_MS, lease.as_millis().to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_command_dies_with_its_worker_of_sigkill() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let mut worker = worker(&scene, 2 * DEADLINE);
    let file = signs.line().await;
    assert_eq!(signs.line().await, "ready");
    worker.kill().unwrap();
    signs.all_gone().await;
    worker.wait().unwrap();
    // The guard, too, has a moment's work left.
    let folder = Path::new(&file).parent().unwrap();
    eventually("the task's folder is removed", || !folder.exists()).await;
}

#[tokio::test]
async fn the_folder_that_an_idle_guard_keeps_goes_with_its_worker() {
    let scene = Scene::new();
    std::fs::write(scene.fifo().with_extension("idle"), "").unwrap();
    let mut signs = scene.signs();
    let mut worker = worker(&scene, 2 * DEADLINE);
    let file = signs.line().await;
    let (folder, ended) =
        (Path::new(&file).parent().unwrap(), scene.fifo().with_extension("ended"));
    eventually("the task has ended", || ended.exists()).await;
    assert!(folder.exists(), "it is kept for the next task");
    worker.kill().unwrap();
    worker.wait().unwrap();
    eventually("the folder is removed", || !folder.exists()).await;
}

#[tokio::test]
async fn a_command_does_not_outlive_the_lease_of_a_frozen_worker() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let mut worker = worker(&scene, Duration::from_secs(5));
    signs.line().await;
    assert_eq!(signs.line().await, "ready");
    kill_process(Pid::from_child(&worker), Signal::STOP).unwrap();
    signs.all_gone().await;
    // The worker never resumed: the guard did this alone.
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[tokio::test]
async fn a_command_dies_when_its_attempt_is_dropped() {
    let scene = Scene::new();
    let mut signs = scene.signs();
    let executor = scene.shell("trap '' TERM; echo ready >&3; sleep 1000");
    let (_supervisor, control) = long_lease();
    let task = task(json!({}));
    let running = tokio::spawn(async move { executor.run(&task, control).await });
    assert_eq!(signs.line().await, "ready");
    running.abort();
    signs.all_gone().await;
}
