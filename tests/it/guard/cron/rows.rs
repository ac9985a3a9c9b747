//! Ticks of lock rows, which the row itself remembers.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use sexton_guard::{CREATE_SHEDLOCK, LockError, LockRow, Run};

use super::super::{Fixture, PATIENCE, eventually};

async fn fixture() -> (Fixture, LockRow, DateTime<Utc>) {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let now = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(f.pool()).await;
    let now: DateTime<Utc> = now.unwrap();
    let lock = LockRow::new("a", Duration::from_mins(1)).unwrap();
    (f, lock, now.with_nanosecond(0).unwrap())
}

#[tokio::test]
async fn a_row_is_taken_once_per_tick_however_late_another_instance_is() {
    let (f, lock, now) = fixture().await;
    let second = TimeDelta::seconds(1);
    let run =
        async |tick| lock.try_run_tick(f.pool(), tick, async |_| Ok::<_, String>(1)).await.unwrap();
    let tick = now - second;
    assert_eq!(run(tick).await, Run::Done(Ok(1)));
    assert_eq!(run(tick).await, Run::Busy, "it ran, and the row is free");
    assert_eq!(run(tick - second).await, Run::Busy, "a later one ran");
    // The clock has not quite come to this one.
    let next = now + second * 3;
    assert_eq!(run(next).await, Run::Done(Ok(1)));
    assert_eq!(run(next - second).await, Run::Busy);
    // Released before anything else wants the row: a guard that is dropped is released in the background.
    let is_free = async || match lock.try_acquire(f.pool()).await.unwrap() {
        Some(held) => held.release().await.is_ok(),
        None => false,
    };
    eventually("the row is free at its instant", PATIENCE, is_free).await;
    assert_eq!(run(next).await, Run::Busy);
    // Any use of the row after the tick counts, such as that of a service in Java.
    let held = lock.try_acquire(f.pool()).await.unwrap().unwrap();
    assert_eq!(run(next + second * 60).await, Run::Busy, "while it is held no later one begins");
    held.release().await.unwrap();
    assert_eq!(run(next).await, Run::Busy);
    assert_eq!(run(next + second * 60).await, Run::Done(Ok(1)));
}

#[tokio::test]
async fn a_tick_of_a_wrong_clock_is_refused_and_takes_nothing() {
    let (f, lock, now) = fixture().await;
    for tick in [
        now + TimeDelta::hours(1),
        now - TimeDelta::hours(25),
        DateTime::<Utc>::MAX_UTC,
        DateTime::<Utc>::MIN_UTC,
    ] {
        let error = lock.try_acquire_tick(f.pool(), tick).await.unwrap_err();
        assert!(
            matches!(&error, LockError::Tick(text) if text.contains("Set the clock")),
            "{error}"
        );
    }
    assert_eq!(f.count("SELECT count(*) FROM shedlock").await, 0);
    let yesterday = now - TimeDelta::hours(23);
    lock.try_acquire_tick(f.pool(), yesterday).await.unwrap().unwrap().release().await.unwrap();
}
