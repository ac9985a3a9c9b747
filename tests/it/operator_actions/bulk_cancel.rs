//! A bulk that cancels: what waits ends, what runs is asked to end, and nothing else is touched.

use futures_util::future::join_all;
use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::bulk::{self, BulkSelector, NewBulk};
use sexton_store::executions;
use sexton_store::operator;
use sexton_tests::factory::{NewExecution, NewJob};

use super::{BY, Fixture, at, finish, now};

impl Fixture {
    async fn in_state(&self, state: State, second: i64) -> ExecutionId {
        self.in_state_of(self.job, state, second).await
    }

    async fn in_state_of(&self, job: JobId, state: State, second: i64) -> ExecutionId {
        NewExecution::new(job, state, at(second)).published().insert(self.db.pool()).await.unwrap()
    }

    async fn cancel(&self, filter: &ExecutionFilter) -> i64 {
        let filter = json!(filter);
        bulk::create(self.store(), &Self::new_bulk(BulkKind::Cancel, &filter), BY).await.unwrap()
    }

    async fn cancel_requested(&self, id: ExecutionId) -> bool {
        sqlx::query_scalar("SELECT cancel_requested FROM sexton.executions WHERE id = $1")
            .bind(id.get())
            .fetch_one(self.db.pool())
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_bulk_cancels_executions_that_wait_and_requests_the_cancel_of_those_that_run() {
    let f = Fixture::new().await;
    let (pending, retrying) =
        (f.in_state(State::Pending, 1).await, f.in_state(State::Retrying, 2).await);
    let running = f.in_state(State::Running, 3).await;
    let failed = f.failed(4).await;
    let later = f.in_state(State::Pending, 1_001).await;
    let all = ExecutionFilter::default();
    let preview = bulk::preview_cancel(f.store(), &all, now(1_000)).await.unwrap();
    assert_eq!((preview.count, preview.running), (3, 1));
    assert_eq!((preview.oldest, preview.newest), (Some(at(1)), Some(at(3))));
    let id = f.cancel(&ExecutionFilter::default()).await;
    finish(&f.scheduler(), now(2_000)).await;
    assert_eq!(f.stands(id).await, "done 3/3/0");
    for (execution, state) in [
        (pending, "cancelled/1"),
        (retrying, "cancelled/1"),
        (running, "running/1"),
        (failed, "failed/2"),
        (later, "pending/1"),
    ] {
        assert_eq!(f.state(execution).await, state);
    }
    assert!(f.cancel_requested(running).await);
    for (after, count) in [
        (json!({"state": "cancelled"}), 2),
        (json!({"state": "running", "cancel_requested": true}), 1),
    ] {
        let recorded = format!(
            "SELECT count(*) FROM sexton.operator_actions WHERE action = 'cancel' AND bulk_id = {id}
             AND actor = 'ann@ops1' AND reason = 'bank is back' AND execution_id IS NOT NULL
             AND after = '{after}' AND before ->> 'cancel_requested' = 'false'"
        );
        assert_eq!(f.number(&recorded).await, count, "{after}");
    }
}

#[tokio::test]
async fn a_cancel_is_refused_when_the_execution_has_ended_or_was_cancelled_meanwhile() {
    let f = Fixture::new().await;
    let ended = f.in_state(State::Running, 1).await;
    let requested = f.in_state(State::Running, 2).await;
    let tried_again = f.in_state(State::Retrying, 3).await;
    let id = f.cancel(&ExecutionFilter::default()).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!(f.stands(id).await, "running 3/0/0");
    sqlx::query(
        "UPDATE sexton.executions SET state = 'succeeded', outcome = 'succeeded', finished_at = now(), lease_until = NULL,
             open_token = NULL, worker_id = NULL WHERE id = $1",
    )
    .bind(ended.get())
    .execute(f.db.pool())
    .await
    .unwrap();
    operator::cancel(f.store(), requested, BY, now(2_001)).await.unwrap();
    // An attempt more is no reason to let it run.
    sqlx::query("UPDATE sexton.executions SET attempt = 2 WHERE id = $1")
        .bind(tried_again.get())
        .execute(f.db.pool())
        .await
        .unwrap();
    finish(&scheduler, now(2_002)).await;
    assert_eq!(f.stands(id).await, "done 3/1/2");
    assert_eq!(f.state(tried_again).await, "cancelled/2");
    let notes = bulk::list_items(f.store(), id, &["refused"], 0, 10).await.unwrap();
    let mut notes: Vec<_> = notes.into_iter().filter_map(|item| item.note).collect();
    notes.sort();
    assert_eq!(notes, ["it was succeeded at attempt 1", "its cancel was requested before"]);
}

#[tokio::test]
async fn a_cancel_is_refused_when_an_operator_has_requeued_the_execution_since_the_preview() {
    let f = Fixture::new().await;
    let execution = f.in_state(State::Retrying, 1).await;
    let id = f.cancel(&ExecutionFilter::default()).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!(f.stands(id).await, "running 1/0/0");
    // Meanwhile it fails for good, and somebody repairs the cause and requeues it.
    f.sql(
        "UPDATE sexton.executions SET state = 'failed', outcome = 'failed', finished_at = now(), next_attempt_at = NULL",
    )
    .await;
    operator::requeue(f.store(), execution, AttemptNumber::FIRST, BY, now(2_001)).await.unwrap();
    finish(&scheduler, now(2_002)).await;
    assert_eq!(f.stands(id).await, "done 1/0/1");
    assert_eq!(f.state(execution).await, "pending/1");
    let notes = bulk::list_items(f.store(), id, &["refused"], 0, 10).await.unwrap();
    assert_eq!(notes[0].note.as_deref(), Some("it was requeued after the preview"));
}

#[tokio::test]
async fn many_schedulers_cancel_each_execution_of_a_large_bulk_once() {
    let f = Fixture::new().await;
    f.many(4_500).await;
    f.sql(
        "UPDATE sexton.executions SET state = 'pending', finished_at = NULL, next_attempt_at = relay_after, outcome = NULL",
    )
    .await;
    let id = f.cancel(&ExecutionFilter::default()).await;
    let schedulers: Vec<_> = (0..3).map(|_| f.scheduler()).collect();
    while f.bulk(id).await.state != "done" {
        for round in join_all(schedulers.iter().map(|one| one.run_once(now(2_000)))).await {
            round.unwrap();
        }
    }
    assert_eq!(f.stands(id).await, "done 4500/4500/0");
    let cancelled = "SELECT count(*) FROM sexton.executions WHERE state = 'cancelled' AND rev = 2";
    assert_eq!(f.number(cancelled).await, 4_500);
    let recorded =
        "SELECT count(DISTINCT execution_id) FROM sexton.operator_actions WHERE action = 'cancel'";
    assert_eq!(f.number(recorded).await, 4_500);
    assert_eq!(f.tickets().await, 0);
}

#[tokio::test]
async fn a_cancel_selects_the_executions_that_a_list_with_the_same_filter_shows() {
    let f = Fixture::new().await;
    let other = NewJob::new("shop.mail").insert(f.db.pool()).await.unwrap();
    f.in_state(State::Pending, 1).await;
    f.in_state(State::Running, 2).await;
    let retrying = f.in_state(State::Retrying, 3).await;
    f.in_state_of(other, State::Pending, 4).await;
    sqlx::query(
        "UPDATE sexton.executions SET pool = 'slow', error_class = 'exit_1', error_message = 'card 4891 declined',
             params = '{\"customer\": 4891}' WHERE id = $1",
    )
    .bind(retrying.get())
    .execute(f.db.pool())
    .await
    .unwrap();
    f.sql("UPDATE sexton.jobs SET labels = '{\"team\": \"billing\"}' WHERE name = 'shop.mail'")
        .await;
    let all = ExecutionFilter {
        states: vec![State::Pending, State::Running, State::Retrying],
        ..ExecutionFilter::default()
    };
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (all.clone(), 4),
        (ExecutionFilter { states: vec![State::Pending], ..all.clone() }, 2),
        (ExecutionFilter { job: Some(other), ..all.clone() }, 1),
        (ExecutionFilter { pool: text("slow"), ..all.clone() }, 1),
        (ExecutionFilter { task_type: text("work"), ..all.clone() }, 4),
        (ExecutionFilter { error_class: text("exit_1"), ..all.clone() }, 1),
        (ExecutionFilter { text: text("4891 decl"), ..all.clone() }, 1),
        (ExecutionFilter { worker: text("nobody"), ..all.clone() }, 0),
        (ExecutionFilter { since: Some(at(2)), until: Some(at(4)), ..all.clone() }, 2),
        (ExecutionFilter { params: vec!["customer=4891".parse().unwrap()], ..all.clone() }, 1),
        (
            ExecutionFilter {
                labels: [("team".to_owned(), "billing".to_owned())].into(),
                ..all.clone()
            },
            1,
        ),
    ] {
        let listed =
            executions::list(f.store(), &filter, None, 100, executions::MAX_WALKED_EXECUTIONS)
                .await
                .unwrap()
                .executions;
        let previewed = bulk::preview_cancel(f.store(), &filter, now(1_000)).await.unwrap();
        assert_eq!((listed.len(), previewed.count), (expected, expected as u64), "{filter:?}");
    }
}

#[tokio::test]
async fn a_scheduler_of_an_older_version_stops_a_cancel_whose_filter_it_does_not_know() {
    let f = Fixture::new().await;
    let waits = f.in_state(State::Pending, 1).await;
    let filter = json!({"colour": "red"});
    let new = NewBulk {
        selector: BulkSelector::Filter(&filter),
        ..Fixture::new_bulk(BulkKind::Cancel, &filter)
    };
    let id = bulk::create(f.store(), &new, BY).await.unwrap();
    finish(&f.scheduler(), now(2_000)).await;
    assert_eq!(f.stands(id).await, "stopped 0/0/0");
    assert_eq!(f.state(waits).await, "pending/1");
}
