//! An instance whose clock is wrong by an hour.

use chrono::TimeDelta;

use super::{Fixture, KEY, code, guard_done, guard_try};

/// The instance whose clock is an hour ahead is refused, and the others run the job at its time.
#[tokio::test]
async fn an_instance_an_hour_ahead_does_not_run_everything_an_hour_early() {
    let f = Fixture::new().await;
    let (mut ahead, mut right) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    let error = guard_try(&mut ahead, KEY, tick + TimeDelta::hours(1)).await.unwrap_err();
    assert_eq!(code(&error), "SX030");
    assert!(guard_try(&mut right, KEY, tick).await.unwrap());
    assert!(guard_done(&mut right, KEY, tick, "succeeded").await.unwrap());
    // An hour behind: what it is about to run has run.
    let mut behind = f.connect().await;
    let long_ago = tick - TimeDelta::hours(1);
    assert!(guard_try(&mut right, KEY, long_ago).await.unwrap());
    assert!(guard_done(&mut right, KEY, long_ago, "succeeded").await.unwrap());
    assert!(!guard_try(&mut behind, KEY, long_ago).await.unwrap());
}
