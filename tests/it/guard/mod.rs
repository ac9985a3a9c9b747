//! Locks for fleets of services: the crate `sexton-guard` on a real PostgreSQL.
//!
//! Method: what each caller is answered, and when its work ran by the database's clock, is compared with what other sessions
//! can take. Processes are real ones that are killed and frozen; networks are cut by a proxy.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod cron;
mod death;
mod fuzz;
mod loss;
mod many;
mod pooler;
mod restored;
mod row;
mod row_table;
mod session;
mod ticks;
mod transaction;

use std::time::Duration;

use sexton_guard::AdvisoryLocks;
use sexton_tests::database::TestDatabase;
use sqlx::PgPool;
use sqlx::postgres::PgConnection;
use tokio::time::{Instant, sleep};

const KEY: i64 = 5101;
/// For what takes milliseconds on an idle machine, and less than the 12 seconds after which the server gives up a client
/// that is silent.
const SOON: Duration = Duration::from_secs(8);
/// For what such a silence brings about.
const PATIENCE: Duration = Duration::from_secs(40);

/// The rows that works of `lock-holder` write: from when until when they ran for certain, by answers of the database.
const RUNS: &str =
    "CREATE TABLE runs (id bigserial PRIMARY KEY, lock text NOT NULL, pid integer NOT NULL,
                                       began timestamptz NOT NULL, confirmed timestamptz NOT NULL,
                                       ended timestamptz NOT NULL)";

/// Pairs of works of one lock whose times overlap.
///
/// A work without a confirmed moment does not count: the row that a process sent before it was killed may be inserted, with
/// that time, when the next holder works already.
const OVERLAPS: &str = "SELECT count(*) FROM runs a JOIN runs b ON a.lock = b.lock AND a.id < b.id
                        AND a.began < b.confirmed AND b.began < a.confirmed
                        AND a.began < a.confirmed AND b.began < b.confirmed";

/// A database with the platform's schema, and no program.
struct Fixture {
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    /// The locks of another instance.
    async fn locks(&self) -> AdvisoryLocks {
        connect(self.db.url()).await
    }

    async fn run(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(self.pool()).await.unwrap();
    }

    async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.pool()).await.unwrap()
    }

    async fn is_free(&self, key: i64) -> bool {
        is_free(self.pool(), key).await
    }
}

async fn connect(url: &str) -> AdvisoryLocks {
    AdvisoryLocks::connect(url.parse().unwrap()).await.unwrap()
}

/// Whether some session could take the lock.
async fn is_free(pool: &PgPool, key: i64) -> bool {
    let mut tx = pool.begin().await.unwrap();
    let free = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(key);
    let free = free.fetch_one(&mut *tx).await.unwrap();
    tx.rollback().await.unwrap();
    free
}

/// The process id of the session that holds the lock of a key.
async fn holder(pool: &PgPool, key: i64) -> i32 {
    let holder =
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid::bigint = $1
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::query_scalar(holder).bind(key).fetch_one(pool).await.unwrap()
}

/// Ends a session as an operator does, and waits for its end.
async fn terminate(on: &mut PgConnection, pid: i32) {
    let end = sqlx::query_scalar("SELECT pg_terminate_backend($1, 20000)").bind(pid);
    let is_ended: bool = end.fetch_one(on).await.unwrap();
    assert!(is_ended, "the session {pid} goes on");
}

/// Waits for an event that another program brings about.
async fn eventually(what: &str, deadline: Duration, mut check: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !check().await {
        assert!(Instant::now() < end, "not within {deadline:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
