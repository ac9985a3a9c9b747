//! Guards that wait for a task.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sexton_worker::executor::Outcome;
use sexton_worker::executor::command::CommandExecutor;
use sexton_worker::guard::GuardProgram;
use tokio::time::{Instant, sleep};

use super::fixture::{DEADLINE, executor_under, run, script, stdout, worker_program};

/// An executor whose guards record their process ids when they start.
struct Scene {
    folder: tempfile::TempDir,
    executor: CommandExecutor,
}

impl Scene {
    /// Each task prints the process id of its guard.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (guard, log) = (folder.path().join("guard"), Self::log(folder.path()));
        let worker = worker_program();
        let wrapper =
            format!("#!/bin/sh\necho $$ >>{}\nexec {} \"$@\"\n", log.display(), worker.display());
        fs::write(&guard, wrapper).unwrap();
        fs::set_permissions(&guard, fs::Permissions::from_mode(0o700)).unwrap();
        let executor = executor_under(GuardProgram::from_path(guard), script("echo $PPID"));
        Self { folder, executor }
    }

    fn log(folder: &Path) -> PathBuf {
        folder.join("started")
    }

    /// The process ids of all guards that were started, once there are `count` of them.
    async fn started(&self, count: usize) -> Vec<i32> {
        let log = Self::log(self.folder.path());
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let numbers: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if numbers.len() >= count && text.ends_with('\n') {
                return numbers;
            }
            assert!(began.elapsed() < DEADLINE, "{} of {count} guards started", numbers.len());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The process ids of the guards that wait after a first task.
    async fn waiting_guards(&self) -> Vec<i32> {
        let first = self.guard_of_a_task().await;
        let mut started = self.started(3).await;
        started.retain(|&guard| guard != first);
        started
    }

    /// Runs a task that succeeds; returns the process id of its guard.
    async fn guard_of_a_task(&self) -> i32 {
        let end = run(&self.executor).await;
        assert_eq!(end.outcome, Outcome::Succeeded);
        stdout(&end)[0].parse().unwrap()
    }
}

/// Waits until no process has this id; a zombie does not count.
async fn gone(pid: i32) {
    let began = Instant::now();
    loop {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z')) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "{pid} is still there: {state}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_task_takes_a_guard_from_the_pool_and_the_pool_is_refilled() {
    let scene = Scene::new();
    let ahead = scene.waiting_guards().await;
    assert_eq!(ahead.len(), 2, "the first task had to wait for its guard");
    let second = scene.guard_of_a_task().await;
    assert!(ahead.contains(&second), "{second} was started for its task, {ahead:?} before");
    assert_eq!(scene.started(4).await.len(), 4);
}

#[tokio::test]
async fn a_killed_pooled_guard_affects_no_task() {
    let scene = Scene::new();
    let waiting = scene.waiting_guards().await;
    for &guard_pid in &waiting {
        kill_process(Pid::from_raw(guard_pid).unwrap(), Signal::KILL).unwrap();
        gone(guard_pid).await;
    }
    let guard = scene.guard_of_a_task().await;
    assert!(!waiting.contains(&guard));
}

#[tokio::test]
async fn pooled_guards_end_once_unused() {
    let scene = Scene::new();
    let waiting = scene.waiting_guards().await;
    drop(scene);
    for guard_pid in waiting {
        gone(guard_pid).await;
    }
}
