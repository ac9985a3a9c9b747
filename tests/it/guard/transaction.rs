//! Locks of a transaction: they end with what the work has written.

use std::time::Duration;

use sexton_client::{Client, Enqueue};
use sexton_guard::{Key, TransactionLock};
use sexton_tests::factory::NewJob;
use sexton_tests::proxy::Proxy;
use sqlx::Row as _;
use sqlx::postgres::PgPoolOptions;
use tokio::time::timeout;

use super::{Fixture, KEY, SOON, eventually, holder, terminate};

const WRITTEN: &str =
    "SELECT (SELECT count(*) FROM written) * 1000 + (SELECT count(*) FROM sexton.executions)";

async fn fixture() -> Fixture {
    let f = Fixture::new().await;
    NewJob::new("a.b").insert(f.pool()).await.unwrap();
    f.run("CREATE TABLE written (id bigserial)").await;
    f
}

async fn write(tx: &mut sqlx::PgConnection) {
    sqlx::query("INSERT INTO written DEFAULT VALUES").execute(&mut *tx).await.unwrap();
    Client::new().enqueue(tx, &Enqueue::new("a.b")).await.unwrap();
}

#[tokio::test]
async fn writes_enqueues_and_lock_end_together() {
    let f = fixture().await;
    let lock = TransactionLock::new(KEY);
    // A rollback, as by an error of the work.
    let mut tx = lock.try_begin(f.pool()).await.unwrap().unwrap();
    write(&mut tx).await;
    assert!(lock.try_begin(f.pool()).await.unwrap().is_none());
    assert!(f.locks().await.try_acquire(KEY).await.unwrap().is_none(), "a session's is the same");
    drop(tx);
    eventually("free after a rollback", SOON, async || f.is_free(KEY).await).await;
    assert_eq!(f.count(WRITTEN).await, 0);
    // The end of the connection: nothing is written, so the next holder does not do it again.
    let mut tx = lock.try_begin(f.pool()).await.unwrap().unwrap();
    write(&mut tx).await;
    let pid = holder(f.pool(), KEY).await;
    terminate(&mut f.pool().acquire().await.unwrap(), pid).await;
    assert!(f.is_free(KEY).await);
    tx.commit().await.unwrap_err();
    assert_eq!(f.count(WRITTEN).await, 0);
    // A commit.
    let mut tx = lock.try_begin(f.pool()).await.unwrap().unwrap();
    write(&mut tx).await;
    tx.commit().await.unwrap();
    assert!(f.is_free(KEY).await);
    assert_eq!(f.count(WRITTEN).await, 1_001);
    // A pair of the same number is another lock.
    let pair = TransactionLock::new(Key::Pair(0, 5101)).try_begin(f.pool()).await.unwrap().unwrap();
    assert!(f.is_free(KEY).await);
    pair.rollback().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_open_takes_the_lock_and_gives_it_back_at_its_end() {
    let f = fixture().await;
    let mut tx = f.pool().begin().await.unwrap();
    assert!(TransactionLock::new(KEY).try_lock(&mut tx).await.unwrap());
    assert!(!f.is_free(KEY).await);
    tx.commit().await.unwrap();
    assert!(f.is_free(KEY).await);
}

/// A client that is cut off would hold the lock for two hours with the kernel's times.
#[tokio::test]
async fn the_server_probes_a_client_only_while_the_transaction_lasts() {
    let f = fixture().await;
    let mut connection = f.pool().acquire().await.unwrap();
    let settings = "SELECT current_setting('tcp_keepalives_idle') || ' ' || current_setting('tcp_user_timeout')";
    let before: String = sqlx::query_scalar(settings).fetch_one(&mut *connection).await.unwrap();
    sqlx::query("BEGIN").execute(&mut *connection).await.unwrap();
    assert!(TransactionLock::new(KEY).try_lock(&mut connection).await.unwrap());
    let during: String = sqlx::query_scalar(settings).fetch_one(&mut *connection).await.unwrap();
    assert_eq!(during, "6 12000");
    sqlx::query("COMMIT").execute(&mut *connection).await.unwrap();
    let after: String = sqlx::query_scalar(settings).fetch_one(&mut *connection).await.unwrap();
    assert_ne!(before, during);
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_neither_a_lock_nor_an_open_transaction() {
    let f = fixture().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let url = proxy.url(f.db.url());
    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await.unwrap();
    proxy.delay(Duration::from_millis(100));
    let lock = TransactionLock::new(KEY);
    for wait_ms in [20, 150, 320, 450] {
        let wait = Duration::from_millis(wait_ms);
        timeout(wait, lock.try_begin(&pool)).await.map(drop).ok();
    }
    proxy.pass();
    // The only connection of the pool, and it is in no transaction.
    let mut connection = pool.acquire().await.unwrap();
    let is_open = sqlx::raw_sql("SELECT now() <> statement_timestamp() AS is_open");
    let row = is_open.fetch_one(&mut *connection).await.unwrap();
    assert!(!row.get::<bool, _>("is_open"));
    assert!(f.is_free(KEY).await);
}
