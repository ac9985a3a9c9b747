//! Locks with a tick: the platform's functions, by the crate.

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use sexton_guard::{End, Key, LockError, Run, TransactionLock};
use sqlx::AssertSqlSafe;

use super::{Fixture, KEY, connect};

impl Fixture {
    /// The minute of the database's clock.
    async fn minute(&self) -> DateTime<Utc> {
        let now = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(self.pool()).await;
        let now: DateTime<Utc> = now.unwrap();
        now.with_second(0).unwrap().with_nanosecond(0).unwrap()
    }

    /// The outcomes of all ticks in their order, with what was added.
    async fn outcomes(&self) -> Vec<(Option<String>, Option<String>)> {
        let all = "SELECT outcome, detail FROM sexton.guard_ticks ORDER BY tick";
        sqlx::query_as(all).fetch_all(self.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn a_tick_runs_on_one_instance_and_its_end_is_recorded() {
    let f = Fixture::new().await;
    let (a, b) = (f.locks().await, f.locks().await);
    let tick = f.minute().await;
    let minute = TimeDelta::minutes(1);
    let done = a.try_run_tick(KEY, tick, async |_| Ok::<_, String>(7)).await.unwrap();
    assert_eq!(done, Run::Done(Ok(7)));
    // The clock of this instance is late: the job was done within milliseconds, and the lock is free.
    let late = b.try_run_tick(KEY, tick, async |_| Ok::<_, String>(8)).await.unwrap();
    assert_eq!(late, Run::Busy);
    let fails = async |_| Err::<(), _>(format!("a\0 {}", "long ".repeat(1_000)));
    let failed = b.try_run_tick(KEY, tick + minute, fails).await.unwrap();
    assert!(matches!(failed, Run::Done(Err(_))));
    drop(a.try_acquire_tick(KEY, tick + minute * 2).await.unwrap().unwrap());
    // The next call stands behind what the drop has sent.
    let held = a.try_acquire_tick(KEY, tick + minute * 3).await.unwrap().unwrap();
    assert!(b.try_acquire_tick(KEY, tick + minute * 4).await.unwrap().is_none(), "it runs");
    held.release_after(End::Cancelled("a stop".to_owned())).await.unwrap();
    let outcomes = f.outcomes().await;
    let names: Vec<_> = outcomes.iter().map(|(outcome, _)| outcome.as_deref().unwrap()).collect();
    assert_eq!(names, ["succeeded", "failed", "cancelled", "cancelled"]);
    assert!(outcomes[1].1.as_ref().unwrap().starts_with("a long long"), "{outcomes:?}");
    assert_eq!(outcomes[3].1.as_deref(), Some("a stop"));
    assert!(f.is_free(KEY).await);
}

#[tokio::test]
async fn a_tick_that_cannot_be_taken_is_an_error_with_the_remedy_and_holds_nothing() {
    let f = Fixture::new().await;
    let locks = f.locks().await;
    let tick = f.minute().await;
    let error = locks.try_acquire_tick(KEY, tick + TimeDelta::hours(1)).await.unwrap_err();
    assert!(matches!(&error, LockError::Tick(text) if text.contains("Set the clock")), "{error}");
    assert!(f.is_free(KEY).await);
    let error =
        TransactionLock::new(Key::Pair(1, 2)).try_begin_tick(f.pool(), tick).await.unwrap_err();
    assert!(error.to_string().contains("(1, 2) is a pair"), "{error}");
    // The same session goes on.
    locks.try_acquire_tick(KEY, tick).await.unwrap().unwrap().release().await.unwrap();
    f.run("DROP FUNCTION sexton.guard_try").await;
    let error = locks.try_acquire_tick(KEY, tick + TimeDelta::minutes(1)).await.unwrap_err();
    assert!(error.to_string().contains("run `sexton migrate`"), "{error}");
    assert!(f.is_free(KEY).await);
}

#[tokio::test]
async fn a_role_without_the_functions_is_refused_with_what_to_grant() {
    let f = Fixture::new().await;
    let role = format!("sx_guard_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let sql = |statement: String| sqlx::raw_sql(AssertSqlSafe(statement));
    sql(format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT CONNECT ON DATABASE {} TO {role}",
        { f.db.url().rsplit('/').next().unwrap() }
    ))
    .execute(f.pool())
    .await
    .unwrap();
    let (_, server) = f.db.url().rsplit_once('@').unwrap();
    let locks = connect(&format!("postgres://{role}:x@{server}")).await;
    let error = locks.try_acquire_tick(KEY, f.minute().await).await.unwrap_err();
    assert!(matches!(error, LockError::Forbidden(_)), "{error:?}");
    assert!(error.to_string().contains("sexton_producer"), "{error}");
    // A lock without a tick needs no privilege.
    locks.try_acquire(KEY).await.unwrap().unwrap().release().await.unwrap();
    drop(locks);
    sql(format!("DROP OWNED BY {role}; DROP ROLE {role}")).execute(f.pool()).await.unwrap();
}

#[tokio::test]
async fn a_tick_of_a_transaction_is_given_back_by_a_rollback() {
    let f = Fixture::new().await;
    let lock = TransactionLock::new(KEY);
    let tick = f.minute().await;
    let tx = lock.try_begin_tick(f.pool(), tick).await.unwrap().unwrap();
    assert!(lock.try_begin_tick(f.pool(), tick).await.unwrap().is_none(), "it runs");
    tx.rollback().await.unwrap();
    let tx = lock.try_begin_tick(f.pool(), tick).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    assert!(lock.try_begin_tick(f.pool(), tick).await.unwrap().is_none(), "it ran");
    assert!(f.is_free(KEY).await);
}
