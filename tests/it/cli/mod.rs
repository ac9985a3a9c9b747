//! The real `sexton`, as operators and scripts run it: answers, exit statuses, and the rows
//! afterwards. Executions fail through the store's own protocol, without a worker.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod applying;
mod approvals;
mod audit;
mod bench;
mod bulks;
mod catch_up;
mod completions;
mod cron;
mod day_rules;
mod edits;
mod enqueue;
mod executions;
mod failed;
mod failed_search;
pub(crate) mod following_command;
mod importing;
mod jobs;
mod ledger;
mod lint;
mod logs;
mod migrating;
mod open_incidents;
mod policy;
mod races;
mod schedule_kinds;
mod selection;
mod servers;
mod short_ids;
mod trigger_many;
mod upcoming;
mod verification;
mod workers;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
use sexton_model::retry::{Decision, Usage};
use sexton_store::Store;
use sexton_store::lease::AttemptFence;
use sexton_store::open::{Offer, OpenRequest, open};
use sexton_store::output::OutputPart;
use sexton_store::relay::mark_published;
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_tests::database::TestDatabase;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use uuid::Uuid;

const DEADLINE: Duration = Duration::from_mins(1);

/// Two jobs without a schedule, and one with.
const JOBS: &str = r#"
[[job]]
name = "billing.invoices"
schedule = "0 1 1 * *"
task = "report"
params = { customer = 1, order = { id = "7" } }

[[job]]
name = "shop.charge"
task = "work"
params = { customer = 4891 }

[[job]]
name = "shop.mail"
task = "work"
"#;

/// The end and the output of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// The one document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// Everything that it printed.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// A separate database and the program to work on it.
pub(crate) struct Console {
    db: TestDatabase,
    folder: tempfile::TempDir,
}

impl Console {
    pub(crate) async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        Self { db, folder: tempfile::tempdir().unwrap() }
    }

    /// Creates a console with [`JOBS`].
    pub(crate) async fn with_jobs() -> Self {
        let console = Self::new().await;
        let file = console.file("jobs.toml", JOBS);
        console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
        console
    }

    pub(crate) fn url(&self) -> &str {
        self.db.url()
    }

    pub(crate) fn store(&self) -> &Store {
        self.db.store()
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Ended {
        self.run_with(args, &[], "").await
    }

    pub(crate) async fn json(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).await.expect(0).json()
    }

    /// The rows of a list's page.
    pub(crate) async fn items(&self, args: &[&str]) -> Value {
        let mut page = self.json(args).await;
        assert_eq!(keys(&page), ["items", "next_cursor"], "{args:?}");
        page["items"].take()
    }

    pub(crate) async fn run_with(&self, args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
        let variables = [("DATABASE_URL", self.db.url()), ("USER", "tester")];
        run(args, &[&variables, env].concat(), input).await
    }

    pub(crate) async fn trigger(&self, job: &str) -> ExecutionId {
        let answer = self.json(&["jobs", "trigger", job]).await;
        answer["id"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn open(&self, id: ExecutionId, number: i32) -> AttemptFence {
        let attempt = AttemptNumber::new(number).unwrap();
        let request =
            OpenRequest { execution_id: id, attempt, token: OpenToken::new(Uuid::new_v4()) };
        let (worker, offers) = (ProcessId::new(Uuid::now_v7()), [Offer::new("work")]);
        let lease = Duration::from_mins(1);
        // The transaction of an ended command may hold the row until the server has noticed the
        // end, and the open passes over a locked row. A worker repeats the open, too.
        let opening = async {
            let open = async || {
                open(self.store(), worker, "w:1", &offers, &[request], lease, None).await.unwrap()
            };
            while open().await.opened.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, opening).await.expect("the ticket should open");
        AttemptFence { execution_id: id, attempt, token: request.token }
    }

    /// Ends the attempt `held` as failed for good, with this error and output.
    pub(crate) async fn fail(&self, held: AttemptFence, error: &str, output: Option<OutputPart>) {
        let settlement = Settlement {
            fence: held,
            verdict: Decision::Fail { used: Usage { retries: 3, ..Usage::default() } },
            outcome: "error",
            error: Some(("exit_1".to_owned(), error.to_owned())),
            exit_code: Some(1),
            signal: None,
            output,
            result: None,
        };
        let settled = settle(self.store(), &[settlement], None).await.unwrap();
        assert!(matches!(settled[0], SettleOutcome::Done { .. }));
    }

    /// Creates an execution of `shop.charge` that has failed once, with a published parked ticket.
    pub(crate) async fn failed(&self) -> ExecutionId {
        let id = self.trigger("shop.charge").await;
        self.fail(self.open(id, 1).await, "card declined", None).await;
        let row = sexton_store::executions::find(self.store(), id.get()).await.unwrap().unwrap();
        let marked = mark_published(self.store(), &[(id, row.rev)], None).await.unwrap();
        assert_eq!(marked, 1);
        id
    }

    pub(crate) async fn state(&self, id: ExecutionId) -> String {
        let row = sexton_store::executions::find(self.store(), id.get()).await.unwrap().unwrap();
        format!("{}/{}", row.state, row.attempt)
    }

    /// The actions on an execution, as `action by actor because reason`.
    pub(crate) async fn audit(&self, id: ExecutionId) -> Vec<String> {
        let actions =
            sexton_store::operator::list_by_execution(self.store(), id.get()).await.unwrap();
        actions
            .into_iter()
            .map(|a| {
                let who = a.actor.split('@').next().unwrap_or_default().to_owned();
                format!("{} by {who} because {}", a.action, a.reason.unwrap_or_default())
            })
            .collect()
    }
}

/// Runs `sexton` on a database of another test.
pub(crate) async fn sexton_on(db: &TestDatabase, args: &[&str]) -> Ended {
    sexton_with(args, &[("DATABASE_URL", db.url()), ("USER", "tester")]).await
}

/// Runs `sexton` with these variables and `PATH`, and no others.
pub(crate) async fn sexton_with(args: &[&str], env: &[(&str, &str)]) -> Ended {
    run(args, env, "").await
}

/// Runs `sexton` with these variables and `PATH`, and no others.
async fn run(args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
    let mut command = Command::new(sexton());
    command.args(args).env_clear().envs(env.iter().copied()).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let write = tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    // A command that reads no input closes it early.
    drop(write.await.unwrap());
    Ended {
        // A killed program has none.
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The program beside the folder of this test's own binary, unless `TEST_BIN_DIR` names another.
fn sexton() -> PathBuf {
    let folder = match std::env::var_os("TEST_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned(),
    };
    let path = folder.join("sexton");
    assert!(path.is_file(), "build it first: cargo build -p sexton-console");
    path
}

/// The names of an object's fields, sorted.
#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
