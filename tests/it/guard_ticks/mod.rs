//! Ticks that services guard by the platform's SQL functions: one of many sessions runs each.
//!
//! Method: the functions are called as a service calls them, over plain connections; what each session answered, and when
//! its lock was held by the database's clock, is compared with the table.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod clocks;
mod ends;
mod fuzz;
mod refusals;
mod retention;

use chrono::{DateTime, Timelike as _, Utc};
use sexton_tests::database::TestDatabase;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

const KEY: i64 = 5101;

/// A database with the platform's schema, and no program.
struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    /// An instance of a service.
    async fn connect(&self) -> PgConnection {
        PgConnection::connect(self.db.url()).await.unwrap()
    }

    /// The minute of the database's clock.
    async fn minute(&self) -> DateTime<Utc> {
        let now: DateTime<Utc> =
            sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(self.db.pool()).await.unwrap();
        now.with_second(0).unwrap().with_nanosecond(0).unwrap()
    }

    async fn count(&self, what: &'static str) -> i64 {
        sqlx::query_scalar(what).fetch_one(self.db.pool()).await.unwrap()
    }
}

async fn guard_try(
    session: &mut PgConnection,
    key: i64,
    tick: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT sexton.guard_try($1, $2)")
        .bind(key)
        .bind(tick)
        .fetch_one(session)
        .await
}

async fn guard_done(
    session: &mut PgConnection,
    key: i64,
    tick: DateTime<Utc>,
    outcome: &str,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT sexton.guard_done($1, $2, $3)")
        .bind(key)
        .bind(tick)
        .bind(outcome)
        .fetch_one(session)
        .await
}

/// Whether some session could take the lock.
async fn is_free(session: &mut PgConnection, key: i64) -> bool {
    let mut tx = session.begin().await.unwrap();
    let free = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(key);
    let free = free.fetch_one(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    free
}

fn code(error: &sqlx::Error) -> String {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .unwrap_or_default()
        .into_owned()
}
