//! The lock of a pass: held while the pass lasts, and the state after a pass that lost it.
//!
//! A slow broker makes passes long: each of its answers is delayed.

use sexton_scheduler::background_loop::LoopError;
use sexton_tests::namespace::{TestNamespace, amqp_url};
use sexton_tests::proxy::Proxy;
use sqlx::AssertSqlSafe;

use super::*;

const LATE: Duration = Duration::from_millis(100);
/// The least time for each unknown message: it is copied and confirmed by itself.
const EACH: Duration = Duration::from_millis(200);

/// Only of the connection that holds the lock: while it is being taken, there is a transaction without it.
const HOLDER: &str = "FROM pg_stat_activity a
    WHERE datname = current_database() AND state = 'idle in transaction'
        AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted)";

/// A failed queue of unknown messages, behind a proxy that must outlive it.
async fn foreign_messages(proxy: &Proxy, count: u32) -> Fixture {
    let namespace = TestNamespace::on(&proxy.url(&amqp_url()));
    let link = namespace.link().await;
    let f = Fixture::with(namespace, link).await;
    for _ in 0..count {
        put(&f, Some("foreign"), None, "{}").await;
    }
    f
}

/// How long the connection that holds the lock has been idle, in milliseconds.
async fn lock_idles(f: &Fixture) -> Option<i64> {
    let idle = "SELECT (extract(epoch FROM clock_timestamp() - state_change) * 1000)::bigint";
    let idle = AssertSqlSafe(format!("{idle} {HOLDER}"));
    sqlx::query_scalar(idle).fetch_optional(f.db.pool()).await.unwrap()
}

/// Ends the connection that holds the lock, as soon as there is one.
async fn end_lock(f: &Fixture) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while lock_idles(f).await.is_none() {
        assert!(Instant::now() < deadline, "a pass begins");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let end = AssertSqlSafe(format!("SELECT pg_terminate_backend(pid) {HOLDER}"));
    sqlx::query(end).execute(f.db.pool()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_is_confirmed_also_where_no_message_has_a_row() {
    let proxy = Proxy::before(&amqp_url()).await.unwrap();
    // In one batch.
    let count = 60;
    let f = foreign_messages(&proxy, count).await;
    proxy.delay(LATE);
    let sweep = sweep(&f);
    let mut longest = 0;
    let began = Instant::now();
    let with_limits = async {
        loop {
            longest = longest.max(lock_idles(&f).await.unwrap_or_default());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let tally = tokio::select! {
        tally = pass_of(&sweep) => tally,
        () = with_limits => unreachable!("it never ends"),
    };
    assert_eq!((tally.unknown, tally.complete), (u64::from(count), true));
    assert!(began.elapsed() >= EACH * count, "the pass is too short to tell");
    assert!((1..8_000).contains(&longest), "the lock idled for {longest} ms");
    proxy.pass();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_that_loses_its_lock_in_the_middle_is_not_begun_again_at_once() {
    let proxy = Proxy::before(&amqp_url()).await.unwrap();
    let f = foreign_messages(&proxy, 25).await;
    proxy.delay(LATE);
    let sweep = sweep(&f);
    let (broke_off, ()) = tokio::join!(sweep.run_once(now(100)), end_lock(&f));
    assert!(matches!(broke_off, Err(LoopError::Store(_))), "{broke_off:?}");
    proxy.pass();
    assert_eq!(sweep.run_once(now(100)).await.unwrap(), SweepReport::BackingOff);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_that_loses_its_lock_at_the_end_was_made() {
    let proxy = Proxy::before(&amqp_url()).await.unwrap();
    let f = foreign_messages(&proxy, 1).await;
    proxy.delay(LATE);
    let sweep = sweep(&f);
    let (tally, ()) = tokio::join!(pass_of(&sweep), end_lock(&f));
    assert_eq!((tally.unknown, tally.complete), (1, true));
    proxy.pass();
    assert_eq!(sweep.run_once(now(100)).await.unwrap(), SweepReport::NotDue);
}
