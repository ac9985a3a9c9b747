//! Verify tasks: what becomes of questions that nobody answers, and of answers about something else.

use serde_json::{Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::verify_task::VerifyAnswer;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::bulk::{self, MAX_ACTIVE_BULKS, NewBulk};
use sexton_store::edits::{AfterEdit, Edit, edit};

use super::{BY, Fixture, now};

/// A requeue of everything, of a job with a verify task.
async fn asks(f: &Fixture) -> i64 {
    f.sql("UPDATE sexton.jobs SET verify_task = 'charged'").await;
    let filter = json!(FailureFilter::default());
    let new_bulk =
        NewBulk { verify: Some("task"), ..Fixture::new_bulk(BulkKind::Requeue, &filter) };
    let id = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
    let scheduler = f.scheduler();
    // Selects, then asks.
    scheduler.run_once(now(2_000)).await.unwrap();
    scheduler.run_once(now(2_000)).await.unwrap();
    id
}

async fn items(f: &Fixture, bulk: i64) -> Vec<(String, Option<String>)> {
    sqlx::query_as("SELECT state, note FROM sexton.bulk_items WHERE bulk_id = $1 ORDER BY ordinal")
        .bind(bulk)
        .fetch_all(f.db.pool())
        .await
        .unwrap()
}

/// As a worker would have it.
async fn answered(f: &Fixture, happened: bool) {
    let statement =
        "UPDATE sexton.executions SET state = 'succeeded', outcome = 'succeeded', result = $1,
        finished_at = now(), next_attempt_at = NULL WHERE asks_about IS NOT NULL";
    let answered = sqlx::query(statement).bind(json!(happened));
    assert_eq!(answered.execute(f.db.pool()).await.unwrap().rows_affected(), 1);
}

async fn edited(f: &Fixture, id: ExecutionId) {
    let seen: Value = sqlx::query_scalar("SELECT params FROM sexton.executions WHERE id = $1")
        .bind(id.get())
        .fetch_one(f.db.pool())
        .await
        .unwrap();
    let params = json!({"customer": 2});
    let change = Edit { seen: &seen, params: &params, pool: None, then: AfterEdit::Stay };
    let attempt = AttemptNumber::new(2).unwrap();
    edit(f.store(), id, attempt, change, None, BY, now(2_001)).await.unwrap();
}

#[tokio::test]
async fn an_unstarted_question_is_cancelled_and_its_execution_left() {
    let f = Fixture::new().await;
    let id = f.failed(10).await;
    let bulk = asks(&f).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000 + 599)).await.unwrap();
    assert_eq!(items(&f, bulk).await, [("unasked".to_owned(), None)]);
    // In a busy pool it is waited for.
    sqlx::query(
        "WITH w AS (
            INSERT INTO sexton.instances (id, kind, name, pid, version, pools, started_at, heartbeat_at)
            VALUES (gen_random_uuid(), 'worker', 'busy', 1, '0.1.0', '{default}', $1, $1) RETURNING id)
         INSERT INTO sexton.offers (instance_id, task_type) SELECT id, 'charged' FROM w",
    )
    .bind(super::at(2_600))
    .execute(f.db.pool())
    .await
    .unwrap();
    scheduler.run_once(now(2_000 + 601)).await.unwrap();
    assert_eq!(items(&f, bulk).await, [("unasked".to_owned(), None)]);
    // A minute after the worker was heard of last.
    scheduler.run_once(now(2_000 + 660)).await.unwrap();
    scheduler.run_once(now(2_000 + 660)).await.unwrap();
    let note = "its verify task waits for 10 minutes, and no worker at work in its pool offers it"
        .to_owned();
    assert_eq!(items(&f, bulk).await, [("left".to_owned(), Some(note))]);
    assert_eq!(f.state(id).await, "failed/2");
    let taken_back = "SELECT count(*) FROM sexton.executions WHERE asks_about IS NOT NULL AND state = 'cancelled'";
    assert_eq!(f.number(taken_back).await, 1);
    assert_eq!(f.bulk(bulk).await.state, "done");
}

/// The operator who edited the params wants those, and the question was about the old ones.
#[tokio::test]
async fn an_answer_for_outdated_params_is_ignored() {
    for happened in [true, false] {
        let f = Fixture::new().await;
        let id = f.failed(10).await;
        let bulk = asks(&f).await;
        answered(&f, happened).await;
        edited(&f, id).await;
        let scheduler = f.scheduler();
        scheduler.run_once(now(2_002)).await.unwrap();
        scheduler.run_once(now(2_002)).await.unwrap();
        let [(state, note)] = items(&f, bulk).await.try_into().unwrap();
        let expected = if happened { "left" } else { "refused" };
        assert_eq!(state, expected, "{note:?}");
        assert!(note.as_deref().is_some_and(|note| note.contains("changed")), "{note:?}");
        assert_eq!(f.state(id).await, "failed/2");
    }
}

