//! Executions that programs enqueue by the platform's SQL functions, in transactions of their own.
//!
//! Method: the functions are called as an application does, over plain connections, and the tables and the platform are
//! looked at from outside.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod catalogue;
mod clients;
mod conformance;
mod delays;
mod keys;
mod one_at_a_time;
mod races;
mod refusals;
mod services;
mod templates;
mod transactions;
mod typed;

use serde_json::{Value, json};
use sexton_client::{Client, Enqueue, Enqueued, Error};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool};

const JOB: &str = "billing.charge";

/// A database with one job, and no program.
struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        let job = NewJob { params: json!({"currency": "EUR"}), ..NewJob::new(JOB) };
        job.insert(db.pool()).await.unwrap();
        Self { db }
    }

    fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    /// An application's own connection.
    async fn connect(&self) -> PgConnection {
        PgConnection::connect(self.db.url()).await.unwrap()
    }

    async fn enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued, Error> {
        Client::new().enqueue(&mut self.pool().acquire().await.unwrap(), enqueue).await
    }

    async fn count(&self) -> i64 {
        let counting = sqlx::query_scalar("SELECT count(*) FROM sexton.executions");
        counting.fetch_one(self.pool()).await.unwrap()
    }

    /// One execution's row as JSON.
    async fn row(&self, id: uuid::Uuid) -> Value {
        let reading =
            sqlx::query_scalar("SELECT to_jsonb(e) FROM sexton.executions e WHERE id = $1");
        reading.bind(id).fetch_one(self.pool()).await.unwrap()
    }

    async fn run(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.pool()).await.unwrap();
    }
}

fn charge() -> Enqueue {
    Enqueue::new(JOB)
}
