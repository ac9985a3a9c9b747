//! Lock rows: ShedLock's rules, and the keep-alive.

use std::time::Duration;

use sexton_guard::{CREATE_SHEDLOCK, LockRow, Run};
use sexton_tests::proxy::Proxy;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::{Fixture, PATIENCE, SOON, eventually};

const AT_MOST: Duration = Duration::from_mins(1);

/// What ShedLock for Java runs on PostgreSQL with the database's time, for a lock of this name and a minute.
const SHEDLOCK_UPDATE: &str =
    "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '1 minute',
         locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = 'java'
     WHERE name = $1 AND lock_until <= timezone('utc', CURRENT_TIMESTAMP)";
const SHEDLOCK_INSERT: &str = "INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
     VALUES ($1, timezone('utc', CURRENT_TIMESTAMP) + interval '1 minute', timezone('utc', CURRENT_TIMESTAMP), 'java')
     ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at,
         locked_by = excluded.locked_by WHERE shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)";
const SHEDLOCK_UNLOCK: &str =
    "UPDATE shedlock SET lock_until = greatest(timezone('utc', CURRENT_TIMESTAMP), locked_at)
     WHERE name = $1 AND locked_by = 'java'";

async fn fixture() -> Fixture {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    f
}

fn row(name: &str) -> LockRow {
    LockRow::new(name, AT_MOST).unwrap()
}

impl Fixture {
    /// Runs a statement of ShedLock; whether it changed a row.
    async fn shedlock(&self, statement: &'static str, name: &str) -> bool {
        let changed = sqlx::query(statement).bind(name).execute(self.pool()).await.unwrap();
        changed.rows_affected() == 1
    }
}

#[tokio::test]
async fn one_of_all_holders_has_the_row_and_those_in_java_are_kept_out_as_well() {
    let f = fixture().await;
    let held = row("cleanup").try_acquire(f.pool()).await.unwrap().unwrap();
    assert!(row("cleanup").try_acquire(f.pool()).await.unwrap().is_none(), "this process, too");
    assert!(!f.shedlock(SHEDLOCK_UPDATE, "cleanup").await);
    assert!(!f.shedlock(SHEDLOCK_INSERT, "cleanup").await);
    let other = row("other").try_acquire(f.pool()).await.unwrap().unwrap();
    held.release().await.unwrap();
    assert!(f.shedlock(SHEDLOCK_INSERT, "cleanup").await, "it is free");
    assert!(row("cleanup").try_acquire(f.pool()).await.unwrap().is_none());
    assert!(f.shedlock(SHEDLOCK_UNLOCK, "cleanup").await);
    let held = row("cleanup").try_acquire(f.pool()).await.unwrap().unwrap();
    let by = "SELECT count(*) FROM shedlock WHERE name = 'cleanup' AND locked_by ~ '^.+:[0-9]+:[0-9a-f-]{36}$'
              AND locked_at BETWEEN timezone('utc', clock_timestamp()) - interval '1 minute' AND timezone('utc', clock_timestamp())
              AND lock_until - locked_at = interval '1 minute'";
    assert_eq!(f.count(by).await, 1);
    drop(held);
    other.release().await.unwrap();
    let is_free = async || row("cleanup").try_acquire(f.pool()).await.unwrap().is_some();
    eventually("free after a drop", SOON, is_free).await;
    assert_eq!(f.count("SELECT count(*) FROM shedlock").await, 2, "rows are never deleted");
}

