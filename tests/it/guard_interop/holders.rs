//! Holders that die, and rows that stay locked for a while.

use std::time::Duration;

use chrono::TimeDelta;
use sexton_guard::Held;

use super::contender::{Contender, Contention};
use super::{Fixture, PATIENCE, Row, eventually, lock_row};

const ROW: &str = "tokenCleanup";

fn jvm<'a>(env: &'a [(&'a str, &'a str)]) -> Contention<'a> {
    Contention::of("java", "row", ROW).hold(env)
}

/// Tries until the row is this process's, and returns the row as it was before and as it is.
async fn acquire(f: &Fixture, before: Row) -> (Held, Row, Row) {
    let lock = lock_row(ROW, PATIENCE);
    let take = async || lock.try_acquire(f.pool()).await.unwrap();
    let held = eventually("the row is free", take).await;
    let row = f.row(ROW).await;
    (held, before, row)
}

#[tokio::test]
async fn a_killed_node_process_frees_its_key() {
    let f = Fixture::new().await;
    let contention = Contention::of("node", "advisory", "5101").hold(&[]);
    let Some(mut node) = Contender::start(&f.url, &contention).await else { return };
    node.holding().await;
    let locks = f.locks().await;
    assert!(locks.try_acquire(5101).await.unwrap().is_none(), "it holds the key");
    node.kill().await;
    let take = async || locks.try_acquire(5101).await.unwrap();
    let held = eventually("the key is free", take).await;
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_key_that_sexton_holds_is_refused_until_its_release() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let held = locks.try_acquire(5101).await.unwrap().unwrap();
    let contention = Contention::of("node", "advisory", "5101").hold(&[]);
    let Some(mut node) = Contender::start(&f.url, &contention).await else { return };
    refused(&f, "5101", 10).await;
    held.release().await.unwrap();
    node.holding().await;
    assert!(locks.try_acquire(5101).await.unwrap().is_none());
    node.end().await;
    let take = async || locks.try_acquire(5101).await.unwrap();
    eventually("the key is free", take).await.release().await.unwrap();
}

#[tokio::test]
async fn a_row_of_a_killed_jvm_is_locked_until_its_at_most_has_passed() {
    let f = Fixture::new().await;
    let contention = jvm(&[("AT_MOST_MS", "3000")]);
    let Some(mut jvm) = Contender::start(&f.url, &contention).await else { return };
    jvm.holding().await;
    jvm.kill().await;
    let (held, before, row) = acquire(&f, f.row(ROW).await).await;
    assert_eq!(before.locked_by, "java");
    assert_eq!(before.lock_until - before.locked_at, TimeDelta::seconds(3));
    assert!(row.locked_at >= before.lock_until, "{before:?} {row:?}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn sexton_respects_the_at_least_of_shedlock() {
    let f = Fixture::new().await;
    let contention = jvm(&[("AT_LEAST_MS", "2000")]);
    let Some(mut jvm) = Contender::start(&f.url, &contention).await else { return };
    jvm.holding().await;
    jvm.end().await;
    let (held, before, row) = acquire(&f, f.row(ROW).await).await;
    assert!(before.lock_until - before.locked_at >= TimeDelta::seconds(2), "{before:?}");
    assert!(row.locked_at >= before.lock_until, "{before:?} {row:?}");
    held.release().await.unwrap();
}

#[tokio::test]
async fn shedlock_respects_the_at_least_of_sexton() {
    let f = Fixture::new().await;
    let lock = lock_row(ROW, PATIENCE).at_least(Duration::from_secs(2)).unwrap();
    lock.try_acquire(f.pool()).await.unwrap().unwrap().release().await.unwrap();
    let before = f.row(ROW).await;
    assert!(before.lock_until - before.locked_at >= TimeDelta::seconds(2), "{before:?}");
    let Some(mut jvm) = Contender::start(&f.url, &jvm(&[])).await else { return };
    jvm.holding().await;
    let row = f.row(ROW).await;
    assert_eq!(row.locked_by, "java");
    assert!(row.locked_at >= before.lock_until, "{before:?} {row:?}");
    jvm.end().await;
}

/// Its `at_most` passes several times meanwhile.
#[tokio::test]
async fn a_row_that_sexton_extends_is_refused_to_shedlock() {
    let f = Fixture::new().await;
    let lock = lock_row(ROW, Duration::from_secs(1));
    let held = lock.try_acquire(f.pool()).await.unwrap().unwrap();
    let first = f.row(ROW).await;
    let Some(mut jvm) = Contender::start(&f.url, &jvm(&[])).await else { return };
    let is_extended = async || {
        (f.row(ROW).await.lock_until - first.lock_until > TimeDelta::seconds(2)).then_some(())
    };
    eventually("the row was extended again and again", is_extended).await;
    refused(&f, ROW, 10).await;
    assert!(!held.is_lost());
    let last = f.row(ROW).await;
    assert_eq!((&last.locked_by, last.locked_at), (&first.locked_by, first.locked_at));
    held.release().await.unwrap();
    jvm.holding().await;
    jvm.end().await;
}

/// Waits until the contender has been refused this often from now on.
async fn refused(f: &Fixture, lock: &str, count: i64) {
    let so_far = async || -> i64 {
        let refused = sqlx::query_scalar("SELECT count(*) FROM refused WHERE lock = $1").bind(lock);
        refused.fetch_one(f.pool()).await.unwrap()
    };
    let before = so_far().await;
    let is_enough = async || (so_far().await >= before + count).then_some(());
    eventually("the contender is refused", is_enough).await;
}
