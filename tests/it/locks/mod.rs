//! `sexton locks`: who holds or waits for what, and rows freed by hand.
//!
//! Method: real sessions hold and wait, as services and workers do, rows are written as ShedLock's library and workers
//! write them, and the real `sexton` lists and breaks. A break is proven by what its holder's next statement finds.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod breaking;
mod keys;
mod listing;
mod rows;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::{NewExecution, NewJob};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::cli::{Ended, sexton_on};

/// For events that only have to happen in the end.
const DEADLINE: Duration = Duration::from_mins(1);
const KEY: i64 = 5101;

/// A database with the platform's schema, and no program.
struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    /// A session of a process that calls itself `application`.
    async fn connect(&self, application: &str) -> PgConnection {
        let options = self.db.pool().connect_options();
        let options = (*options).clone().application_name(application);
        PgConnection::connect_with(&options).await.unwrap()
    }

    async fn sql(&self, statement: &str) -> u64 {
        let done = sqlx::query(AssertSqlSafe(statement.to_owned())).execute(self.db.pool()).await;
        done.unwrap().rows_affected()
    }

    async fn text(&self, query: &str) -> String {
        let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
        query.fetch_one(self.db.pool()).await.unwrap()
    }

    /// A job with further columns, as `name = value, …`.
    async fn job(&self, name: &str, columns: &str) -> JobId {
        let id = NewJob::new(name).insert(self.db.pool()).await.unwrap();
        self.sql(&format!("UPDATE sexton.jobs SET {columns} WHERE name = '{name}'")).await;
        id
    }

    /// A worker that was heard of just now.
    async fn worker(&self, name: &str, process_id: i32) {
        self.sql(&format!(
            "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
             VALUES (gen_random_uuid(), 'worker', '{name}', {process_id}, '1', now() - interval '1 day', now())"
        ))
        .await;
    }

    /// An execution whose attempt a worker opened so many minutes ago.
    async fn running(&self, job: JobId, worker: &str, minutes: i64) -> ExecutionId {
        let at = clock::now() - TimeDelta::minutes(minutes);
        let id = NewExecution::new(job, State::Running, at).insert(self.db.pool()).await.unwrap();
        let changed = self
            .sql(&format!(
                "UPDATE sexton.executions
                 SET worker_id = (SELECT i.id FROM sexton.instances i WHERE i.name = '{worker}')
                 WHERE id = '{id}'"
            ))
            .await;
        assert_eq!(changed, 1);
        id
    }

    /// Ends the attempt of an execution, so many minutes ago.
    async fn end(&self, id: ExecutionId, outcome: &str, minutes: i64) {
        self.sql(&format!(
            "UPDATE sexton.executions
             SET state = 'retrying', attempt = attempt + 1, next_attempt_at = now(), outcome = '{outcome}',
                 worker_id = NULL, open_token = NULL, lease_until = NULL
             WHERE id = '{id}'"
        ))
        .await;
        let ended = self
            .sql(&format!(
                "UPDATE sexton.attempts SET finished_at = now() - interval '{minutes} minutes'
                 WHERE execution_id = '{id}' AND outcome = '{outcome}'"
            ))
            .await;
        assert_eq!(ended, 1);
    }

    /// A row that was locked so many minutes ago, and stays so for so many more.
    async fn row(&self, name: &str, locked_by: &str, since: i64, more: i64) {
        self.sql(&format!(
            "INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
             VALUES ('{name}', timezone('utc', now()) + interval '{more} minutes',
                     timezone('utc', now()) - interval '{since} minutes', '{locked_by}')"
        ))
        .await;
    }

    /// Whether a row is locked now.
    async fn is_locked(&self, name: &str) -> bool {
        let query = format!(
            "SELECT (lock_until > timezone('utc', clock_timestamp()))::text FROM sexton.lock_rows
             WHERE name = '{name}'"
        );
        self.text(&query).await == "true"
    }

    async fn sexton(&self, args: &[&str]) -> Ended {
        sexton_on(&self.db, args).await
    }

    /// The answer of `sexton --json locks` with these arguments.
    async fn locks(&self, args: &[&str]) -> Value {
        let output = self.sexton(&[&["--json", "locks"], args].concat()).await.expect(0).text();
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }

    /// The advisory locks of an answer with one lock.
    async fn advisory(&self, args: &[&str]) -> Vec<Value> {
        self.locks(args).await["advisory"]["items"].as_array().unwrap().clone()
    }

    /// The names of the lock rows of an answer.
    async fn row_names(&self, args: &[&str]) -> Vec<String> {
        let rows = self.locks(args).await["rows"]["items"].as_array().unwrap().clone();
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Waits until there is an answer.
async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap_or_else(|_| panic!("never: {what}"))
}

async fn execute(session: &mut PgConnection, statement: &str) -> u64 {
    let done = sqlx::query(AssertSqlSafe(statement.to_owned())).execute(session).await.unwrap();
    done.rows_affected()
}

async fn process_id(session: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(session).await.unwrap()
}

fn instant(value: &Value) -> DateTime<Utc> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no instant: {value}"))
}
