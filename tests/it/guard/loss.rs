//! What happens when the connection of the locks is lost: the work ends first.

use std::time::Duration;

use sexton_guard::{AdvisoryLocks, LockError, Run};
use sexton_servers::{PostgresOptions, PostgresServer};
use sexton_tests::database::TestDatabase;
use sexton_tests::proxy::Proxy;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnection, PgPool};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::{Fixture, KEY, PATIENCE, SOON, connect, eventually, holder, is_free, terminate};

/// Works without end under `count` keys, which began.
async fn hang(locks: &AdvisoryLocks, count: i64) -> Vec<JoinHandle<Run<()>>> {
    let (began, mut begins) = mpsc::unbounded_channel();
    let works = (KEY..KEY + count).map(|key| {
        let (locks, began) = (locks.clone(), began.clone());
        tokio::spawn(async move {
            let work = async |_| {
                began.send(()).unwrap();
                std::future::pending::<()>().await;
            };
            locks.try_run(key, work).await.unwrap()
        })
    });
    let works: Vec<_> = works.collect();
    for _ in 0..count {
        begins.recv().await.unwrap();
    }
    works
}

async fn all_lost(works: Vec<JoinHandle<Run<()>>>, deadline: Duration) {
    let end = Instant::now() + deadline;
    for work in works {
        let ended = tokio::time::timeout_at(end, work).await;
        assert_eq!(ended.expect("the work goes on").unwrap(), Run::Lost);
    }
}

/// Within the time of a ping or less: the connection is watched.
#[tokio::test]
async fn a_session_that_the_server_ends_cancels_all_its_works_and_the_next_call_connects() {
    let f = Fixture::new().await;
    let (locks, other) = (f.locks().await, f.locks().await);
    let works = hang(&locks, 10).await;
    let pid = holder(f.pool(), KEY).await;
    terminate(&mut f.pool().acquire().await.unwrap(), pid).await;
    all_lost(works, SOON).await;
    let held = other.try_acquire(KEY).await.unwrap().unwrap();
    assert!(locks.try_acquire(KEY).await.unwrap().is_none(), "on a new connection");
    held.release().await.unwrap();
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert!(!held.is_lost());
    held.release().await.unwrap();
}

/// The connection is watched: a ping is two seconds after the lock was taken.
#[tokio::test]
async fn the_end_of_a_session_is_noticed_long_before_the_next_ping() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let held = locks.try_acquire(KEY).await.unwrap().unwrap();
        let pid = holder(f.pool(), KEY).await;
        let began = Instant::now();
        terminate(&mut f.pool().acquire().await.unwrap(), pid).await;
        timeout(SOON, held.lost().cancelled()).await.unwrap();
        times.push(began.elapsed());
        drop(held);
    }
    times.sort();
    println!("MEASURED the end of a session is noticed after {times:?}");
    assert!(times[2] < Duration::from_secs(1), "{times:?}");
}

/// As long as a lost lock's work has not ended, nobody in this process begins it again.
#[tokio::test]
async fn a_key_is_refused_in_the_process_until_the_work_of_its_lost_lock_has_ended() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    let pid = holder(f.pool(), KEY).await;
    terminate(&mut f.pool().acquire().await.unwrap(), pid).await;
    timeout(SOON, held.lost().cancelled()).await.unwrap();
    assert!(held.is_lost());
    assert!(f.is_free(KEY).await);
    assert!(locks.try_acquire(KEY).await.unwrap().is_none(), "the work has not ended");
    held.release().await.unwrap_err();
    locks.try_acquire(KEY).await.unwrap().unwrap().release().await.unwrap();
}

/// The server learns nothing, as when the network is cut, and still holds the lock when the work has ended.
#[tokio::test]
async fn a_network_that_is_cut_ends_the_work_before_the_server_frees_the_lock() {
    let f = Fixture::new().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let locks = connect(&proxy.url(f.db.url())).await;
    let works = hang(&locks, 3).await;
    let held = locks.try_acquire(KEY + 3).await.unwrap().unwrap();
    let began = Instant::now();
    proxy.black_hole();
    timeout(PATIENCE, held.lost().cancelled()).await.unwrap();
    println!("MEASURED lost {:?} after the network was cut", began.elapsed());
    all_lost(works, SOON).await;
    assert!(!f.is_free(KEY).await && !f.is_free(KEY + 3).await, "the server waits longer");
    // The client closes the connection when all works have ended, and the proxy passes that on.
    drop(held);
    eventually("the connection is closed", SOON, async || f.is_free(KEY + 3).await).await;
    proxy.pass();
    locks.try_acquire(KEY).await.unwrap().unwrap().release().await.unwrap();
}

