//! The services of `examples/locks`, as one fleet: each tick runs on one of them, and when one dies the others go on.

use std::path::PathBuf;
use std::process::Stdio;

use sexton_tests::database::TestDatabase;
use sqlx::postgres::PgPool;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{INSTALL_TIMEOUT, eventually, within};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/locks/run.sh");
pub(super) const SCHEMA: &str = include_str!("../../../examples/locks/schema.sql");
/// What the script answers where a language's tools are missing.
const MISSING: i32 = 77;
/// Ticks that run between two deaths.
const TICKS: i64 = 3;

/// The program of `examples/locks/rust` that cargo has built beside the tests.
pub(super) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join(name);
    assert!(program.is_file(), "build {} with `make test-programs`", program.display());
    program
}

/// A service that runs; killed with this value.
struct Service {
    name: &'static str,
    process: Child,
    log: PathBuf,
}

impl Service {
    fn start(db: &TestDatabase, folder: &TempDir, name: &'static str) -> Self {
        let log = folder.path().join(name);
        let file = std::fs::File::create(&log).unwrap();
        let mut command = if name == "rust" {
            Command::new(program("locks-service"))
        } else {
            let mut command = Command::new("sh");
            command.args([SCRIPT, name]);
            command
        };
        let process = command
            .env("DATABASE_URL", db.url())
            .env("SERVICE", name)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { name, process, log }
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits until it runs; false, with a report: its tools are missing.
    async fn runs(&mut self) -> bool {
        let runs = async || {
            if self.log().contains(&format!("{} runs", self.name)) {
                return Some(true);
            }
            let status = self.process.try_wait().unwrap()?;
            assert_eq!(status.code(), Some(MISSING), "{} ended: {}", self.name, self.log());
            sexton_tests::untested::report_untested(&format!(
                "the service with locks in {}: {}",
                self.name,
                self.log()
            ));
            Some(false)
        };
        within(INSTALL_TIMEOUT, "the service runs", runs).await
    }
}

async fn count(pool: &PgPool, what: &'static str) -> i64 {
    sqlx::query_scalar(what).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn each_tick_runs_on_one_service_of_the_fleet_and_the_others_go_on_when_it_dies() {
    let db = TestDatabase::create().await.unwrap();
    sqlx::raw_sql(SCHEMA).execute(db.pool()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Vec::new();
    for name in ["rust", "python", "node"] {
        let mut service = Service::start(&db, &folder, name);
        if service.runs().await {
            fleet.push(service);
        }
    }
    while !fleet.is_empty() {
        let before = count(db.pool(), "SELECT count(*) FROM cleanups").await;
        let go_on = async || {
            let all = count(db.pool(), "SELECT count(*) FROM cleanups").await;
            (all >= before + TICKS).then_some(())
        };
        eventually("ticks run", go_on).await;
        // It won the last tick, so the next one has another winner.
        let last = "SELECT service FROM cleanups ORDER BY tick DESC LIMIT 1";
        let last: String = sqlx::query_scalar(last).fetch_one(db.pool()).await.unwrap();
        let place = fleet.iter().position(|service| service.name == last);
        let mut winner = fleet.remove(place.unwrap_or_else(|| panic!("{last} is dead")));
        assert!(winner.process.try_wait().unwrap().is_none(), "{last} ended: {}", winner.log());
        winner.process.kill().await.unwrap();
    }
    let twice = "SELECT count(*) - count(DISTINCT tick) FROM cleanups";
    assert_eq!(count(db.pool(), twice).await, 0, "a tick ran twice");
    // A service that was killed may have been between the work and its end.
    let unguarded = "SELECT count(*) FROM cleanups c
         WHERE NOT EXISTS (SELECT FROM sexton.guard_ticks g WHERE g.key = 5101 AND g.tick = c.tick)";
    assert_eq!(count(db.pool(), unguarded).await, 0, "it ran without its tick");
    let failed = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome <> 'succeeded'";
    assert_eq!(count(db.pool(), failed).await, 0);
}
