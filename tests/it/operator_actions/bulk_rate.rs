//! How fast a bulk goes.

use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_model::verify_task::VerifyAnswer;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::bulk::{self, NewBulk};

use super::{BY, Fixture, now};

/// A requeue of everything, so fast, prepared.
async fn at_rate(f: &Fixture, rate: &str, canary: Option<u32>) -> i64 {
    let filter = json!(FailureFilter::default());
    let rate = Some(rate.parse().unwrap());
    let new_bulk = NewBulk { rate, canary, ..Fixture::new_bulk(BulkKind::Requeue, &filter) };
    let id = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
    f.scheduler().run_once(now(2_000)).await.unwrap();
    id
}

#[tokio::test]
async fn schedulers_keep_the_bulk_rate_by_the_database_clock() {
    let f = Fixture::new().await;
    f.many(1_000).await;
    let id = at_rate(&f, "50/s", None).await;
    // Each instant a scheduler of its own, which remembers nothing, and asks more than once.
    for (second, done) in [(0, 1), (1, 51), (2, 101), (5, 251)] {
        for _ in 0..3 {
            let scheduler = f.scheduler();
            let round = scheduler.run_once(now(2_000 + second)).await.unwrap();
            assert!(round.next_round_in > std::time::Duration::ZERO, "{round:?}");
        }
        assert_eq!(f.bulk(id).await.done, done, "after {second} s");
    }
    // Nobody was at work for an hour: no flood.
    let scheduler = f.scheduler();
    scheduler.run_once(now(6_000)).await.unwrap();
    scheduler.run_once(now(6_000)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 751);
    scheduler.run_once(now(6_001)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 801);
}

#[tokio::test]
async fn a_bulk_does_not_exceed_its_rate_after_the_canary_wait() {
    let f = Fixture::new().await;
    f.many(1_500).await;
    let id = at_rate(&f, "50/s", Some(10)).await;
    let scheduler = f.scheduler();
    for second in [2_000, 2_001, 2_002] {
        scheduler.run_once(now(second)).await.unwrap();
    }
    assert_eq!(f.bulk(id).await.done, 10);
    // The first run for an hour, in which 180,000 became due.
    scheduler.run_once(now(5_600)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 10);
    f.sql(
        "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), next_attempt_at = NULL
         WHERE state = 'pending'",
    )
    .await;
    for (second, done) in [(5_600, 11), (5_600, 11), (5_601, 61), (5_602, 111)] {
        scheduler.run_once(now(second)).await.unwrap();
        assert_eq!(f.bulk(id).await.done, done, "at {second}");
    }
}

#[tokio::test]
async fn locked_rows_do_not_make_a_bulk_exceed_its_rate() {
    let f = Fixture::new().await;
    f.many(1_900).await;
    let id = at_rate(&f, "50/s", None).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 1);
    // The second of them, so that one of every batch cannot be done.
    let mut holder = f.db.pool().begin().await.unwrap();
    let second = "SELECT FROM sexton.executions WHERE id = lpad('2', 32, '0')::uuid FOR UPDATE";
    sqlx::query(second).execute(&mut *holder).await.unwrap();
    for (second, done) in [(5_600, 500), (5_600, 500), (5_600, 500), (5_601, 549)] {
        scheduler.run_once(now(second)).await.unwrap();
        assert_eq!(f.bulk(id).await.done, done, "at {second}");
    }
    holder.rollback().await.unwrap();
    // The one that was held, and those that have become due since.
    scheduler.run_once(now(5_602)).await.unwrap();
    assert_eq!(f.bulk(id).await.done, 600);
}

#[tokio::test]
async fn a_rated_bulk_is_done_with_its_last_item() {
    let f = Fixture::new().await;
    f.failed(1).await;
    let id = at_rate(&f, "1/d", None).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!(f.stands(id).await, "done 1/1/0");
    // Nor does it wait for its turn where the last was answered for, and not done.
    let (one, two) = (f.failed(2).await, f.failed(3).await);
    let filter = json!(FailureFilter::default());
    let (rate, verify) = (Some("1/d".parse().unwrap()), Some("command"));
    let new_bulk = NewBulk { rate, verify, ..Fixture::new_bulk(BulkKind::Requeue, &filter) };
    let id = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
    scheduler.run_once(now(2_000)).await.unwrap();
    let judge = async |ordinal, verdict| {
        assert!(
            bulk::record_answer(f.store(), id, ordinal, verdict, &json!({}), BY, now(2_000))
                .await
                .unwrap()
        );
    };
    judge(1, &VerifyAnswer::NotYet).await;
    scheduler.run_once(now(2_001)).await.unwrap();
    assert_eq!(f.stands(id).await, "running 2/1/0");
    judge(2, &VerifyAnswer::Happened).await;
    scheduler.run_once(now(2_002)).await.unwrap();
    assert_eq!(f.stands(id).await, "done 2/1/0");
    assert_eq!([f.state(one).await, f.state(two).await], ["pending/2", "succeeded/2"]);
}
