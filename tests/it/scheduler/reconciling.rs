//! The reconciler: tickets that the broker lost, and those that only wait.

use std::sync::Arc;

use lapin::options::QueueDeleteOptions;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::maintenance::reconciler::Reconciler;
use sexton_tests::factory::NewExecution;

use super::{Fixture, at, now, ticket_of};

/// The patience with a ticket that was never missed before, in seconds.
const GRACE: i64 = 300;

fn reconciler(f: &Fixture) -> Reconciler {
    Reconciler::new(f.store(), f.link.clone(), Arc::default())
}

/// A ticket that was published at `second`, when it was due.
async fn published(f: &Fixture, second: i64) -> ExecutionId {
    let id = f.execution(State::Pending, second).await;
    assert_eq!(f.relay().run_once(now(second)).await.unwrap().marked, 1);
    id
}

#[tokio::test]
async fn a_ticket_lost_with_its_queue_is_republished_only_after_the_grace() {
    let f = Fixture::new().await;
    let id = published(&f, 0).await;
    let queue = f.namespace.main();
    f.raw.channel.queue_delete((*queue).into(), QueueDeleteOptions::default()).await.unwrap();
    assert_eq!(reconciler(&f).run_once(now(GRACE)).await.unwrap().unaccounted, 0);
    let reconciled = reconciler(&f).run_once(now(GRACE + 1)).await.unwrap();
    assert_eq!((reconciled.unaccounted, reconciled.marked_unpublished), (1, 1));
    assert_eq!(f.state(id).await, "pending/1, unpublished");
    assert_eq!(f.relay().run_once(now(GRACE + 1)).await.unwrap().marked, 1);
    assert_eq!(f.tickets().await, [ticket_of(id, 1)]);
    assert_eq!(reconciler(&f).run_once(now(GRACE + 2)).await.unwrap().unaccounted, 0);
}

#[tokio::test]
async fn the_reconciler_s_grace_doubles_each_time_a_ticket_is_missed() {
    let f = Fixture::new().await;
    published(&f, 0).await;
    f.tickets().await;
    let first = GRACE + 1;
    assert_eq!(reconciler(&f).run_once(now(first)).await.unwrap().marked_unpublished, 1);
    f.relay().run_once(now(first)).await.unwrap();
    f.tickets().await;
    let patient = reconciler(&f).run_once(now(first + GRACE + 1)).await.unwrap();
    assert_eq!(patient.marked_unpublished, 0);
    let missed = reconciler(&f).run_once(now(first + 2 * GRACE + 1)).await.unwrap();
    assert_eq!(missed.marked_unpublished, 1);
}

#[tokio::test]
async fn a_ticket_waiting_in_a_long_queue_is_not_republished() {
    let f = Fixture::new().await;
    let id = published(&f, 0).await;
    let reconciled = reconciler(&f).run_once(now(10 * GRACE)).await.unwrap();
    assert_eq!((reconciled.unaccounted, reconciled.marked_unpublished), (1, 0));
    assert_eq!(f.state(id).await, "pending/1");
}

#[tokio::test]
async fn a_ticket_overtaken_by_younger_ones_is_republished() {
    let f = Fixture::new().await;
    let lost = published(&f, 0).await;
    f.tickets().await;
    let waiting = published(&f, 600).await;
    let job = f.ids("SELECT job_id FROM sexton.executions").await[0];
    let job = sexton_model::id::JobId::new(job);
    f.insert(NewExecution::new(job, State::Running, at(500)).published()).await;
    let reconciled = reconciler(&f).run_once(now(700)).await.unwrap();
    assert_eq!(reconciled.marked_unpublished, 1, "the queue is not empty, but it is younger");
    assert_eq!(f.state(lost).await, "pending/1, unpublished");
    assert_eq!(f.state(waiting).await, "pending/1");
}

#[tokio::test]
async fn the_reconciler_judges_nothing_without_a_broker() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let id = f.insert(NewExecution::new(job, State::Pending, at(0)).published()).await;
    assert!(reconciler(&f).run_once(now(10 * GRACE)).await.is_err());
    assert_eq!(f.state(id).await, "pending/1");
}
