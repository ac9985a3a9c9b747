//! `sexton migrate` in databases that are others', and when it is stopped.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use sexton_tests::database::TestDatabase;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::process::Command;
use tokio::time::sleep;

use super::{Console, DEADLINE, sexton};

/// A database without our schema, in which these statements were run.
async fn foreign(statements: &str) -> Console {
    let console = Console::new().await;
    let text = format!("DROP SCHEMA sexton CASCADE; {statements}");
    sqlx::raw_sql(AssertSqlSafe(text)).execute(console.db.pool()).await.unwrap();
    console
}

/// Everything that has a name in these schemas.
async fn everything(db: &TestDatabase, schemas: &[&str]) -> Vec<String> {
    let names = "SELECT relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE nspname = ANY ($1)
        UNION ALL SELECT proname::text FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
            WHERE nspname = ANY ($1)
        UNION ALL SELECT typname::text FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
            WHERE nspname = ANY ($1) ORDER BY 1";
    sqlx::query_scalar(names).bind(schemas).fetch_all(db.pool()).await.unwrap()
}

const THEIR_MIGRATIONS: &str = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
        installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL,
        execution_time BIGINT NOT NULL);
    INSERT INTO _sqlx_migrations SELECT n, 'theirs', now(), true, '\\x01', 1 FROM generate_series(1, 200) n;";

#[tokio::test]
async fn a_schema_sexton_of_somebody_else_s_is_refused_and_not_changed() {
    let theirs = format!("CREATE SCHEMA sexton; SET search_path = sexton; {THEIR_MIGRATIONS}");
    for (statements, message) in [
        (
            "CREATE SCHEMA sexton; CREATE TABLE sexton.jobs (id int); CREATE TABLE sexton.executions (id int)",
            "bear the names of Sexton's: executions, jobs;",
        ),
        (
            "CREATE SCHEMA sexton; CREATE TABLE sexton.queue (id int); CREATE INDEX jobs_due ON sexton.queue (id)",
            "bear the names of Sexton's: jobs_due;",
        ),
        (&theirs, "the table sexton._sqlx_migrations holds the migrations of another program"),
    ] {
        let console = foreign(statements).await;
        let before = everything(&console.db, &["public", "sexton"]).await;
        let ended = console.run(&["migrate"]).await.expect(6);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        for part in ["nothing was changed", "CREATE DATABASE", "ALTER SCHEMA sexton RENAME TO"] {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        assert_eq!(everything(&console.db, &["public", "sexton"]).await, before);
        // Nor is it taken for a schema that is ready, however many migrations another program has applied.
        console.run(&["status"]).await.expect(6);
    }
}

#[tokio::test]
async fn everything_that_migrate_creates_is_in_the_schema_sexton() {
    let outside = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE nspname NOT IN ('sexton', 'pg_catalog', 'pg_toast', 'information_schema')
        UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE nspname NOT IN ('sexton', 'pg_catalog', 'information_schema')";
    let console = Console::new().await;
    let names: Vec<String> =
        sqlx::query_scalar(outside).fetch_all(console.db.pool()).await.unwrap();
    assert_eq!(names, Vec::<String>::new());
    // A function that names nothing by the caller's search_path cannot be made to read another table. Expressions that
    // PostgreSQL writes into the functions that call them read none, and nobody else may execute them.
    let unpinned =
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_language l ON l.oid = prolang
        WHERE pronamespace = 'sexton'::regnamespace
          AND NOT (lanname = 'sql' AND NOT prosecdef AND prosrc !~* '\\m(from|join)\\s+sexton\\.')
          AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)";
    let names: Vec<String> =
        sqlx::query_scalar(unpinned).fetch_all(console.db.pool()).await.unwrap();
    assert_eq!(names, Vec::<String>::new());
}

/// Rather than leave the server at it: what the process had begun ends with it, and the next one repairs it.
#[tokio::test]
async fn a_migrate_that_is_stopped_leaves_nothing_at_work_and_the_next_one_goes_on() {
    let console = Console::new().await;
    let pool = console.db.pool();
    sqlx::raw_sql("DROP INDEX sexton.executions_failed").execute(pool).await.unwrap();
    let mut reader = PgConnection::connect(console.db.url()).await.unwrap();
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM sexton.executions")
        .execute(&mut reader)
        .await
        .unwrap();
    let mut builder = PgConnection::connect(console.db.url()).await.unwrap();
    let built = "SET statement_timeout = 500; CREATE INDEX CONCURRENTLY executions_failed ON sexton.executions (finished_at, id)
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
            let stderr = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.contains("stopped by SIGINT")
                    && stderr.contains("run `sexton migrate` again"),
                "{stderr}"
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
