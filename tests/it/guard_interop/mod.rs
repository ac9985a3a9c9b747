//! Locks that services in other languages take, and Sexton's: never two holders at a time.
//!
//! Method: small programs in Node.js (`pg`), Python (`psycopg`, `django-pglock`) and on the JVM (JDBC) contend with the package
//! `sexton-guard` and with workers for the same keys and rows. Each holder writes, by the database's clock, when it began behind
//! the taking of the lock, and when it ended before the release; no two of these intervals may overlap. A language whose tools
//! are missing is reported as not tested.
//!
//! The JVM locks rows by the statements that ShedLock 7.9 sends with `usingDbTime()`, since its library is in no registry that
//! the machines reach; `tests/clients/locks/run.sh` says how to run the same tests with the library itself.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod contender;
mod contention;
mod fleet;
mod holders;
mod jobs;
mod moves;
mod outbox;

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use sexton_guard::{AdvisoryLocks, LockRow};
use sexton_tests::database::TestDatabase;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnection, PgPool};
use tokio::time::{Instant, sleep};

/// How long anything may take that only has to happen in the end.
const PATIENCE: Duration = Duration::from_mins(2);
/// For the packages of a language, and for its compiler on a machine that runs other tests.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(8);
/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The table of lock rows.
const LOCK_ROWS: &str = "sexton.lock_rows";

/// A database with the platform's schema, and what the contenders write.
struct Fixture {
    url: String,
    pool: PgPool,
    _db: Option<TestDatabase>,
}

/// A lock row of the table.
#[derive(Clone, PartialEq, Eq, Debug, sqlx::FromRow)]
struct Row {
    lock_until: NaiveDateTime,
    locked_at: NaiveDateTime,
    locked_by: String,
}

impl Fixture {
    async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        let f = Self::of(db.url()).await;
        Self { _db: Some(db), ..f }
    }

    /// On a database that somebody else drops.
    async fn of(url: &str) -> Self {
        let pool = PgPool::connect(url).await.unwrap();
        prepare(&pool).await;
        Self { url: url.to_owned(), pool, _db: None }
    }

    fn pool(&self) -> &PgPool {
        &self.pool
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    async fn locks(&self) -> AdvisoryLocks {
        AdvisoryLocks::connect(self.url.parse().unwrap()).await.unwrap()
    }

    async fn row(&self, name: &str) -> Row {
        let read = "SELECT lock_until, locked_at, locked_by FROM sexton.lock_rows WHERE name = $1";
        sqlx::query_as(read).bind(name).fetch_one(self.pool()).await.unwrap()
    }

    async fn now(&self) -> DateTime<Utc> {
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(self.pool()).await.unwrap()
    }
}

/// Creates what the contenders write, and lets nobody delete a lock row: ShedLock's library would never insert it again.
async fn prepare(pool: &PgPool) {
    sqlx::raw_sql(
        "CREATE TABLE held (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lock text NOT NULL, holder text NOT NULL,
             tick timestamptz, began timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz);
         CREATE TABLE refused (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lock text NOT NULL, holder text NOT NULL);
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'somebody deletes a lock row'; END $$;
         CREATE TRIGGER nobody_deletes BEFORE DELETE OR TRUNCATE ON sexton.lock_rows
             FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    )
    .execute(pool)
    .await
    .unwrap();
}

fn lock_row(name: &str, at_most: Duration) -> LockRow {
    LockRow::new(name, at_most).unwrap().table(LOCK_ROWS).unwrap()
}

/// Runs `check` until it answers.
async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    within(PATIENCE, what, check).await
}

async fn within<T>(patience: Duration, what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(answer) = check().await {
            return answer;
        }
        assert!(Instant::now() < end, "not within {patience:?}: {what}");
        sleep(POLL_INTERVAL).await;
    }
}
