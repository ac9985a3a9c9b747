//! Many sessions and one key.

use std::sync::Arc;
use std::time::Duration;

use sexton_client::{Client, Enqueue, UniqueFor};
use sexton_service::clock;
use sqlx::Connection as _;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Fixture, charge};

/// Sessions that race for one key.
const SESSIONS: usize = 100;
/// For a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Lets all sessions enqueue at once, each in its own transaction, and returns how many made an execution.
async fn race(f: &Fixture, enqueue: &Enqueue) -> usize {
    let barrier = Arc::new(Barrier::new(SESSIONS));
    let mut sessions = JoinSet::new();
    for _ in 0..SESSIONS {
        let (enqueue, barrier) = (enqueue.clone(), Arc::clone(&barrier));
        let mut connection = f.connect().await;
        sessions.spawn(async move {
            barrier.wait().await;
            let mut tx = connection.begin().await.unwrap();
            let answer = Client::new().enqueue(&mut tx, &enqueue).await.unwrap();
            tx.commit().await.unwrap();
            answer
        });
    }
    let answers = timeout(PATIENCE, sessions.join_all()).await.unwrap();
    let made = answers.iter().find(|one| one.created).unwrap();
    assert!(answers.iter().all(|one| one.execution_id == made.execution_id));
    answers.iter().filter(|one| one.created).count()
}

#[tokio::test]
async fn a_hundred_sessions_with_one_key_make_one_execution() {
    let f = Fixture::new().await;
    assert_eq!(race(&f, &charge().key("ever")).await, 1);
    assert_eq!(race(&f, &charge().key("open").unique_for(UniqueFor::Open)).await, 1);
    let day = UniqueFor::Period(Duration::from_hours(24));
    let noon =
        (clock::now() + Duration::from_hours(48)).date_naive().and_hms_opt(12, 0, 0).unwrap();
    assert_eq!(race(&f, &charge().key("day").unique_for(day).run_at(noon.and_utc())).await, 1);
    assert_eq!(f.count().await, 3);
}

#[tokio::test]
async fn the_second_waits_for_the_first_s_transaction_and_makes_it_if_that_rolls_back() {
    let f = Fixture::new().await;
    let client = Client::new();
    for (name, commits) in [("rolled-back", false), ("committed", true)] {
        let mut first = f.pool().begin().await.unwrap();
        let request = charge().key(name);
        let of_first = client.enqueue(&mut first, &request).await.unwrap();
        // Another key of the same job is not in its way.
        f.enqueue(&charge().key(format!("{name}-other"))).await.unwrap();
        let mut connection = f.connect().await;
        let second = tokio::spawn(async move { client.enqueue(&mut connection, &request).await });
        let waits = async {
            loop {
                let waiting: bool = sqlx::query_scalar(
                    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')",
                )
                .fetch_one(f.pool())
                .await
                .unwrap();
                if waiting {
                    break;
                }
            }
        };
        timeout(PATIENCE, waits).await.unwrap();
        if commits { first.commit().await } else { first.rollback().await }.unwrap();
        let of_second = timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
        assert_eq!(of_second.created, !commits);
        assert_eq!(of_second.execution_id == of_first.execution_id, commits);
    }
}

#[tokio::test]
async fn batches_with_the_same_keys_in_opposite_orders_do_not_wait_for_each_other_in_a_circle() {
    let f = Fixture::new().await;
    for round in 0..20 {
        let keys: Vec<Enqueue> = (0..50).map(|n| charge().key(format!("{round}-{n}"))).collect();
        let mut reversed = keys.clone();
        reversed.reverse();
        let (mut one, mut other) = (f.connect().await, f.connect().await);
        let client = Client::new();
        let (one, other) = tokio::join!(
            client.enqueue_many(&mut one, &keys),
            client.enqueue_many(&mut other, &reversed)
        );
        let made = [one.unwrap(), other.unwrap()].concat();
        assert_eq!(made.iter().filter(|answer| answer.created).count(), 50);
    }
}
