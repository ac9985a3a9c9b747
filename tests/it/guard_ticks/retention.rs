//! Old ticks go, by the calls themselves and by the schedulers' retention, and none that a call would accept.

use sexton_store::retention::{Position, RetentionPolicy, RetentionTarget, prune_batch};

use super::{Fixture, KEY, guard_try};

const OLD: &str = "INSERT INTO sexton.guard_ticks (key, tick, began_at, began_by, backend)
    SELECT 5101, date_trunc('minute', at), at, 'old', 1
    FROM generate_series(1, 100) n, LATERAL (SELECT now() - n * interval '12 hours' - interval '1 hour' AS at) a";

#[tokio::test]
async fn a_key_that_is_in_use_sheds_its_old_ticks_without_a_scheduler() {
    let f = Fixture::new().await;
    sqlx::query(OLD).execute(f.db.pool()).await.unwrap();
    let mut a = f.connect().await;
    let tick = f.minute().await;
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    // 31 of the hundred are older than 35 days; a call removes twenty at most.
    assert_eq!(f.count("SELECT count(*) FROM sexton.guard_ticks").await, 81);
    assert_eq!(
        f.count("SELECT count(*) FROM sexton.guard_ticks WHERE tick > now() - interval '35 days'")
            .await,
        70
    );
}

#[tokio::test]
async fn retention_removes_what_no_call_accepts_any_more_and_nothing_younger() {
    let f = Fixture::new().await;
    sqlx::query(OLD).execute(f.db.pool()).await.unwrap();
    let prune = async |days: i32| {
        let terms = RetentionPolicy { days, audit_days: None };
        let target = RetentionTarget::Ticks;
        let mut position = Position::default();
        prune_batch(f.db.store(), target, &mut position, terms, 1_000, None).await.unwrap()
    };
    assert_eq!(prune(35).await.removed, 31);
    // A day would let a late instance run a tick again.
    prune(1).await;
    let left = "SELECT count(*) FROM sexton.guard_ticks";
    assert_eq!(f.count(left).await, 3, "of the last two days");
}