/// Such a worker knows nothing of questions: it would ask under the question's own key.
#[tokio::test]
async fn questions_wait_while_a_worker_of_the_previous_version_runs() {
    let f = Fixture::new().await;
    f.failed(10).await;
    let old =
        "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
        VALUES (gen_random_uuid(), 'worker', 'old', 1, '0.0.1', $1, $1)";
    sqlx::query(old).bind(super::at(1_990)).execute(f.db.pool()).await.unwrap();
    let bulk = asks(&f).await;
    let questions = "SELECT count(*) FROM sexton.bulk_questions";
    assert_eq!(f.number(questions).await, 0);
    assert_eq!(items(&f, bulk).await, [("unasked".to_owned(), None)]);
    let waits = bulk::list_blocked_questions(f.store(), &[bulk], now(2_000)).await.unwrap();
    assert_eq!(waits[&bulk].old_workers, ["old 0.0.1"]);
    // Nothing was heard of it for longer than a minute.
    f.scheduler().run_once(now(2_060)).await.unwrap();
    assert_eq!(f.number(questions).await, 1);
    let waits = bulk::list_blocked_questions(f.store(), &[bulk], now(2_060)).await.unwrap();
    assert_eq!((waits[&bulk].old_workers.len(), waits[&bulk].unheard[0].questions), (0, 1));
}

#[tokio::test]
async fn waiting_bulks_delay_no_other_bulk() {
    let f = Fixture::new().await;
    f.failed(10).await;
    f.sql(
        "INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, prepared_at, created_at)
         SELECT 'requeue', '{}', now(), 'ann', 'running', now(), now() FROM generate_series(1, 101)",
    )
    .await;
    let first = bulk::list_active(f.store(), 0).await.unwrap();
    assert_eq!(first.len(), MAX_ACTIVE_BULKS);
    let next = bulk::list_active(f.store(), first[MAX_ACTIVE_BULKS - 1]).await.unwrap();
    assert_eq!(
        next[0],
        first[MAX_ACTIVE_BULKS - 1] + 1,
        "the next round begins where the last one ended"
    );
    assert_eq!(next[1..], first[..MAX_ACTIVE_BULKS - 1]);
}

/// Nobody hears them any more; one that runs ends first.
#[tokio::test]
async fn stopping_a_bulk_cancels_its_questions_first() {
    let f = Fixture::new().await;
    f.many(3).await;
    let bulk = asks(&f).await;
    bulk::stop(f.store(), bulk, BY).await.unwrap();
    f.sql(
        "UPDATE sexton.executions e SET state = s.state, next_attempt_at = NULL, finished_at = s.finished,
             outcome = s.outcome, ticket_published_at = now(), started_at = now(), lease_until = s.lease,
             worker_id = s.worker, open_token = s.worker
         FROM sexton.bulk_questions q, (VALUES
             (1, 'failed', now(), 'error', NULL, NULL),
             (2, 'running', NULL, NULL, now() + interval '1 hour', gen_random_uuid()))
             AS s (ordinal, state, finished, outcome, lease, worker)
         WHERE e.id = q.question AND q.ordinal = s.ordinal",
    )
    .await;
    let later = Some(sexton_service::clock::now() + chrono::Days::new(31));
    assert_eq!(bulk::prune(f.store(), 30, 1_000, later).await.unwrap(), 2);
    let states = "SELECT string_agg(e.state, ' ' ORDER BY q.ordinal) FROM sexton.executions e
        JOIN sexton.bulk_questions q ON q.question = e.id";
    assert_eq!(f.text(states).await, "discarded running cancelled");
    assert_eq!(
        bulk::prune(f.store(), 30, 1_000, later).await.unwrap(),
        0,
        "the one that runs is its"
    );
    f.sql(
        "UPDATE sexton.executions SET state = 'succeeded', outcome = 'succeeded', finished_at = now(),
             worker_id = NULL, open_token = NULL, lease_until = NULL WHERE state = 'running'",
    )
    .await;
    while bulk::prune(f.store(), 30, 1_000, later).await.unwrap() > 0 {}
    assert_eq!(f.number("SELECT count(*) FROM sexton.bulks").await, 0);
    let query =
        "SELECT count(*) FROM sexton.operator_actions WHERE actor = 'sexton' AND bulk_id = 1";
    assert_eq!(f.number(query).await, 2);
}

/// A verify command runs outside of any transaction: the params may change meanwhile.
#[tokio::test]
async fn a_command_answer_for_outdated_params_is_ignored() {
    for answer in [VerifyAnswer::Happened, VerifyAnswer::NotYet] {
        let f = Fixture::new().await;
        let id = f.failed(10).await;
        let filter = json!(FailureFilter::default());
        let new_bulk =
            NewBulk { verify: Some("command"), ..Fixture::new_bulk(BulkKind::Requeue, &filter) };
        let bulk = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
        f.scheduler().run_once(now(2_000)).await.unwrap();
        let seen: Value = sqlx::query_scalar("SELECT params FROM sexton.executions WHERE id = $1")
            .bind(id.get())
            .fetch_one(f.db.pool())
            .await
            .unwrap();
        edited(&f, id).await;
        let judged = bulk::record_answer(f.store(), bulk, 1, &answer, &seen, BY, now(2_002)).await;
        assert!(judged.unwrap());
        let note = "its params were changed while the command was asked".to_owned();
        assert_eq!(items(&f, bulk).await, [("left".to_owned(), Some(note))]);
        assert_eq!(f.state(id).await, "failed/2");
    }
}