/// Another zone of the session, and a transaction that began long ago, change no time.
#[tokio::test]
async fn times_are_utc_by_the_databases_clock_whatever_the_session_is_set_to() {
    let f = fixture().await;
    let strange = PgPoolOptions::new().after_connect(|connection, _| {
        let set = "SET TimeZone = 'Pacific/Kiritimati'; SET standard_conforming_strings = off;
                   SET default_transaction_isolation = serializable; SET DateStyle = SQL";
        Box::pin(async move { sqlx::raw_sql(set).execute(connection).await.map(drop) })
    });
    let pool = strange.connect(f.db.url()).await.unwrap();
    let name = "a'b\\c \"d\" $1 é";
    let held = row(name).try_acquire(&pool).await.unwrap().unwrap();
    assert!(row(name).try_acquire(f.pool()).await.unwrap().is_none());
    let near = "SELECT count(*) FROM shedlock WHERE lock_until - timezone('utc', clock_timestamp())
                BETWEEN interval '30 seconds' AND interval '1 minute'";
    assert_eq!(f.count(near).await, 1);
    let found: String =
        sqlx::query_scalar("SELECT name FROM shedlock").fetch_one(f.pool()).await.unwrap();
    assert_eq!(found, name);
    held.release().await.unwrap();
    row(name).try_acquire(f.pool()).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_row_stays_locked_for_at_least_its_time_and_no_longer_than_at_most() {
    let f = fixture().await;
    let lock = LockRow::new("fast", AT_MOST).unwrap().at_least(Duration::from_secs(30)).unwrap();
    assert_eq!(lock.try_run(f.pool(), async |_| 1).await.unwrap(), Run::Done(1));
    assert_eq!(lock.try_run(f.pool(), async |_| 1).await.unwrap(), Run::Busy);
    let left = "SELECT count(*) FROM shedlock WHERE lock_until = locked_at + interval '30 seconds'";
    assert_eq!(f.count(left).await, 1);
    let equal = LockRow::new("equal", AT_MOST).unwrap().at_least(AT_MOST).unwrap();
    assert_eq!(equal.try_run(f.pool(), async |_| 1).await.unwrap(), Run::Done(1));
    let left = "SELECT count(*) FROM shedlock WHERE name = 'equal' AND lock_until = locked_at + interval '1 minute'";
    assert_eq!(f.count(left).await, 1);
}

#[tokio::test]
async fn a_row_is_extended_while_its_work_runs() {
    let f = fixture().await;
    let lock = LockRow::new("long", Duration::from_secs(1)).unwrap();
    let until = "SELECT (extract(epoch FROM lock_until - locked_at) * 1000)::bigint FROM shedlock";
    let work = async |_| {
        eventually("it is extended several times", PATIENCE, async || f.count(until).await > 3_000)
            .await;
    };
    assert_eq!(lock.try_run(f.pool(), work).await.unwrap(), Run::Done(()));
    assert!(lock.try_acquire(f.pool()).await.unwrap().is_some());
}

/// As when the row's time passed while the database was away.
#[tokio::test]
async fn a_row_that_another_took_cancels_the_work_and_is_not_released_by_it() {
    let f = fixture().await;
    // The next extension is after four seconds, and without its answer the lock would be certain for ten.
    let lock = LockRow::new("taken", Duration::from_secs(12)).unwrap();
    let begun = Notify::new();
    let hang = async |_| {
        begun.notify_one();
        std::future::pending::<()>().await;
    };
    let take = async {
        begun.notified().await;
        f.run(
            "UPDATE shedlock SET locked_by = 'java', lock_until = lock_until + interval '1 hour'",
        )
        .await;
    };
    let (run, ()) = tokio::join!(timeout(SOON, lock.try_run(f.pool(), hang)), take);
    assert_eq!(run.unwrap().unwrap(), Run::Lost);
    let javas = "SELECT count(*) FROM shedlock WHERE locked_by = 'java'
                 AND lock_until > timezone('utc', clock_timestamp()) + interval '50 minutes'";
    assert_eq!(f.count(javas).await, 1);
    // And work that has ended by then is uncertain.
    let held = row("other").try_acquire(f.pool()).await.unwrap().unwrap();
    f.run("UPDATE shedlock SET locked_by = 'java' WHERE name = 'other'").await;
    held.release().await.unwrap_err();
}

/// The work has ended before the row has: measured by the row's own time, with which another holder would begin.
#[tokio::test]
async fn a_row_that_cannot_be_extended_cancels_the_work_before_it_is_free() {
    let f = fixture().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let url = proxy.url(f.db.url());
    let pool = PgPoolOptions::new().max_connections(2).connect(&url).await.unwrap();
    let lock = LockRow::new("cut", Duration::from_secs(10)).unwrap();
    let held = lock.try_acquire(&pool).await.unwrap().unwrap();
    proxy.black_hole();
    let began = Instant::now();
    timeout(PATIENCE, held.lost().cancelled()).await.unwrap();
    let is_locked =
        "SELECT count(*) FROM shedlock WHERE lock_until > timezone('utc', clock_timestamp())";
    assert_eq!(f.count(is_locked).await, 1, "the row was free before the work was cancelled");
    println!("MEASURED lost {:?} after the network was cut, at most 10 s", began.elapsed());
    proxy.cut();
    drop(held);
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_no_lock() {
    let f = fixture().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let pool = PgPool::connect(&proxy.url(f.db.url())).await.unwrap();
    let lock = row("left");
    // The table is checked before.
    lock.try_acquire(&pool).await.unwrap().unwrap().release().await.unwrap();
    proxy.delay(Duration::from_millis(200));
    let locked_at = "SELECT (extract(epoch FROM locked_at) * 1000000)::bigint FROM shedlock";
    let before = f.count(locked_at).await;
    timeout(Duration::from_millis(20), lock.try_acquire(&pool)).await.unwrap_err();
    let is_taken = async || f.count(locked_at).await != before;
    eventually("the database takes it nevertheless", SOON, is_taken).await;
    proxy.pass();
    let is_free = async || row("left").try_acquire(f.pool()).await.unwrap().is_some();
    eventually("and it is released", SOON, is_free).await;
}