/// The server's side of a connection whose client is cut off has these times, shorter than the kernel's two hours.
#[tokio::test]
async fn the_server_probes_a_silent_client_of_the_locks_within_seconds() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    let pid = holder(f.pool(), KEY).await;
    let port: i32 = sqlx::query_scalar("SELECT client_port FROM pg_stat_activity WHERE pid = $1")
        .bind(pid)
        .fetch_one(f.pool())
        .await
        .unwrap();
    // Another timer runs while an answer is not acknowledged.
    let probes = async || keepalive_wait(f.db.url(), port).is_some_and(|wait| wait <= SIX_SECONDS);
    eventually("the server is about to probe the client", SOON, probes).await;
    held.release().await.unwrap();
}

const SIX_SECONDS: Duration = Duration::from_secs(6);

/// The time until the server's next probe of a client at `port`, as this machine's kernel shows it.
fn keepalive_wait(url: &str, port: i32) -> Option<Duration> {
    let (_, server) = url.rsplit_once('@')?;
    let server: u16 = server.split('/').next()?.rsplit_once(':')?.1.parse().ok()?;
    let sockets = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let row =
        sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| {
            let ends = |row: &[&str], index: usize, port: i64| {
                row.get(index).is_some_and(|address| address.ends_with(&format!(":{port:04X}")))
            };
            ends(row, 1, i64::from(server)) && ends(row, 2, i64::from(port))
        })?;
    // "02:…" is the timer of probes, and the hundredths of a second that are left.
    let hundredths = row.get(5)?.strip_prefix("02:")?;
    Some(Duration::from_millis(u64::from_str_radix(hundredths, 16).ok()? * 10))
}

/// A fail-over: the locks of the old server are worth nothing on the new one.
#[tokio::test]
async fn a_restored_server_knows_no_locks_and_the_works_under_the_old_ones_have_ended() {
    let options = PostgresOptions::default();
    let mut server = PostgresServer::start_private(options).await.unwrap();
    let locks = connect(server.url()).await;
    let works = hang(&locks, 3).await;
    server.kill().await.unwrap();
    all_lost(works, SOON).await;
    assert!(matches!(locks.try_acquire(KEY).await.unwrap_err(), LockError::Database(_)));
    server.wipe().await.unwrap();
    let pool = PgPool::connect(server.url()).await.unwrap();
    assert!(is_free(&pool, KEY).await);
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert!(!is_free(&pool, KEY).await);
    held.release().await.unwrap();
    pool.close().await;
    server.end().await.unwrap();
}

/// A frozen server answers nothing, and cannot free the locks either.
#[tokio::test]
async fn a_server_that_is_frozen_costs_the_locks_and_none_is_left_when_it_wakes() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let locks = connect(server.url()).await;
    let works = hang(&locks, 3).await;
    server.pause().await.unwrap();
    all_lost(works, PATIENCE).await;
    server.resume().await.unwrap();
    let pool = PgPool::connect(server.url()).await.unwrap();
    eventually("free", PATIENCE, async || is_free(&pool, KEY).await).await;
    locks.try_acquire(KEY).await.unwrap().unwrap().release().await.unwrap();
    pool.close().await;
    server.end().await.unwrap();
}

/// Somebody has taken the lock away, as a pooler does that resets sessions. Whether another had it meanwhile is unknown.
#[tokio::test]
async fn a_release_that_finds_no_lock_says_so_and_costs_the_other_locks_of_the_session() {
    let db = TestDatabase::create().await.unwrap();
    // In place of the server's own function, which a session prefers only because of its schema.
    let mut admin = PgConnection::connect(db.url()).await.unwrap();
    sqlx::raw_sql(
        "CREATE SCHEMA faulty;
         CREATE FUNCTION faulty.pg_advisory_unlock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let url = format!("{}?options=-csearch_path%3Dfaulty,pg_catalog", db.url());
    let locks = connect(&url).await;
    let other = locks.try_acquire(KEY + 1).await.unwrap().unwrap();
    assert_eq!(locks.try_run(KEY, async |_| 7).await.unwrap(), Run::Uncertain(7));
    assert!(other.is_lost());
    other.release().await.unwrap_err();
}
