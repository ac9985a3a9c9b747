//! What the tests of the command executor stand on: the worker's real program as the guard, shell
//! scripts as tasks, and a FIFO that tells exactly when the last process of a task is gone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use sexton_worker::executor::command::{CommandExecutor, CommandHost, CommandLine, CommandTask};
use sexton_worker::executor::{
    Executor, HostInstant, TaskControl, TaskEnd, TaskRun, TaskSupervisor,
};
use sexton_worker::guard::GuardProgram;
use sexton_worker::output::Stream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

/// How long any event may take before a test fails.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// The worker's program: where `TEST_BIN_DIR` says, else where cargo puts it for this test.
pub(super) fn worker_program() -> PathBuf {
    let folder = std::env::var_os("TEST_BIN_DIR").map_or_else(
        || std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned(),
        PathBuf::from,
    );
    let program = folder.join("worker");
    assert!(program.is_file(), "build the programs first: cargo build --workspace --bins");
    std::path::absolute(program).unwrap()
}

/// A folder with a FIFO that a task's processes hold open for writing.
pub(super) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("alive");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self { folder }
    }

    pub(super) fn fifo(&self) -> PathBuf {
        self.folder.path().join("alive")
    }

    /// Follows the FIFO from its first writer to its last one's end.
    pub(super) fn signs(&self) -> Signs {
        let (sender, receiver) = mpsc::unbounded_channel();
        let fifo = self.fifo();
        // A thread of its own: opening waits for the first writer, and a test that has failed must
        // not wait with it.
        std::thread::spawn(move || {
            for line in BufReader::new(File::open(fifo).unwrap()).lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Signs(receiver)
    }

    /// `script`, which finds the FIFO at its descriptor 3, to be run in a way that the test says.
    pub(super) fn task(&self, script: &str) -> CommandTask {
        let script = format!("exec 3<>\"$1\"\n{script}");
        let fifo = self.fifo().to_str().unwrap().to_owned();
        let arguments = vec!["-c".to_owned(), script, "task".to_owned(), fifo];
        CommandTask::new(CommandLine { program: "/bin/sh".into(), arguments })
    }

    /// An executor of `script`, which finds the FIFO at its descriptor 3.
    pub(super) fn shell(&self, script: &str) -> CommandExecutor {
        self.shell_with_grace(script, Duration::from_secs(20))
    }

    pub(super) fn shell_with_grace(&self, script: &str, grace: Duration) -> CommandExecutor {
        shell(&self.fifo(), script, grace)
    }
}

pub(super) fn shell(fifo: &Path, script: &str, grace: Duration) -> CommandExecutor {
    // For reading too: opening a FIFO for writing alone waits for a reader, and not every test has
    // one.
    let script = format!("exec 3<>\"$1\"\n{script}");
    let fifo = fifo.to_str().unwrap().to_owned();
    command("/bin/sh", vec!["-c".to_owned(), script, "task".to_owned(), fifo], grace)
}

pub(super) fn command(program: &str, arguments: Vec<String>, grace: Duration) -> CommandExecutor {
    let line = CommandLine { program: program.into(), arguments };
    executor(CommandTask { grace, ..CommandTask::new(line) })
}

/// A script that needs no FIFO, to be run in a way that the test says.
pub(super) fn script(script: &str) -> CommandTask {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    CommandTask::new(CommandLine { program: "/bin/sh".into(), arguments })
}

pub(super) fn executor(task: CommandTask) -> CommandExecutor {
    executor_under(GuardProgram::from_path(worker_program()), task)
}

/// The same, under a guard that the test says.
pub(super) fn executor_under(guard: GuardProgram, task: CommandTask) -> CommandExecutor {
    CommandExecutor::new(host(guard), task)
}

/// What all commands of a worker share: their guards, and the worker's environment.
pub(super) fn host(guard: GuardProgram) -> Arc<CommandHost> {
    let variables = [
        ("AMQP_URL", "amqp://secret"),
        ("SEXTON_TARGET", "stale"),
        ("GREETING", "hello"),
        ("LC_MONETARY", "C"),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    let clock = || chrono::DateTime::from_timestamp(1_765_526_400, 0).unwrap();
    Arc::new(CommandHost::new(guard, std::env::vars_os().chain(variables), Arc::new(clock)))
}

/// What a task's processes say of themselves, and that they are gone.
pub(super) struct Signs(mpsc::UnboundedReceiver<String>);

impl Signs {
    /// The next line that the task wrote to its descriptor 3.
    pub(super) async fn line(&mut self) -> String {
        let line = timeout(DEADLINE, self.0.recv()).await.expect("a sign of life in time");
        line.expect("the task is alive")
    }

    /// Waits until no process holds the FIFO any more.
    pub(super) async fn all_gone(&mut self) {
        let gone = async { while self.0.recv().await.is_some() {} };
        timeout(DEADLINE, gone).await.expect("every process of the task is gone in time");
    }
}

/// A supervisor whose lease outlasts every test.
pub(super) fn long_lease() -> (TaskSupervisor, TaskControl) {
    lease(Duration::from_mins(10))
}

pub(super) fn lease(duration: Duration) -> (TaskSupervisor, TaskControl) {
    TaskSupervisor::new(HostInstant::now() + duration)
}

pub(super) fn task(params: Value) -> TaskRun {
    let scheduled_for = "2025-12-12T08:00:00Z".parse().unwrap();
    TaskRun {
        execution_id: Uuid::from_u128(7),
        attempt: 2,
        job: "billing.invoices".to_owned(),
        target: Some("25".to_owned()),
        execution_key: "cron-2025-12-12T08:00:00Z".to_owned(),
        scheduled_for,
        deadline: scheduled_for + Duration::from_secs(90),
        idempotency_key: "billing.invoices:cron-2025-12-12T08:00:00Z".to_owned(),
        params,
        timeout: Duration::from_mins(10),
        trace: None,
    }
}

/// Runs a task under a long lease to its end.
pub(super) async fn run(executor: &CommandExecutor) -> TaskEnd {
    run_task(executor, &task(json!({}))).await
}

pub(super) async fn run_task(executor: &CommandExecutor, task: &TaskRun) -> TaskEnd {
    let (_supervisor, control) = long_lease();
    timeout(DEADLINE, executor.run(task, control)).await.expect("the task ends in time")
}

pub(super) fn stdout(end: &TaskEnd) -> Vec<&str> {
    let lines = end.output.lines.iter().filter(|line| line.stream == Stream::Stdout);
    lines.map(|line| line.text.as_str()).collect()
}
