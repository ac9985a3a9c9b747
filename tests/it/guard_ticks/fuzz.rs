//! Many instances, some of which die, with clocks that are seconds and an hour apart: no tick runs twice, and no two runs
//! of a key overlap.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use sqlx::postgres::PgConnection;

use super::{Fixture, KEY, guard_done, guard_try};

const INSTANCES: u64 = 32;
const ROUNDS: i64 = 100;
/// Seconds by which the clocks of the instances differ from the database's.
const SKEWS_S: [i64; 8] = [0, 0, 5, -5, 3_600, -3_600, 1, -2];

/// Numbers that a seed decides (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[tokio::test]
async fn no_tick_runs_twice_and_no_two_runs_of_a_key_overlap() {
    let seed: u64 =
        std::env::var("GUARD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("GUARD_SEED={seed}");
    let f = Fixture::new().await;
    sqlx::raw_sql(
        "CREATE TABLE runs (id bigserial, key bigint, tick timestamptz, began timestamptz, ended timestamptz)",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    // Every skew is within what is accepted, until the last round.
    let base = f.minute().await - TimeDelta::minutes(70);
    let won: u64 = join_all((0..INSTANCES).map(|instance| {
        let numbers = Numbers(seed.wrapping_mul(2 * instance + 1) | 1);
        run(&f, instance, base, numbers)
    }))
    .await
    .into_iter()
    .sum();
    // By what the instances did, measured by the database while they held the lock.
    assert_eq!(f.count("SELECT count(*) FROM runs").await.unsigned_abs(), won);
    assert!(won > 100, "only {won} ticks ran");
    let twice = "SELECT count(*) FROM (SELECT FROM runs GROUP BY key, tick HAVING count(*) > 1) t";
    assert_eq!(f.count(twice).await, 0, "a tick ran twice; GUARD_SEED={seed}");
    let overlaps = "SELECT count(*) FROM runs a JOIN runs b ON a.key = b.key AND a.id < b.id
                    AND a.began < b.ended AND b.began < a.ended";
    assert_eq!(f.count(overlaps).await, 0, "two runs overlap; GUARD_SEED={seed}");
    assert_eq!(f.count("SELECT count(*) FROM sexton.guard_ticks").await.unsigned_abs(), won);
}

/// One instance: at each of its ticks it tries, works and ends, or dies and comes back.
async fn run(f: &Fixture, instance: u64, base: DateTime<Utc>, mut numbers: Numbers) -> u64 {
    let skew = SKEWS_S[(instance % SKEWS_S.len() as u64) as usize];
    let mut session = f.connect().await;
    let mut won = 0;
    for round in 0..ROUNDS {
        let key = KEY + (numbers.below(3) as i64);
        let tick = base + TimeDelta::seconds(round + skew);
        if !guard_try(&mut session, key, tick).await.unwrap() {
            // So that not all ticks pass while one instance works.
            work(&mut session, numbers.below(8)).await;
            continue;
        }
        won += 1;
        let id = begin(&mut session, key, tick).await;
        work(&mut session, numbers.below(4)).await;
        sqlx::query("UPDATE runs SET ended = clock_timestamp() WHERE id = $1")
            .bind(id)
            .execute(&mut session)
            .await
            .unwrap();
        if numbers.below(20) == 0 {
            let died = sqlx::query("SELECT pg_terminate_backend(pg_backend_pid())");
            died.execute(&mut session).await.unwrap_err();
            session = f.connect().await;
        } else {
            assert!(guard_done(&mut session, key, tick, "succeeded").await.unwrap());
        }
    }
    won
}

async fn work(session: &mut PgConnection, statements: u64) {
    for _ in 0..statements {
        sqlx::query("SELECT 1").execute(&mut *session).await.unwrap();
    }
}

async fn begin(session: &mut PgConnection, key: i64, tick: DateTime<Utc>) -> i64 {
    sqlx::query_scalar(
        "INSERT INTO runs (key, tick, began) VALUES ($1, $2, clock_timestamp()) RETURNING id",
    )
    .bind(key)
    .bind(tick)
    .fetch_one(session)
    .await
    .unwrap()
}
