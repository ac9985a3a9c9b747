//! The rescuer: attempts whose worker was never heard of again.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use sexton_model::retry::RetryPolicy;
use sexton_model::state::State;
use sexton_scheduler::rescuer::Rescuer;
use sexton_scheduler::step::Step;
use sexton_tests::factory::NewExecution;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Fixture, at, now};

fn rescuer(f: &Fixture, relay: &Arc<Notify>) -> Rescuer {
    let defaults = RetryPolicy { max_crashes: 2, ..RetryPolicy::default() };
    Rescuer::new(f.store(), defaults, Arc::clone(relay))
}

#[tokio::test]
async fn a_lost_attempt_is_tried_again_at_once_and_the_relay_is_told() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    let relay = Arc::default();
    let rescued = rescuer(&f, &relay).run_once(now(21)).await.unwrap();
    assert_eq!((rescued.found, rescued.lost), (1, 1));
    assert_eq!(f.state(id).await, "retrying/2, owed");
    let due = f.column(id, "(next_attempt_at <= to_timestamp(1800000021))").await;
    assert_eq!(due.as_deref(), Some("true"));
    assert_eq!(f.column(id, "crashes_used").await.as_deref(), Some("1"));
    timeout(Duration::ZERO, relay.notified()).await.expect("the relay is woken");
    let lost = "SELECT count(*) FROM attempts WHERE outcome = 'lost' AND finished_at IS NOT NULL";
    assert_eq!(f.number(lost).await, 1);
}

#[tokio::test]
async fn a_lease_that_still_runs_is_left_alone() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Running, 0).await;
    assert_eq!(rescuer(&f, &Arc::default()).run_once(now(20)).await.unwrap().found, 0);
    assert_eq!(f.state(id).await, "running/1");
}

#[tokio::test]
async fn an_execution_that_loses_its_workers_over_the_budget_is_parked() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut execution = NewExecution::new(job, State::Running, at(0)).attempt(2);
    execution.crashes_used = 1;
    let id = f.insert(execution).await;
    rescuer(&f, &Arc::default()).run_once(now(21)).await.unwrap();
    assert_eq!(f.state(id).await, "failed/3, owed");
    assert_eq!(f.column(id, "error_class").await.as_deref(), Some("lost"));
}

#[tokio::test]
async fn a_lost_attempt_that_was_to_be_cancelled_is_cancelled() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut execution = NewExecution::new(job, State::Running, at(0)).published();
    execution.cancel_requested = true;
    let id = f.insert(execution).await;
    rescuer(&f, &Arc::default()).run_once(now(21)).await.unwrap();
    assert_eq!(f.state(id).await, "cancelled/1");
}

#[tokio::test]
async fn two_rescuers_at_once_end_each_lost_attempt_once() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    for _ in 0..50 {
        let mut execution = NewExecution::new(job, State::Running, at(0));
        execution.lease = TimeDelta::seconds(1);
        f.insert(execution).await;
    }
    let relay = Arc::default();
    let (one, two) = (rescuer(&f, &relay), rescuer(&f, &relay));
    let (one, two) = tokio::join!(one.run_once(now(5)), two.run_once(now(5)));
    let mut lost = one.unwrap().lost + two.unwrap().lost;
    // A row that the other one held for a moment is passed over, and met again.
    lost += rescuer(&f, &relay).run_once(now(5)).await.unwrap().lost;
    assert_eq!(lost, 50);
    assert_eq!(f.number("SELECT count(*) FROM executions WHERE attempt = 2").await, 50);
}
