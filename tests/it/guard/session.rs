//! Locks of a session: who gets them, and when they are free again.

use std::time::Duration;

use sexton_guard::{Key, LockError, Run};
use sexton_tests::proxy::Proxy;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Fixture, KEY, SOON, connect, eventually, is_free};

#[tokio::test]
async fn of_several_instances_one_has_the_lock_until_it_releases_it() {
    let f = Fixture::new().await;
    let (a, b) = (f.locks().await, f.locks().await);
    let held = a.try_acquire(KEY).await.unwrap().unwrap();
    assert!(b.try_acquire(KEY).await.unwrap().is_none());
    assert!(!f.is_free(KEY).await, "PostgreSQL's own lock, which other languages take");
    assert!(!held.is_lost());
    held.release().await.unwrap();
    let held = b.try_acquire(KEY).await.unwrap().unwrap();
    assert!(a.try_acquire(KEY).await.unwrap().is_none());
    drop(held);
    eventually("a lock that was dropped is free", SOON, async || f.is_free(KEY).await).await;
}

#[tokio::test]
async fn a_process_does_not_get_a_key_that_it_has() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let clone = locks.clone();
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert!(clone.try_acquire(KEY).await.unwrap().is_none(), "PostgreSQL would give it again");
    assert_eq!(clone.try_run(KEY, |_| async {}).await.unwrap(), Run::Busy);
    // Keys beside it are of no concern.
    let other = locks.try_acquire(KEY + 1).await.unwrap().unwrap();
    held.release().await.unwrap();
    assert!(f.is_free(KEY).await, "it was taken once, and one release was enough");
    assert!(!f.is_free(KEY + 1).await);
    other.release().await.unwrap();
    // At once after a drop: the call stands behind the release.
    for _ in 0..50 {
        drop(locks.try_acquire(KEY).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn a_number_and_a_pair_are_two_keys_and_every_key_can_be_taken() {
    let f = Fixture::new().await;
    let (a, b) = (f.locks().await, f.locks().await);
    let pairs = [Key::Pair(0, 5101), Key::Pair(i32::MIN, i32::MAX), Key::Pair(-1, i32::MIN)];
    let keys = [Key::Number(5101), Key::Number(i64::MIN), Key::Number(i64::MAX), Key::Number(-1)];
    let mut held = Vec::new();
    for key in keys.into_iter().chain(pairs) {
        held.push(a.try_acquire(key).await.unwrap().unwrap());
        assert!(b.try_acquire(key).await.unwrap().is_none(), "{key}");
    }
    assert_eq!(f.count("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").await, 7);
    let sessions = "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory'
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(f.count(sessions).await, 1, "one connection carries all keys");
    for held in held {
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn work_runs_under_the_lock_and_whatever_ends_it_releases_it() {
    let f = Fixture::new().await;
    let (a, b) = (f.locks().await, f.locks().await);
    let beside = async |_| b.try_acquire(KEY).await.unwrap().is_none();
    assert_eq!(a.try_run(KEY, beside).await.unwrap(), Run::Done(true));
    assert!(f.is_free(KEY).await);
    // A panic.
    let locks = a.clone();
    let panics = tokio::spawn(async move {
        let work = async |_| -> () { panic!("a mistake of the work") };
        locks.try_run(KEY, work).await
    });
    assert!(panics.await.unwrap_err().is_panic());
    eventually("free after a panic", SOON, async || f.is_free(KEY).await).await;
    // A caller that stops waiting.
    let begun = Notify::new();
    let hang = async |_| {
        begun.notify_one();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = a.try_run(KEY, hang) => panic!("it hangs"),
        () = begun.notified() => {}
    }
    eventually("free after its caller has gone", SOON, async || f.is_free(KEY).await).await;
}

/// The server takes the lock, and the caller has stopped waiting by then.
#[tokio::test]
async fn a_caller_that_stops_waiting_for_the_answer_leaves_no_lock() {
    let f = Fixture::new().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let locks = connect(&proxy.url(f.db.url())).await;
    proxy.delay(Duration::from_millis(300));
    for key in KEY..KEY + 3 {
        timeout(Duration::from_millis(50), locks.try_acquire(key)).await.unwrap_err();
    }
    proxy.pass();
    // Behind what the calls before have left.
    let held = locks.try_acquire(KEY + 3).await.unwrap().unwrap();
    for key in KEY..KEY + 3 {
        eventually("free", SOON, async || f.is_free(key).await).await;
    }
    let again = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert!(!f.is_free(KEY).await);
    again.release().await.unwrap();
    held.release().await.unwrap();
    assert!(f.is_free(KEY).await);
}

#[tokio::test]
async fn the_connection_ends_with_the_last_clone_and_the_last_lock() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let clone = locks.clone();
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    drop((locks, clone));
    assert!(!f.is_free(KEY).await && !held.is_lost(), "the lock outlives the handles");
    held.release().await.unwrap();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND query LIKE '%pg_advisory_unlock%' AND pid <> pg_backend_pid()";
    let is_gone = async || f.count(sessions).await == 0;
    eventually("the connection is closed", SOON, is_gone).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_an_error_with_the_reason_and_the_next_call_connects() {
    let f = Fixture::new().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let url = proxy.url(f.db.url());
    let locks = connect(&url).await;
    proxy.cut();
    // Those that wait together fail together, not one connection's time after the other.
    let calls = (0..20).map(|key| locks.try_acquire(key));
    let answers = futures_util::future::join_all(calls);
    for answer in timeout(Duration::from_secs(15), answers).await.unwrap() {
        assert!(matches!(answer.unwrap_err(), LockError::Database(_)));
    }
    proxy.pass();
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert!(!is_free(f.pool(), KEY).await);
    held.release().await.unwrap();
    let missing = f.db.url().replace("sexton_test_", "sexton_absent_").parse().unwrap();
    let error = sexton_guard::AdvisoryLocks::connect(missing).await.unwrap_err().to_string();
    assert!(error.contains("does not exist"), "{error}");
}
