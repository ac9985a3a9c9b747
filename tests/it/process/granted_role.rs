//! The roles that `sexton migrate --grant` sets up are all that the programs and their operators need.
//!
//! Method: the real scheduler, worker and console log in with such a role and do what each of them does to the
//! database, from a firing to retention; nothing may be refused to them. The test itself is the owner.

use sexton_servers::{PostgresOptions, PostgresServer};
use sexton_tests::platform::{CommandOutput, Platform, Program};
use uuid::Uuid;

use super::{FINAL_TIMEOUT, until};
use crate::bad_input::wire::{Message, Wire};

const CATALOGUE: &str = r#"
[tasks.fine]
command = ["/bin/sh", "-c", "echo done; echo 7 > $SEXTON_RESULT_FILE"]

[tasks.charge]
command = ["/bin/sh", "-c", "echo trying; test -e bank"]
retry = { max_retries = 1, delay = "1s" }

[tasks.charged]
command = ["/bin/sh", "-c", "echo false > $SEXTON_RESULT_FILE"]

[tasks.ask]
sql = "select count(*) > 0 from sexton.jobs"
"#;

const JOBS: &str = r#"
[[job]]
name = "a.fires"
task = "fine"
every = "1s"
overlap = "queue"

[[job]]
name = "a.charge"
task = "charge"
verify = "charged"

[[job]]
name = "a.asks"
task = "ask"
"#;

/// An execution of long ago, made of another with its attempts and what they wrote; an action, too; and the last pass
/// of retention was none of today's.
const OF_LONG_AGO: &str = r#"
CREATE TEMPORARY TABLE chosen AS
    SELECT execution_id AS id FROM sexton.attempt_output JOIN sexton.executions e ON e.id = execution_id
    WHERE e.state = 'succeeded' LIMIT 1;
