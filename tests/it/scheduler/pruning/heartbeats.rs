//! Heartbeats go when they are old, and their addresses behind them, in bounded batches.

use chrono::{DateTime, Days, Utc};
use sexton_store::retention::{
    Position, PrunedBatch, RetentionPolicy, RetentionTarget, prune_batch,
};

use crate::scheduler::{Fixture, at};

const LIMIT: i64 = 10;
const TERMS: RetentionPolicy = RetentionPolicy { days: 30, audit_days: None };

impl Fixture {
    /// Heartbeats of this instant, to addresses `first` and on.
    async fn heartbeats(&self, count: i32, first: i32, created_at: DateTime<Utc>) {
        sqlx::query(
            "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at, state, finished_at)
             SELECT j.id, gen_random_uuid(), 1, 'start', 'https://hc' || n, $3, $3,
                    CASE WHEN n % 2 = 0 THEN 'sent' ELSE 'dropped' END, $3
             FROM generate_series($2, $2 + $1 - 1) n, sexton.jobs j",
        )
        .bind(count)
        .bind(first)
        .bind(created_at)
        .execute(self.db.pool())
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO sexton.heartbeat_addresses (address) SELECT DISTINCT address FROM sexton.heartbeats
             ON CONFLICT DO NOTHING",
        )
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    /// The rows that a batch of heartbeats and of addresses removes, and whether it is the last.
    async fn batch(&self, position: &mut Position, days: u64) -> (u64, bool) {
        let (target, now) = (RetentionTarget::Heartbeats, Some(at(0) + Days::new(days)));
        let batch = prune_batch(&self.store(), target, position, TERMS, LIMIT, now).await.unwrap();
        let PrunedBatch { removed, is_last, .. } = batch;
        (removed, is_last)
    }
}

#[tokio::test]
async fn the_pass_ends_at_the_first_batch_with_a_young_heartbeat() {
    let f = Fixture::without_broker().await;
    f.any_job().await;
    f.heartbeats(14, 1, at(0)).await;
    f.heartbeats(30, 1, at(0) + Days::new(2)).await;
    // A clock that was put back wrote it; the pass of another day finds it.
    f.heartbeats(1, 1, at(0)).await;
    let mut position = Position::default();
    assert_eq!(f.batch(&mut position, 30).await, (0, true), "none is older than 30 days");
    let mut position = Position::default();
    assert_eq!(f.batch(&mut position, 31).await, (10, false));
    assert_eq!(f.batch(&mut position, 31).await, (4, true));
    assert_eq!(f.number("SELECT count(*) FROM sexton.heartbeats").await, 31);
    let mut position = Position::default();
    for removed in [10, 10, 10] {
        assert_eq!(f.batch(&mut position, 33).await, (removed, false));
    }
    let mut removed = 0;
    loop {
        let (rows, is_last) = f.batch(&mut position, 33).await;
        removed += rows;
        if is_last {
            break;
        }
    }
    assert_eq!(removed, 31, "the last heartbeat and the thirty addresses");
}

#[tokio::test]
async fn a_heartbeat_of_a_clock_that_was_ahead_ends_no_pass() {
    let f = Fixture::without_broker().await;
    f.any_job().await;
    f.heartbeats(1, 1, at(0) + Days::new(400)).await;
    f.heartbeats(12, 1, at(0)).await;
    let mut position = Position::default();
    assert_eq!(f.batch(&mut position, 31).await, (9, false));
    // With the eleven addresses of which none is left, in two batches.
    assert_eq!(f.batch(&mut position, 31).await, (3 + 10, false));
    assert_eq!(f.batch(&mut position, 31).await, (1, true));
    assert_eq!(f.number("SELECT count(*) FROM sexton.heartbeats").await, 1);
}

#[tokio::test]
async fn addresses_of_which_no_heartbeat_is_left_go_in_batches_too() {
    let f = Fixture::without_broker().await;
    f.any_job().await;
    f.heartbeats(25, 1, at(0)).await;
    f.heartbeats(2, 101, at(0) + Days::new(31)).await;
    let mut position = Position::default();
    let left = "SELECT count(*) FROM sexton.heartbeat_addresses";
    let mut batches = Vec::new();
    loop {
        let before = f.number(left).await;
        let (_, is_last) = f.batch(&mut position, 31).await;
        batches.push(before - f.number(left).await);
        if is_last {
            break;
        }
    }
    assert_eq!(batches, [0, 0, 10, 10, 5]);
    assert_eq!(f.number(left).await, 2, "those of young heartbeats stay");
}
