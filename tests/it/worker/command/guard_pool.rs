//! Guards that serve one task after another.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sexton_outbound::secret::Value;
use sexton_worker::executor::command::{
    CommandExecutor, CommandHost, CommandTask, TaskLimits, TaskUser,
};
use sexton_worker::executor::{Executor, HostInstant, Outcome, TaskEnd};
use sexton_worker::guard::GuardProgram;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::fixture::{
    DEADLINE, executor, host, long_lease, run, script, stdout, task, worker_program,
};

/// Executors that share their guards, which record their process ids when they start.
struct Scene {
    folder: tempfile::TempDir,
    host: Arc<CommandHost>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (guard, log) = (folder.path().join("guard"), Self::log(folder.path()));
        let worker = worker_program();
        let wrapper =
            format!("#!/bin/sh\necho $$ >>{}\nexec {} \"$@\"\n", log.display(), worker.display());
        // By another process: a child that this one forks for another test would keep the file open for writing until it
        // has executed its own program, and meanwhile nobody can execute this one.
        let mut writing = std::process::Command::new("sh")
            .args(["-c", "umask 077 && cat >\"$0\" && chmod 700 \"$0\""])
            .arg(&guard)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writing.stdin.take().unwrap().write_all(wrapper.as_bytes()).unwrap();
        assert!(writing.wait().unwrap().success());
        Self { folder, host: host(GuardProgram::from_path(guard)) }
    }

    fn executor_of(&self, text: &str) -> CommandExecutor {
        CommandExecutor::new(Arc::clone(&self.host), script(text))
    }

    fn log(folder: &Path) -> PathBuf {
        folder.join("started")
    }

    /// The process ids of all guards that were started.
    fn started(&self) -> Vec<i32> {
        let text = fs::read_to_string(Self::log(self.folder.path())).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Runs a task that succeeds; returns the process id of its guard.
    async fn guard_of_a_task(&self) -> i32 {
        let end = run(&self.executor_of("echo $PPID")).await;
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
async fn a_guard_serves_one_task_after_another() {
    let scene = Scene::new();
    let first = scene.guard_of_a_task().await;
    for _ in 0..20 {
        assert_eq!(scene.guard_of_a_task().await, first);
    }
    assert_eq!(scene.started(), [first]);
}

#[tokio::test]
async fn tasks_that_run_at_once_have_a_guard_each() {
    let begun = tempfile::tempdir().unwrap();
    // Each task waits until all of them have begun.
    let together = format!(
        "cd {}; touch $$; until [ $(ls | wc -l) -ge 5 ]; do sleep 0.01; done; echo $PPID",
        begun.path().display()
    );
    let executor = executor(script(&together));
    let five = || join_all((0..5).map(|_| run(&executor)));
    let guards = |ends: &[TaskEnd]| -> BTreeSet<String> {
        ends.iter().map(|end| stdout(end)[0].to_owned()).collect()
    };
    let first = guards(&five().await);
    assert_eq!(first.len(), 5);
    assert!(guards(&five().await).is_subset(&first), "they serve further tasks");
}

#[tokio::test]
async fn a_killed_idle_guard_affects_no_task() {
    let scene = Scene::new();
    let idle = scene.guard_of_a_task().await;
    kill_process(Pid::from_raw(idle).unwrap(), Signal::KILL).unwrap();
    gone(idle).await;
    assert_ne!(scene.guard_of_a_task().await, idle);
}

#[tokio::test]
async fn idle_guards_end_with_their_worker() {
    let scene = Scene::new();
    let idle = scene.guard_of_a_task().await;
    drop(scene);
    gone(idle).await;
}

#[tokio::test]
async fn a_guard_retires_before_a_limit_of_processor_time_could_hit_it() {
    let scene = Scene::new();
    let first = scene.guard_of_a_task().await;
    let mut tasks = 1;
    while scene.guard_of_a_task().await == first {
        tasks += 1;
        assert!(tasks < 20_000, "the guard has served {tasks} tasks");
    }
    assert!(tasks > 20, "a guard served {tasks} tasks only");
    gone(first).await;
}

/// Follows the process whose id is in the file of the first argument, as a debugger does, until it is killed: then that
/// process cannot be reaped by its parent, whatever ends it. Makes the file of the second argument once it does.
const TRACER: &str = r#"
import ctypes, pathlib, signal, sys
SEIZE = 0x4206
traced, ready = map(pathlib.Path, sys.argv[1:])
if ctypes.CDLL(None, use_errno=True).ptrace(SEIZE, int(traced.read_text()), None, None):
    sys.exit(f"ptrace: {ctypes.get_errno()}")
ready.touch()
signal.pause()
"#;

#[tokio::test]
async fn a_guard_retires_after_a_task_of_which_something_cannot_be_reaped() {
    // Others may not follow a process that is no descendant of theirs.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new();
    let first = scene.guard_of_a_task().await;
    let (traced, ready) = (scene.folder.path().join("traced"), scene.folder.path().join("ready"));
    let leaves = format!(
        "setsid sleep 1000 & echo $! >{traced}.part; mv {traced}.part {traced}
         until [ -e {ready} ]; do sleep 0.01; done; echo $PPID",
        traced = traced.display(),
        ready = ready.display()
    );
    let executor = scene.executor_of(&leaves);
    let tracing = async {
        while !traced.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        let mut python = Command::new("python3");
        python.args(["-c", TRACER]).args([&traced, &ready]).kill_on_drop(true);
        python.spawn().unwrap()
    };
    let (end, _tracer) = tokio::join!(run(&executor), tracing);
    assert_eq!(end.outcome, Outcome::Succeeded, "{end:?}");
    assert_eq!(stdout(&end), [first.to_string()]);
    assert_ne!(scene.guard_of_a_task().await, first);
    gone(first).await;
}

#[tokio::test]
async fn nothing_of_a_task_reaches_the_next_one() {
    let host = host(GuardProgram::from_path(worker_program()));
    let print = "echo $PPID; pwd; ulimit -n; echo ${MARK:-none}; umask; ls /proc/self/fd | wc -w";
    let plain = CommandExecutor::new(Arc::clone(&host), script(print));
    let before = run(&plain).await;
    let limits = TaskLimits { open_files: Some(64), ..TaskLimits::default() };
    let mut other = script("umask 000; cd /; sleep 1000 & setsid sleep 1000 & echo $PPID");
    other.directory = Some("/tmp".into());
    other.environment.set.push(("MARK".into(), Value::Plain("of the other".into())));
    let other = run(&CommandExecutor::new(host, CommandTask { limits, ..other })).await;
    assert_eq!(other.outcome, Outcome::Succeeded, "{other:?}");
    assert_eq!(stdout(&other)[0], stdout(&before)[0], "the same guard");
    assert_eq!(stdout(&run(&plain).await), stdout(&before));
}

#[tokio::test]
async fn a_folder_serves_the_next_task_only_if_it_was_left_as_it_was() {
    let host = host(GuardProgram::from_path(worker_program()));
    let of = |with: &str| {
        let says = format!("{with}; echo ${{SEXTON_RESULT_FILE%/*}}");
        CommandExecutor::new(Arc::clone(&host), script(&says))
    };
    let folder_of = async |with: &str| {
        let end = run(&of(with)).await;
        assert_eq!(end.outcome, Outcome::Succeeded, "{with}: {end:?}");
        PathBuf::from(stdout(&end)[0])
    };
    let first = folder_of(":").await;
    assert_eq!(folder_of("touch $SEXTON_RESULT_FILE; rm $SEXTON_RESULT_FILE").await, first);
    for changed in [
        "d=${SEXTON_RESULT_FILE%/*}; touch $d/left",
        "d=${SEXTON_RESULT_FILE%/*}; chmod 755 $d",
        "d=${SEXTON_RESULT_FILE%/*}; rmdir $d; mkdir -m 700 $d",
        "d=${SEXTON_RESULT_FILE%/*}; rmdir $d",
        "echo 7 >$SEXTON_RESULT_FILE",
    ] {
        let before = folder_of(changed).await;
        let after = folder_of(":").await;
        assert_ne!(after, before, "{changed}");
        assert!(after.exists() && !before.exists(), "{changed}");
    }
    let last = folder_of(":").await;
    if rustix::process::geteuid().is_root() {
        let user = Some(TaskUser { uid: 65534, gid: 65534, account: None });
        let other = script("echo ${SEXTON_RESULT_FILE%/*}");
        let end =
            run(&CommandExecutor::new(Arc::clone(&host), CommandTask { user, ..other })).await;
        assert_ne!(PathBuf::from(stdout(&end)[0]), last, "{end:?}");
    }
    drop(host);
    let removed = async {
        while last.exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, removed).await.expect("the folder is removed");
}

#[tokio::test]
async fn a_renewal_that_crosses_with_the_end_of_a_task_does_not_reach_the_next_one() {
    let executor = executor(script("echo $PPID"));
    let mut guards = BTreeSet::new();
    for number in 0..200 {
        let (supervisor, control) = long_lease();
        let task = task(json!({}));
        let running = executor.run(&task, control);
        // Again and again until the end, so that the last renewals arrive after the guard's report.
        let renewing = async {
            loop {
                supervisor.extend_lease(HostInstant::now() + DEADLINE);
                sleep(Duration::from_micros(1)).await;
            }
        };
        let end = tokio::select! { end = running => end, () = renewing => unreachable!() };
        assert_eq!(end.outcome, Outcome::Succeeded, "task {number}: {end:?}");
        guards.insert(stdout(&end)[0].to_owned());
    }
    assert!(guards.len() < 20, "the guards were lost: {guards:?}");
}
