//! The sweep: the failed queue in step with the rows, whatever people and the broker do to it.

mod acks;
mod batches;
mod lock;
mod properties;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{BasicGetOptions, BasicRejectOptions, QueuePurgeOptions};
use sexton_broker::{Properties, Publication};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::sweep::{Sweep, SweepReport, Tally};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::operator::{AuditContext, requeue};
use sexton_store::parked_messages::fail_unopened;
use sexton_tests::factory::NewExecution;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Fixture, now, ticket_of};

fn sweep(f: &Fixture) -> Sweep {
    let (link, publisher) = (f.link.clone(), f.publisher.clone());
    Sweep::new(f.store(), link, publisher, Arc::default(), CancellationToken::new())
}

/// Waits until the statement of this name waits for somebody else's lock.
async fn waits_for_a_lock(f: &Fixture, statement: &'static str) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND wait_event_type = 'Lock' AND query LIKE '-- ' || $1 || '%'";
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let asking = sqlx::query_scalar::<_, i64>(waiting).bind(statement);
        if asking.fetch_one(f.db.pool()).await.unwrap() > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{statement} waits");
        tokio::task::yield_now().await;
    }
}

/// A pass that must have been made, at second 100.
async fn pass(f: &Fixture) -> Tally {
    pass_of(&sweep(f)).await
}

async fn pass_of(sweep: &Sweep) -> Tally {
    match sweep.run_once(now(100)).await.unwrap() {
        SweepReport::Pass(tally) => tally,
        other => panic!("there was cause for a pass: {other:?}"),
    }
}

/// A failed execution with its message in the failed queue.
async fn parked(f: &Fixture) -> ExecutionId {
    let id = f.execution(State::Failed, 0).await;
    assert_eq!(f.relay().run_once(now(1)).await.unwrap().marked, 1);
    id
}

/// Puts a message into the failed queue, as a tool would.
async fn put(f: &Fixture, message_id: Option<&str>, attempt: Option<i64>, body: &str) {
    let properties =
        Properties { message_id: message_id.map(str::to_owned), attempt, ..Properties::default() };
    let message = Publication::new(f.namespace.failed(), body.into(), properties);
    f.publisher.publish_one(message).await.unwrap();
}

async fn parked_messages(f: &Fixture) -> Vec<(String, i64)> {
    f.take_all(&f.namespace.failed()).await
}

/// Moves every row to another state, as an operator's action would, without touching messages.
async fn alter(f: &Fixture, assignments: &'static str) {
    let statement = format!("UPDATE sexton.executions SET rev = rev + 1, {assignments}");
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(f.db.pool()).await.unwrap();
}

#[tokio::test]
async fn a_sweep_leaves_a_consistent_queue_alone() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    assert_eq!(sweep(&f).run_once(now(100)).await.unwrap(), SweepReport::NotDue);
    assert_eq!(parked_messages(&f).await, [ticket_of(id, 1)]);
}

#[tokio::test]
async fn a_sweep_removes_all_manual_copies_but_one() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    for _ in 0..2 {
        put(&f, Some(&id.to_string()), Some(1), "a copy").await;
    }
    let tally = pass(&f).await;
    assert_eq!(tally, Tally { kept: 1, removed: 2, complete: true, ..Tally::default() });
    assert_eq!(parked_messages(&f).await, [ticket_of(id, 1)]);
    assert_eq!(f.state(id).await, "failed/1");
}

#[tokio::test]
async fn a_sweep_removes_the_message_of_a_discarded_execution() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    alter(&f, "state = 'discarded'").await;
    assert_eq!(pass(&f).await.removed, 1);
    assert_eq!(parked_messages(&f).await, []);
    assert_eq!(f.state(id).await, "discarded/1");
}

#[tokio::test]
async fn a_sweep_removes_the_parked_copy_of_a_requeued_execution() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    alter(
        &f,
        "state = 'pending', finished_at = NULL, next_attempt_at = to_timestamp(1800000050),
         ticket_published_at = NULL, relay_after = to_timestamp(1800000050)",
    )
    .await;
    let tally = pass(&f).await;
    assert_eq!((tally.removed, tally.failed), (1, 0));
    assert_eq!(parked_messages(&f).await, []);
    assert_eq!(f.state(id).await, "pending/1, unpublished");
}

#[tokio::test]
async fn a_sweep_removes_messages_of_other_attempts_and_finished_executions() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    let failed = f.insert(NewExecution::new(job, State::Failed, super::at(0)).attempt(3)).await;
    f.relay().run_once(now(1)).await.unwrap();
    let done = f.execution(State::Succeeded, 0).await;
    put(&f, Some(&failed.to_string()), Some(2), "stale").await;
    put(&f, Some(&failed.to_string()), Some(4), "from a future that a backup has forgotten").await;
    put(&f, Some(&done.to_string()), Some(1), "done").await;
    let tally = pass(&f).await;
    assert_eq!((tally.kept, tally.removed), (1, 3));
    assert_eq!(parked_messages(&f).await, [ticket_of(failed, 3)]);
}

