//! `sexton migrate` in databases that are others', and when it is stopped.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use sexton_tests::database::TestDatabase;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::process::Command;
use tokio::time::sleep;

use super::{Console, DEADLINE, run, sexton};

/// A database without our tables.
async fn foreign(statements: &str) -> Console {
    let console = Console::new().await;
    let text = format!("DROP SCHEMA public CASCADE; CREATE SCHEMA public; {statements}");
    sqlx::raw_sql(AssertSqlSafe(text)).execute(console.db.pool()).await.unwrap();
    console
}

/// Everything that has a name, and the rows of the migrations' table.
async fn everything(db: &TestDatabase) -> Vec<String> {
    let names = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1";
    sqlx::query_scalar(names).fetch_all(db.pool()).await.unwrap()
}

const THEIR_MIGRATIONS: &str = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
        installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL,
        execution_time BIGINT NOT NULL);
    INSERT INTO _sqlx_migrations SELECT n, 'theirs', now(), true, '\\x01', 1 FROM generate_series(1, 200) n;";

#[tokio::test]
async fn a_database_with_tables_of_an_application_is_refused_and_not_changed() {
    for (statements, said) in [
        (
            "CREATE TABLE jobs (id int); CREATE TABLE executions (id int)",
            "bears its names: executions, jobs;",
        ),
        (
            "CREATE TABLE queue (id int); CREATE INDEX jobs_due ON queue (id)",
            "bears its names: jobs_due;",
        ),
        (
            THEIR_MIGRATIONS,
            "the table _sqlx_migrations of the schema public holds the migrations of another",
        ),
    ] {
        let console = foreign(statements).await;
        let before = everything(&console.db).await;
        let ended = console.run(&["migrate"]).await.expect(6);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        for part in
            ["nothing was changed", "CREATE DATABASE sexton", "?options=-csearch_path%3Dsexton"]
        {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        assert_eq!(everything(&console.db).await, before);
        // Nor is it taken for a schema that is ready, however many migrations another program has applied.
        console.run(&["status"]).await.expect(6);
    }
}

#[tokio::test]
async fn beside_an_application_s_tables_sexton_lives_in_a_schema_of_its_own() {
    let console = foreign(&format!("CREATE TABLE jobs (id int); {THEIR_MIGRATIONS}")).await;
    let before = everything(&console.db).await;
    let url = format!("{}?options=-csearch_path%3Dsexton", console.db.url());
    let env = [("DATABASE_URL", url.as_str())];
    let missing = run(&["migrate"], &env, "").await.expect(6);
    assert!(missing.stderr.contains("CREATE SCHEMA"), "{}", missing.stderr);
    sqlx::raw_sql("CREATE SCHEMA sexton").execute(console.db.pool()).await.unwrap();
    run(&["migrate"], &env, "").await.expect(0);
    run(&["migrate"], &env, "").await.expect(0);
    let file = console.file("jobs.toml", super::JOBS);
    run(&["jobs", "apply", "-f", &file], &env, "").await.expect(0);
    run(&["jobs", "trigger", "shop.mail"], &env, "").await.expect(0);
    let claimed: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.executions")
        .fetch_one(console.db.pool())
        .await
        .unwrap();
    assert_eq!(claimed, 1);
    assert_eq!(everything(&console.db).await, before);
}

/// Rather than leave the server at it: what the process had begun ends with it, and the next one repairs it.
#[tokio::test]
async fn a_migrate_that_is_stopped_leaves_nothing_at_work_and_the_next_one_goes_on() {
    let console = Console::new().await;
    let pool = console.db.pool();
    sqlx::raw_sql("DROP INDEX executions_failed").execute(pool).await.unwrap();
    let mut reader = PgConnection::connect(console.db.url()).await.unwrap();
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM executions")
        .execute(&mut reader)
        .await
        .unwrap();
    let mut builder = PgConnection::connect(console.db.url()).await.unwrap();
    let built = "SET statement_timeout = 500; CREATE INDEX CONCURRENTLY executions_failed ON executions (finished_at, id)
        WHERE state = 'failed'";
    for one in built.split("; ") {
        let _ = sqlx::raw_sql(AssertSqlSafe(one.to_owned())).execute(&mut builder).await;
    }
    builder.close().await.unwrap();
    let at_work =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%REINDEX INDEX CONCURRENTLY%'
        AND datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'";
    let until = async |expected: i64| {
        let asking = async {
            while sqlx::query_scalar::<_, i64>(at_work).fetch_one(pool).await.unwrap() != expected {
                sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, asking).await.unwrap();
    };
    for signal in [Signal::INT, Signal::KILL] {
        let mut command = Command::new(sexton());
        command.arg("migrate").env_clear().env("DATABASE_URL", console.db.url()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        until(1).await;
        kill_process(Pid::from_raw(child.id().unwrap() as i32).unwrap(), signal).unwrap();
        let ended =
            tokio::time::timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
        if signal == Signal::INT {
            let said = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(1), "{said}");
            assert!(
                said.contains("stopped by SIGINT") && said.contains("run `sexton migrate` again"),
                "{said}"
            );
        }
        until(0).await;
    }
    reader.close().await.unwrap();
    console.run(&["migrate"]).await.expect(0);
    let indexes: Vec<(String, bool)> = sqlx::query_as(
        "SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         WHERE c.relname LIKE 'executions_failed%' ORDER BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    assert_eq!(indexes, [("executions_failed".to_owned(), true)]);
}
