//! `sexton bench`: figures, and nothing left behind, however it ends. With the real programs.

use std::process::{Output, Stdio};
use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use rustix::process::{Pid, Signal, kill_process};
use sexton_broker::Namespace;
use sexton_broker::names::failed_queue;
use sexton_tests::namespace::{TestNamespace, amqp_url};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{sleep, timeout};

use super::{Console, keys, sexton};

/// Three works, with debug builds, beside other tests.
const BENCH_TIMEOUT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One measurement at a time: these tests ask for all databases of measurements that a server has.
static ALONE: Mutex<()> = Mutex::const_new(());

struct Bench {
    console: Console,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    async fn new() -> Self {
        Self { _alone: ALONE.lock().await, console: Console::new().await }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(sexton());
        command.args(["--json", "bench"]).args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("DATABASE_URL", self.console.db.url()).env("AMQP_URL", amqp_url());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().unwrap()
    }

    async fn databases(&self) -> Vec<String> {
        let names =
            "SELECT datname::text FROM pg_database WHERE starts_with(datname, 'sexton_bench_')";
        sqlx::query_scalar(names).fetch_all(self.console.db.pool()).await.unwrap()
    }

    /// The one database, as soon as its platform has declared its queues.
    async fn under_way(&self) -> String {
        let found = async {
            loop {
                if let [name] = &self.databases().await[..]
                    && has_queues(name).await
                {
                    return name.clone();
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(BENCH_TIMEOUT, found).await.expect("it should begin")
    }
}

async fn end(child: Child) -> Output {
    timeout(BENCH_TIMEOUT, child.wait_with_output()).await.expect("it should end").unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the namespace of this database is on the broker.
async fn has_queues(database: &str) -> bool {
    let namespace = Namespace::new(database.replace('_', "-")).unwrap();
    let raw = TestNamespace::new().raw().await;
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let queue = failed_queue(&namespace);
    raw.channel.queue_declare(queue.into(), options, FieldTable::default()).await.is_ok()
}

fn send_signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn bench_prints_its_figures_and_leaves_nothing() {
    let bench = Bench::new().await;
    let child = bench.start(&["--count", "100", "--seconds", "5", "--slots", "4"]);
    let database = bench.under_way().await;
    let done = end(child).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(keys(&report), ["burst", "drain", "lag", "servers", "settings"]);
    assert_eq!((&report["drain"]["tasks"], &report["burst"]["jobs"]), (&100.into(), &100.into()));
    for (work, figure) in [
        ("drain", "tasks_per_second"),
        ("burst", "last_start_ms"),
        ("lag", "p50_ms"),
        ("lag", "p99_ms"),
        ("lag", "firings"),
    ] {
        assert!(report[work][figure].as_f64().unwrap() > 0.0, "{report}");
    }
    assert!(bench.databases().await.is_empty());
    assert!(!has_queues(&database).await);
}

#[tokio::test]
async fn an_interrupted_bench_leaves_nothing() {
    let bench = Bench::new().await;
    let child = bench.start(&["lag", "--seconds", "3600"]);
    let database = bench.under_way().await;
    send_signal(&child, Signal::TERM);
    let done = end(child).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("stopped before the end"), "{}", text(&done.stderr));
    assert!(bench.databases().await.is_empty());
    assert!(!has_queues(&database).await);
}

#[tokio::test]
async fn leftovers_of_a_killed_bench_are_removed_once_its_programs_have_ended() {
    let bench = Bench::new().await;
    let mut child = bench.start(&["lag", "--seconds", "3600"]);
    let database = bench.under_way().await;
    let clean = async |arguments: &[&str]| end(bench.start(arguments)).await;
    assert_eq!(clean(&["--clean", "--yes"]).await.status.code(), Some(4), "it is in use");
    child.kill().await.unwrap();
    let cleaning = async {
        loop {
            let cleaning = clean(&["--clean"]).await;
            if cleaning.status.code() != Some(4) {
                return cleaning;
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let cleaning = timeout(BENCH_TIMEOUT, cleaning).await.expect("its programs should end");
    assert_eq!(cleaning.status.code(), Some(7), "{}", text(&cleaning.stderr));
    assert_eq!(bench.databases().await, std::slice::from_ref(&database));
    let removed = clean(&["--clean", "--yes"]).await;
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    assert!(text(&removed.stdout).contains(&database));
    assert!(bench.databases().await.is_empty());
    assert!(!has_queues(&database).await);
}

#[tokio::test]
async fn bench_without_privileges_or_programs_gives_a_remedy() {
    let bench = Bench::new().await;
    let role = format!("nobody_{}", uuid::Uuid::new_v4().simple());
    for statement in [
        format!("CREATE ROLE {role} LOGIN PASSWORD 'x' NOCREATEDB"),
        format!("GRANT CONNECT ON DATABASE {} TO {role}", bench.name().await),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
            .execute(bench.console.db.pool())
            .await
            .unwrap();
    }
    let (_, place) = bench.console.db.url().split_once('@').unwrap();
    let url = format!("postgres://{role}:x@{place}");
    let env = [("DATABASE_URL", url.as_str()), ("AMQP_URL", &amqp_url())];
    let refused = super::run(&["bench"], &env, "").await.expect(1);
    assert!(refused.stderr.contains("CREATEDB"), "{}", refused.stderr);
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(bench.console.db.pool()).await.unwrap();

    let alone = bench.console.folder.path().join("sexton");
    // Not by this process: what another test starts meanwhile would inherit the file, open for writing, and a program
    // that somebody writes to cannot be run.
    let copied = Command::new("cp").arg(sexton()).arg(&alone).status().await.unwrap();
    assert!(copied.success());
    let missing = Command::new(alone).arg("bench").env_clear().output().await.unwrap();
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("install it beside"), "{}", text(&missing.stderr));
    let wrong = super::run(&["bench", "--count", "7", "--slots", "0"], &[], "").await.expect(2);
    assert!(wrong.stderr.contains("100..=100000"), "{}", wrong.stderr);
    assert!(bench.databases().await.is_empty());
}

impl Bench {
    async fn name(&self) -> String {
        let name = sqlx::query_scalar("SELECT current_database()::text");
        name.fetch_one(self.console.db.pool()).await.unwrap()
    }
}