INSERT INTO sexton.executions SELECT (jsonb_populate_record(e, '{"id": "01900000-0000-7000-8000-000000000001",
    "execution_key": "of long ago", "own_key": false, "finished_at": "2025-01-01T00:00:00Z"}')).*
    FROM sexton.executions e JOIN chosen USING (id);
INSERT INTO sexton.attempts SELECT (jsonb_populate_record(a,
    '{"execution_id": "01900000-0000-7000-8000-000000000001"}')).*
    FROM sexton.all_attempts a JOIN chosen c ON c.id = a.execution_id;
INSERT INTO sexton.attempt_output SELECT (jsonb_populate_record(o,
    '{"execution_id": "01900000-0000-7000-8000-000000000001"}')).*
    FROM sexton.attempt_output o JOIN chosen c ON c.id = o.execution_id;
UPDATE sexton.bulks SET ended_at = ended_at - interval '3 days';
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE sexton.operator_actions SET at = at - interval '2 years', action = 'of long ago'
    WHERE id = (SELECT action_id FROM sexton.audit_seals ORDER BY position LIMIT 1);
COMMIT;
UPDATE sexton.retention SET passed_at = NULL;
"#;

/// Whom the programs log in as, and whom the test is not.
struct Granted {
    platform: Platform,
    role: String,
    url: String,
    /// Of the commands.
    console_url: String,
}

impl Granted {
    async fn new() -> Self {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(CATALOGUE);
        let role = format!("sexton_{}", Uuid::new_v4().simple());
        let create = format!("CREATE ROLE {role} LOGIN PASSWORD 'secret'");
        sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(platform.store().pool()).await.unwrap();
        let done = platform.sexton(&["migrate", "--grant", &role]).await;
        assert!(done.status.success(), "{done}");
        let url = as_login(&platform, &role);
        Self { platform, role, console_url: url.clone(), url }
    }

    /// With the platform's roles, on a server of its own: the programs are members of one, the operator of another.
    async fn with_roles(server: &PostgresServer) -> Self {
        let amqp = &sexton_servers::shared().await.unwrap().amqp_url;
        let mut platform = Platform::on(server.url(), amqp).await.unwrap();
        platform.catalogue(CATALOGUE);
        let done = platform.sexton(&["migrate", "--grant"]).await;
        assert!(done.status.success() && done.stdout.contains("sexton_operator"), "{done}");
        let logins = "CREATE ROLE programs LOGIN PASSWORD 'secret' IN ROLE sexton_service;
            CREATE ROLE ann LOGIN PASSWORD 'secret' IN ROLE sexton_operator";
        sqlx::raw_sql(logins).execute(platform.store().pool()).await.unwrap();
        let (url, console_url) = (as_login(&platform, "programs"), as_login(&platform, "ann"));
        Self { platform, role: "programs".to_owned(), url, console_url }
    }

    fn env(&self) -> [(&str, &str); 2] {
        [("DATABASE_URL", &self.url), ("RETENTION_DAYS", "1")]
    }

    fn scheduler(&self, name: &str) -> Program {
        self.platform.start_scheduler(name, &self.env()).unwrap()
    }

    async fn run(&self, args: &[&str]) -> CommandOutput {
        let env = [("DATABASE_URL", &*self.console_url)];
        let done = self.platform.sexton_with(&env, args).await;
        assert!(done.status.success(), "{args:?}: {done}");
        done
    }

    async fn sql(&self, statement: &str) {
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(self.platform.store().pool()).await.unwrap();
    }

    /// So many executions of `a.charge` that have failed.
    async fn failed(&self, count: usize) {
        for _ in 0..count {
            self.run(&["jobs", "trigger", "a.charge"]).await;
        }
        until(&self.platform, "sexton.executions WHERE state = 'failed'", count as i64).await;
    }

    /// The id of one of them.
    async fn one_failed(&self) -> String {
        sqlx::query_scalar("SELECT min(id::text) FROM sexton.executions WHERE state = 'failed'")
            .fetch_one(self.platform.store().pool())
            .await
            .unwrap()
    }

    fn bank(&self, open: bool) {
        let bank = self.platform.folder().join("bank");
        if open { std::fs::write(bank, "").unwrap() } else { std::fs::remove_file(bank).unwrap() }
    }

    /// A message that no row knows.
    async fn rubbish(&self) {
        let wire = Wire::connect(&self.platform).await;
        wire.send_to(wire.failed(), &[Message::new("rubbish")]).await;
    }

    /// Nothing was refused to anybody.
    fn nothing_was_refused(&self) {
        let logs = self.platform.logs();
        let refused: Vec<_> = logs
            .lines()
            .filter(|line| line.contains("permission denied") || line.contains("must be owner"))
            .collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

/// The platform's database, for this log-in.
fn as_login(platform: &Platform, role: &str) -> String {
    let server = platform.database_url().split_once("://").unwrap().1;
    let server = server.split_once('@').map_or(server, |(_, server)| server);
    format!("postgres://{role}:secret@{server}")
}

#[tokio::test]
async fn scheduler_worker_and_console_work_with_the_granted_role() {
    let granted = Granted::new().await;
    work(&granted).await;
    let drop = format!("DROP OWNED BY {0}; DROP ROLE {0}", granted.role);
    granted.sql(&drop).await;
}

#[tokio::test]
async fn scheduler_and_worker_work_as_service_and_the_console_as_operator() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let granted = Granted::with_roles(&server).await;
    work(&granted).await;
}

/// All that programs and operators do.
async fn work(granted: &Granted) {
    let platform = &granted.platform;
    let jobs = platform.folder().join("jobs.toml");
    std::fs::write(&jobs, JOBS).unwrap();
    granted.run(&["jobs", "apply", "-f", jobs.to_str().unwrap()]).await;
    let mut scheduler = granted.scheduler("s1");
    let mut worker = platform.start_worker("w1", &granted.env()).unwrap();
    for program in [&mut scheduler, &mut worker] {
        program.ready().await;
    }
    // Firings, a statement in the platform's own database.
    granted.run(&["jobs", "trigger", "a.asks"]).await;
    until(platform, "sexton.jobs j WHERE EXISTS (SELECT FROM sexton.executions e WHERE e.job_id = j.id AND e.state = 'succeeded')", 2)
        .await;
    granted.run(&["jobs", "pause", "a.fires", "--reason", "enough"]).await;
    // Failures; a requeue of one, an edit, a bulk: each asks the verify task first.
    granted.failed(4).await;
    granted.bank(true);
    let first = granted.one_failed().await;
    granted.run(&["failed", "requeue", &first]).await;
    let next = granted.one_failed().await;
    granted
        .run(&["failed", "edit", &next, "--params", "{\"a\": 1}", "--reason", "typo", "--yes"])
        .await;
    granted
        .run(&["failed", "requeue", "--all", "--canary", "1", "--yes", "--reason", "bank is back"])
        .await;
    until(platform, "sexton.bulks WHERE state = 'done' AND done > 0", 3).await;
    // What was requeued has run, too: the bank is away again from here on.
    until(platform, "sexton.executions WHERE state NOT IN ('succeeded', 'skipped')", 0).await;
    // Given up and taken back, by one and by many.
    granted.bank(false);
    granted.failed(2).await;
    granted.run(&["failed", "discard", "--all", "--yes", "--reason", "test"]).await;
    granted.run(&["failed", "restore", "--bulk", "4", "--yes"]).await;
    until(platform, "sexton.executions WHERE state = 'failed'", 2).await;
    // What no row knows: written down, discarded, and carried out.
    granted.rubbish().await;
    until(platform, "sexton.unknown_messages WHERE gone_at IS NULL", 1).await;
    let listed = granted.run(&["--json", "unknown", "list"]).await.stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let raw = listed["items"][0]["id"].as_str().unwrap();
    granted.run(&["unknown", "discard", raw, "--reason", "rubbish", "--yes"]).await;
    until(platform, "sexton.unknown_messages WHERE gone_at IS NOT NULL", 1).await;
    // Everything that looks.
    for args in [
        &["status"][..],
        &["groups", "list"],
        &["failed", "list"],
        &["bulks", "show", "3"],
        &["executions", "logs", &first],
        &["jobs", "catch-up", "--dry-run"],
        &["audit", "export"],
        &["jobs", "backfill", "a.fires", "--since", "1m", "--overlap", "allow", "--yes"],
        &["jobs", "delete", "a.asks", "--reason", "x", "--yes"],
    ] {
        granted.run(args).await;
    }
    let doctor = platform.sexton_with(&granted.env()[..1], &["doctor"]).await;
    for code in ["database_privileges", "rows_unread", "database_deaf"] {
        assert!(!doctor.stdout.contains(code), "{doctor}");
    }
    // Retention: what ended two days ago goes with all that hangs on it, when a scheduler starts.
    for program in [&mut scheduler, &mut worker] {
        program.terminate();
        program.exit(FINAL_TIMEOUT).await;
    }
    granted.sql(OF_LONG_AGO).await;
    until(platform, "sexton.operator_actions WHERE action = 'of long ago'", 1).await;
    let mut scheduler = granted.scheduler("s2");
    until(platform, "sexton.executions WHERE execution_key = 'of long ago'", 0).await;
    until(platform, "sexton.bulks", 0).await;
    until(platform, "sexton.operator_actions WHERE action = 'of long ago'", 0).await;
    scheduler.terminate();
    scheduler.exit(FINAL_TIMEOUT).await;
    granted.nothing_was_refused();
}
