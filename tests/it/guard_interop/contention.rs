//! Several languages contend for one lock at a time, and each of them gets it and is refused many times.

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use futures_util::future::join_all;
use sexton_guard::Held;
use sqlx::postgres::PgConnection;
use tokio_util::sync::CancellationToken;

use super::contender::{Contender, Contention};
use super::{Fixture, PATIENCE, eventually, lock_row};

/// How often each contender must get a lock, and be refused.
pub(super) const ENOUGH: i64 = 20;
/// The same for ticks, of which there are ten a second.
const ENOUGH_TICKS: i64 = 4;
/// The holder's name of this process.
const SEXTON: &str = "sexton";

/// The lock of one try, with its tick.
type Taken = Option<(Held, Option<DateTime<Utc>>)>;

/// Starts the contenders, and returns those whose tools are there.
pub(super) async fn start(f: &Fixture, contentions: &[Contention<'_>]) -> Vec<Contender> {
    join_all(contentions.iter().map(|it| Contender::start(&f.url, it)))
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// Contends from this process until `stop`, as the contenders in other languages do.
async fn contend(f: &Fixture, lock: &str, stop: &CancellationToken, take: impl AsyncFn() -> Taken) {
    let mut session = f.connect().await;
    while !stop.is_cancelled() {
        if let Some((held, tick)) = take().await {
            hold(&mut session, lock, tick).await;
            held.release().await.unwrap();
        } else {
            let refused = "INSERT INTO refused (lock, holder) VALUES ($1, $2)";
            sqlx::query(refused).bind(lock).bind(SEXTON).execute(&mut session).await.unwrap();
        }
        run(&mut session, "SELECT pg_sleep(random() * 0.02)").await;
    }
}

async fn hold(session: &mut PgConnection, lock: &str, tick: Option<DateTime<Utc>>) {
    let began = "INSERT INTO held (lock, holder, tick) VALUES ($1, $2, $3) RETURNING id";
    let began = sqlx::query_scalar(began).bind(lock).bind(SEXTON).bind(tick);
    let id: i64 = began.fetch_one(&mut *session).await.unwrap();
    run(session, "SELECT pg_sleep(random() * 0.005)").await;
    let ended = sqlx::query("UPDATE held SET ended = clock_timestamp() WHERE id = $1").bind(id);
    ended.execute(session).await.unwrap();
}

async fn run(session: &mut PgConnection, statement: &'static str) {
    sqlx::query(statement).execute(session).await.unwrap();
}

/// Lets everybody contend until all have won and lost often enough, ends them, and judges what they held.
pub(super) async fn judge(
    f: &Fixture,
    lock: &str,
    contenders: Vec<Contender>,
    enough: i64,
    take: impl AsyncFn() -> Taken,
) {
    let count = contenders.len() as i64 + 1;
    let stop = CancellationToken::new();
    let contest = async {
        let is_enough = async || {
            let winners = count_winners(f, lock, enough).await;
            (winners == count && count_losers(f, lock, enough).await == count).then_some(())
        };
        eventually("everybody has won and lost", is_enough).await;
        for contender in contenders {
            contender.end().await;
        }
        stop.cancel();
    };
    let ours = contend(f, lock, &stop, take);
    tokio::time::timeout(2 * PATIENCE, async { tokio::join!(contest, ours) }).await.unwrap();

    assert_eq!(overlaps(f, lock).await, 0, "two holders at a time");
    let wrong = "SELECT count(*) FILTER (WHERE ended IS NULL), count(tick) - count(DISTINCT tick)
         FROM held WHERE lock = $1";
    let wrong: (i64, i64) = sqlx::query_as(wrong).bind(lock).fetch_one(f.pool()).await.unwrap();
    assert_eq!(wrong, (0, 0), "without an end, a second time for a tick");
}

/// How many pairs of holders of a lock held it at the same time, by the database's clock.
pub(super) async fn overlaps(f: &Fixture, lock: &str) -> i64 {
    let overlaps = "SELECT count(*) FROM held a JOIN held b ON a.lock = b.lock AND a.id < b.id
         WHERE a.lock = $1 AND a.began < b.ended AND b.began < a.ended";
    sqlx::query_scalar(overlaps).bind(lock).fetch_one(f.pool()).await.unwrap()
}

/// How many have held a lock this often.
pub(super) async fn count_winners(f: &Fixture, lock: &str, enough: i64) -> i64 {
    let often = "SELECT count(*) FROM
         (SELECT FROM held WHERE lock = $1 AND ended IS NOT NULL GROUP BY holder HAVING count(*) >= $2) w";
    sqlx::query_scalar(often).bind(lock).bind(enough).fetch_one(f.pool()).await.unwrap()
}

/// How many were refused this often.
async fn count_losers(f: &Fixture, lock: &str, enough: i64) -> i64 {
    let often = "SELECT count(*) FROM
         (SELECT FROM refused WHERE lock = $1 GROUP BY holder HAVING count(*) >= $2) l";
    sqlx::query_scalar(often).bind(lock).bind(enough).fetch_one(f.pool()).await.unwrap()
}

#[tokio::test]
async fn sessions_of_all_languages_hold_a_key_one_at_a_time() {
    let f = Fixture::new().await;
    let languages = ["node", "python", "java"].map(|it| Contention::of(it, "advisory", "5101"));
    let contenders = start(&f, &languages).await;
    let locks = f.locks().await;
    judge(&f, "5101", contenders, ENOUGH, async || {
        locks.try_acquire(5101).await.unwrap().map(|held| (held, None))
    })
    .await;
}

/// Instances whose clocks are those of their languages: each tick runs once, and no two runs overlap.
#[tokio::test]
async fn a_tick_runs_once_among_all_languages() {
    let f = Fixture::new().await;
    let languages = ["node", "python", "java"].map(|it| Contention::of(it, "tick", "5102"));
    let contenders = start(&f, &languages).await;
    let locks = f.locks().await;
    judge(&f, "5102", contenders, ENOUGH_TICKS, async || {
        let tick = f.now().await.duration_trunc(TimeDelta::milliseconds(100)).unwrap();
        locks.try_acquire_tick(5102, tick).await.unwrap().map(|held| (held, Some(tick)))
    })
    .await;
    let unequal = "SELECT count(*) FROM held h
         FULL JOIN (SELECT tick FROM sexton.guard_ticks WHERE key = 5102 AND outcome = 'succeeded') g ON g.tick = h.tick
         WHERE h.tick IS NULL OR g.tick IS NULL";
    let unequal: i64 = sqlx::query_scalar(unequal).fetch_one(f.pool()).await.unwrap();
    assert_eq!(unequal, 0, "the table has each run, and no other");
}

/// What django-pglock locks for the name `billing.invoices`: the first eight bytes of its SHA-256, the lowest first.
const INVOICES: i64 = -5_520_560_385_971_602_789;

#[tokio::test]
async fn a_name_of_django_pglock_is_a_key_to_sexton() {
    let f = Fixture::new().await;
    let contenders = start(&f, &[Contention::of("python", "pglock", "billing.invoices")]).await;
    let locks = f.locks().await;
    judge(&f, "billing.invoices", contenders, ENOUGH, async || {
        locks.try_acquire(INVOICES).await.unwrap().map(|held| (held, None))
    })
    .await;
}

#[tokio::test]
async fn shedlock_and_sexton_hold_a_row_one_at_a_time() {
    let f = Fixture::new().await;
    let jvm = |holder| Contention { holder, ..Contention::of("java", "row", "tokenCleanup") };
    let contenders = start(&f, &[jvm("java-1"), jvm("java-2")]).await;
    let row = lock_row("tokenCleanup", PATIENCE);
    judge(&f, "tokenCleanup", contenders, ENOUGH, async || {
        row.try_acquire(f.pool()).await.unwrap().map(|held| (held, None))
    })
    .await;
}
