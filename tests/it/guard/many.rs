//! Many instances at once: one wins, the others are answered at once, and each answer is one round trip.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use sexton_guard::{AdvisoryLocks, CREATE_SHEDLOCK, Held, LockRow, Run};
use sexton_tests::proxy::Proxy;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::time::Instant;

use super::{Fixture, KEY, connect};

const INSTANCES: usize = 100;

/// How the server ends each answer of one row. The pings of a pool have none.
const ONE_ROW: &[u8] = b"SELECT 1\0";

/// A thousand with `GUARD_ROUNDS=1000`, for the full proof.
fn rounds() -> usize {
    std::env::var("GUARD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100)
}

/// The time that 99 of 100 calls stay below.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_instances_one_wins_each_round_and_nobody_waits() {
    let f = Fixture::new().await;
    let options: Vec<_> = (0..INSTANCES).map(|_| f.db.url().parse().unwrap()).collect();
    let mut fleet: Vec<AdvisoryLocks> = Vec::new();
    for options in options.chunks(10) {
        let connecting = options.iter().cloned().map(AdvisoryLocks::connect);
        fleet.extend(try_join_all(connecting).await.unwrap());
    }
    let mut times = Vec::new();
    for round in 0..rounds() {
        let calls = fleet.iter().map(async |locks| {
            let began = Instant::now();
            (locks.try_acquire(KEY).await.unwrap(), began.elapsed())
        });
        let (held, took): (Vec<Option<Held>>, Vec<Duration>) =
            join_all(calls).await.into_iter().unzip();
        times.extend(took);
        let held: Vec<Held> = held.into_iter().flatten().collect();
        assert_eq!(held.len(), 1, "round {round}");
        for held in held {
            held.release().await.unwrap();
        }
    }
    println!(
        "MEASURED p99 of {} calls of {INSTANCES} instances at once: {:?}",
        times.len(),
        p99(times)
    );
    // One after the other, as on an idle machine.
    let held = fleet[0].try_acquire(KEY).await.unwrap().unwrap();
    let mut times = Vec::new();
    for locks in fleet.iter().skip(1).cycle().take(1_000) {
        let began = Instant::now();
        assert!(locks.try_acquire(KEY).await.unwrap().is_none());
        times.push(began.elapsed());
    }
    println!("MEASURED p99 of the answer to a loser, alone: {:?}", p99(times));
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_callers_one_gets_the_row_each_round() {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let pool = PgPoolOptions::new().max_connections(20).connect(f.db.url()).await.unwrap();
    let locks: Vec<_> =
        (0..INSTANCES).map(|_| LockRow::new("a", Duration::from_mins(1)).unwrap()).collect();
    for round in 0..rounds() / 4 {
        let held = join_all(locks.iter().map(|lock| lock.try_acquire(&pool))).await;
        let held: Vec<Held> = held.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(held.len(), 1, "round {round}");
        for held in held {
            held.release().await.unwrap();
        }
    }
    pool.close().await;
}

#[tokio::test]
async fn a_guard_is_two_round_trips_and_a_loser_is_answered_by_one() {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let proxy = Proxy::before_counting(f.db.url(), ONE_ROW).await.unwrap();
    let url = proxy.url(f.db.url());
    let locks = connect(&url).await;
    let before = proxy.matches();
    assert_eq!(locks.try_run(KEY, async |_| 1).await.unwrap(), Run::Done(1));
    assert_eq!(proxy.matches() - before, 2, "a lock of a session");
    let other = f.locks().await;
    let held = other.try_acquire(KEY).await.unwrap().unwrap();
    let before = proxy.matches();
    assert_eq!(locks.try_run(KEY, async |_| 1).await.unwrap(), Run::Busy);
    assert_eq!(proxy.matches() - before, 1, "a loser");
    held.release().await.unwrap();
    let before = proxy.matches();
    let held = locks.try_acquire(KEY).await.unwrap().unwrap();
    assert_eq!(locks.try_run(KEY, async |_| 1).await.unwrap(), Run::Busy);
    assert_eq!(proxy.matches() - before, 1, "what this process has needs none");
    held.release().await.unwrap();

    let pool = PgPool::connect(&url).await.unwrap();
    let row = LockRow::new("a", Duration::from_mins(1)).unwrap();
    // The first call checks the table.
    assert_eq!(row.try_run(&pool, async |_| 1).await.unwrap(), Run::Done(1));
    let before = proxy.matches();
    assert_eq!(row.try_run(&pool, async |_| 1).await.unwrap(), Run::Done(1));
    assert_eq!(proxy.matches() - before, 2, "a row");
    let held = row.try_acquire(f.pool()).await.unwrap().unwrap();
    let before = proxy.matches();
    assert_eq!(row.try_run(&pool, async |_| 1).await.unwrap(), Run::Busy);
    assert_eq!(proxy.matches() - before, 1, "a loser of a row");
    held.release().await.unwrap();
}