/// Takes the first ticket, which is `id`'s, as a worker that dies of it each time, until the broker
/// parks it; the limit is 100.
async fn hand_out_to_the_limit(f: &Fixture, id: ExecutionId) {
    let before = f.ready(&f.namespace.failed()).await;
    let main = f.namespace.main();
    for _ in 0..200 {
        let options = BasicGetOptions::default();
        let Some(taken) = f.raw.channel.basic_get((*main).into(), options).await.unwrap() else {
            break;
        };
        let first = taken.delivery.properties.message_id().as_ref().unwrap().as_str().to_owned();
        taken.delivery.acker.reject(BasicRejectOptions { requeue: true }).await.unwrap();
        if first != id.to_string() {
            break;
        }
    }
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while f.ready(&f.namespace.failed()).await == before {
        assert!(tokio::time::Instant::now() < deadline, "the broker parks it at its limit");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_requeued_ticket_that_the_broker_parks_again_fails_its_execution_again() {
    let f = Fixture::new().await;
    let id = f.execution(State::Pending, 0).await;
    f.relay().run_once(now(1)).await.unwrap();
    hand_out_to_the_limit(&f, id).await;
    assert_eq!(pass(&f).await.failed, 1);
    assert_eq!(f.relay().run_once(now(101)).await.unwrap().marked, 1);
    assert_eq!(f.state(id).await, "failed/2");
    // What a requeue leaves: the row's outcome and error class.
    alter(
        &f,
        "state = 'pending', finished_at = NULL, next_attempt_at = to_timestamp(1800000150),
         ticket_published_at = NULL, relay_after = to_timestamp(1800000150)",
    )
    .await;
    f.relay().run_once(now(151)).await.unwrap();
    hand_out_to_the_limit(&f, id).await;
    let tally = pass(&f).await;
    // The copy from before the requeue goes as well, in whatever order the two come.
    assert_eq!((tally.kept, tally.failed, tally.removed), (0, 1, 2));
    assert_eq!(f.state(id).await, "failed/3, unpublished");
    f.relay().run_once(now(152)).await.unwrap();
    assert_eq!(parked_messages(&f).await, [ticket_of(id, 3)]);
}

#[tokio::test]
async fn a_ticket_that_the_broker_parked_fails_its_execution() {
    let f = Fixture::new().await;
    let id = f.execution(State::Pending, 0).await;
    f.relay().run_once(now(1)).await.unwrap();
    let other = f.execution(State::Pending, 0).await;
    f.relay().run_once(now(1)).await.unwrap();
    hand_out_to_the_limit(&f, id).await;
    let (link, publisher, relay) = (f.link.clone(), f.publisher.clone(), Arc::<Notify>::default());
    let stop = CancellationToken::new();
    let sweep = Sweep::new(f.store(), link, publisher, Arc::clone(&relay), stop);
    let tally = pass_of(&sweep).await;
    assert_eq!((tally.kept, tally.failed, tally.removed), (0, 1, 1));
    assert!(pin!(relay.notified()).enable(), "the relay is woken");
    assert_eq!(f.state(id).await, "failed/2, unpublished");
    assert_eq!(f.column(id, "error_class").await.as_deref(), Some("delivery_limit"));
    assert_eq!(f.state(other).await, "pending/1");
    // What the broker parked is gone; the row's own message bears the next number.
    assert_eq!(f.ready(&f.namespace.failed()).await, 0);
    assert_eq!(f.relay().run_once(now(101)).await.unwrap().marked, 1);
    assert_eq!(sweep.run_once(now(102)).await.unwrap(), SweepReport::NotDue);
    assert_eq!(parked_messages(&f).await, [ticket_of(id, 2)]);
}

#[tokio::test]
async fn a_requeue_survives_a_sweep_that_died_before_removing_the_parked_message() {
    let f = Fixture::new().await;
    let id = f.execution(State::Pending, 0).await;
    f.relay().run_once(now(1)).await.unwrap();
    hand_out_to_the_limit(&f, id).await;
    // A pass as far as its death: the row is failed, the message is still there.
    let (store, first) = (f.store(), AttemptNumber::FIRST);
    let failing = fail_unopened(&store, id, first, "delivery_limit", "parked", now(100));
    assert!(failing.await.unwrap());
    let seen = f.column(id, "attempt").await.unwrap().parse().unwrap();
    let (seen, by) =
        (AttemptNumber::new(seen).unwrap(), AuditContext { actor: "tester", reason: None });
    requeue(&store, id, seen, by, now(101)).await.unwrap();
    let tally = pass(&f).await;
    assert_eq!((tally.kept, tally.failed, tally.removed), (0, 0, 1));
    assert_eq!(f.state(id).await, "pending/2, unpublished");
    f.relay().run_once(now(102)).await.unwrap();
    assert_eq!(f.tickets().await, [ticket_of(id, 2)]);
}

#[tokio::test]
async fn unknown_messages_keep_their_order_and_are_not_swept_twice() {
    let f = Fixture::new().await;
    let forgotten = uuid::Uuid::now_v7().to_string();
    put(&f, Some("not JSON"), None, "<xml/>").await;
    put(&f, Some(&forgotten), Some(7), "{}").await;
    put(&f, Some("foreign"), None, r#"{"type": "report", "id": 25}"#).await;
    put(&f, Some("future"), Some(1), "a header without an id").await;
    let sweep = sweep(&f);
    let tally = pass_of(&sweep).await;
    assert_eq!(tally, Tally { unknown: 4, complete: true, ..Tally::default() });
    assert_eq!(sweep.run_once(now(100)).await.unwrap(), SweepReport::NotDue);
    let left: Vec<_> = parked_messages(&f).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(left, ["not JSON", &*forgotten, "foreign", "future"]);
}

#[tokio::test]
async fn a_purged_failed_queue_is_refilled_from_the_rows() {
    let f = Fixture::new().await;
    let ids = [parked(&f).await, parked(&f).await, parked(&f).await];
    let failed = f.namespace.failed();
    f.raw.channel.queue_purge((*failed).into(), QueuePurgeOptions::default()).await.unwrap();
    put(&f, Some(&ids[1].to_string()), Some(1), "the only one left").await;
    let sweep = sweep(&f);
    let tally = pass_of(&sweep).await;
    assert_eq!((tally.kept, tally.marked_unpublished), (1, 2));
    assert_eq!(f.relay().run_once(now(100)).await.unwrap().marked, 2);
    assert_eq!(sweep.run_once(now(101)).await.unwrap(), SweepReport::NotDue);
    let mut left = parked_messages(&f).await;
    left.sort();
    let mut expected = ids.map(|id| ticket_of(id, 1));
    expected.sort();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn a_row_whose_message_was_published_while_the_pass_ran_is_not_judged() {
    let f = Fixture::new().await;
    let id = f.execution(State::Failed, 0).await;
    alter(&f, "ticket_published_at = to_timestamp(1800000100)").await;
    let tally = pass(&f).await;
    assert_eq!((tally.complete, tally.marked_unpublished), (true, 0));
    alter(&f, "ticket_published_at = to_timestamp(1800000099)").await;
    assert_eq!(pass(&f).await.marked_unpublished, 1);
    assert_eq!(f.state(id).await, "failed/1, unpublished");
}

#[tokio::test]
async fn one_replica_sweeps_at_a_time() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    put(&f, Some(&id.to_string()), Some(1), "a copy").await;
    let other = f.db.other_store().unwrap();
    let lock = ExclusiveLock::try_acquire(&other, ExclusiveTask::Sweep, None).await.unwrap();
    let lock = lock.expect("nobody else has it");
    assert_eq!(sweep(&f).run_once(now(100)).await.unwrap(), SweepReport::LockedElsewhere);
    lock.release().await.unwrap();
    assert_eq!(pass(&f).await.removed, 1);
}

#[tokio::test]
async fn a_stopped_pass_ends_early_and_judges_nobody_absent() {
    let f = Fixture::new().await;
    let ids = [parked(&f).await, parked(&f).await];
    put(&f, Some(&ids[0].to_string()), Some(1), "a copy").await;
    let stop = CancellationToken::new();
    stop.cancel();
    let (link, publisher) = (f.link.clone(), f.publisher.clone());
    let sweep = Sweep::new(f.store(), link, publisher, Arc::default(), stop);
    assert_eq!(pass_of(&sweep).await, Tally::default());
    assert_eq!(f.ready(&f.namespace.failed()).await, 3);
    assert_eq!([f.state(ids[0]).await, f.state(ids[1]).await], ["failed/1", "failed/1"]);
}

#[tokio::test]
async fn a_deleted_failed_queue_is_declared_again_and_filled_from_the_rows() {
    let f = Fixture::new().await;
    let id = parked(&f).await;
    let failed = f.namespace.failed();
    f.raw
        .channel
        .queue_delete((*failed).into(), lapin::options::QueueDeleteOptions::default())
        .await
        .unwrap();
    let tally = pass(&f).await;
    assert_eq!(tally.marked_unpublished, 1);
    f.relay().run_once(now(100)).await.unwrap();
    assert_eq!(parked_messages(&f).await, [ticket_of(id, 1)]);
}
