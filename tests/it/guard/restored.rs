//! A server that was restored from an older copy takes the place of the one that the holders know, behind the same address.

use std::time::Duration;

use chrono::{DateTime, Timelike as _, Utc};
use sexton_guard::{AdvisoryLocks, CREATE_SHEDLOCK, LockRow, Run};
use sexton_servers::{PostgresOptions, PostgresServer};
use sexton_tests::database::TestDatabase;
use sexton_tests::proxy::Proxy;
use sqlx::PgPool;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::{Fixture, KEY, PATIENCE, SOON, connect};

/// How long an answer proves a session's lock (`docs/reference/locks.md`).
const CERTAIN_FOR: Duration = Duration::from_secs(8);

/// A server of its own, and a copy of it that knows no tick and no row.
async fn backed_up() -> (PostgresServer, Fixture) {
    let mut server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let f = Fixture { db: TestDatabase::create_on(server.url()).await.unwrap() };
    f.run(CREATE_SHEDLOCK).await;
    server.back_up().await.unwrap();
    // The backup restarts the server, so the pool's connection is dead; the first use finds out.
    let reconnects = async { while sqlx::query("SELECT 1").execute(f.pool()).await.is_err() {} };
    timeout(SOON, reconnects).await.expect("the restarted server does not answer");
    (server, f)
}

/// A lock that somebody takes as soon as a server lets him, and when that was.
async fn taken_at(url: String) -> (Instant, AdvisoryLocks, sexton_guard::Held) {
    loop {
        let Ok(locks) = AdvisoryLocks::connect(url.parse().unwrap()).await else { continue };
        if let Ok(Some(held)) = locks.try_acquire(KEY).await {
            return (Instant::now(), locks, held);
        }
    }
}

/// Says when it is dropped.
struct Ends(Option<oneshot::Sender<Instant>>);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(Instant::now());
    }
}

/// A work under the key that goes on until its lock is lost; when it ended.
async fn work(locks: AdvisoryLocks) -> oneshot::Receiver<Instant> {
    let (ends, ended) = oneshot::channel();
    let (begins, begun) = oneshot::channel();
    tokio::spawn(async move {
        let run = locks.try_run(KEY, async move |_| {
            let _ends = Ends(Some(ends));
            begins.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        assert_eq!(run.await.unwrap(), Run::Lost);
    });
    begun.await.unwrap();
    ended
}

#[tokio::test]
async fn work_under_a_session_s_lock_ends_before_another_takes_it_on_the_restored_server() {
    let (mut server, f) = backed_up().await;
    let ended = work(f.locks().await).await;
    let taking = tokio::spawn(taken_at(f.db.url().to_owned()));
    server.restore().await.unwrap();
    let (taken_at, _locks, held) = timeout(PATIENCE, taking).await.unwrap().unwrap();
    let ended_at = timeout(PATIENCE, ended).await.unwrap().unwrap();
    assert!(ended_at < taken_at, "it ended {:?} after that", ended_at - taken_at);
    assert!(!held.is_lost());
    held.release().await.unwrap();
    server.end().await.unwrap();
}

/// The old server's end is no news to a holder whose packets go nowhere, as when another host takes the address over.
#[tokio::test]
async fn a_holder_that_hears_nothing_of_the_failover_ends_its_work_when_its_proof_is_old() {
    let (mut server, f) = backed_up().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let ended = work(connect(&proxy.url(f.db.url())).await).await;
    let cut_at = Instant::now();
    proxy.black_hole();
    server.restore().await.unwrap();
    // The new server knows no locks, so it has to be kept from the others for as long as the proof lasts.
    let (_, _locks, held) = timeout(PATIENCE, taken_at(f.db.url().to_owned())).await.unwrap();
    let ended_at = timeout(PATIENCE, ended).await.unwrap().unwrap();
    let after = ended_at - cut_at;
    println!("MEASURED the work ended {after:?} after the failover");
    // Not before a second attempt to hear something, and within the proof, by a busy machine's timers.
    assert!(after < CERTAIN_FOR + Duration::from_secs(1), "{after:?}");
    held.release().await.unwrap();
    server.end().await.unwrap();
}

#[tokio::test]
async fn a_row_and_a_tick_that_the_restored_server_does_not_know_are_taken_again_and_the_holder_learns_of_it()
 {
    let (mut server, f) = backed_up().await;
    let row = LockRow::new("reports", Duration::from_secs(6)).unwrap();
    let held = row.try_acquire(f.pool()).await.unwrap().unwrap();
    let now: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(f.pool()).await.unwrap();
    let tick = now.with_nanosecond(0).unwrap();
    let fires = async || {
        let locks = f.locks().await;
        locks.try_run_tick(KEY, tick, async |_| Ok::<_, String>(())).await.unwrap()
    };
    assert_eq!(fires().await, Run::Done(Ok(())));
    assert_eq!(fires().await, Run::Busy, "it has run");

    server.restore().await.unwrap();
    let pool = PgPool::connect(f.db.url()).await.unwrap();
    let next = row.try_acquire(&pool).await.unwrap();
    let next = next.expect("the copy is from before the row was taken");
    // At the next extension, a third of at_most, though the pool has to connect again.
    timeout(SOON, held.lost().cancelled()).await.expect("the holder does not notice");
    held.release().await.unwrap_err();
    assert!(!next.is_lost());
    next.release().await.unwrap();
    assert_eq!(fires().await, Run::Done(Ok(())), "the tick runs again");
    assert_eq!(fires().await, Run::Busy);
    pool.close().await;
    server.end().await.unwrap();
}
