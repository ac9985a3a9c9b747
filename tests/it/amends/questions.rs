//! Verify tasks: what becomes of questions that nobody answers, and of answers about something else.

use serde_json::{Value, json};
use sexton_model::bulk::Kind;
use sexton_model::graveyard::Filter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_scheduler::step::Step as _;
use sexton_store::bulk::{self, MOST_ALIVE, NewBulk};
use sexton_store::operator::{Edit, edit};

use super::{BY, Fixture, now};

/// A requeue of everything, of a job with a verify task.
async fn asks(f: &Fixture) -> i64 {
    f.sql("UPDATE jobs SET verify_task = 'charged'").await;
    let filter = json!(Filter::default());
    let asked = NewBulk { verify: Some("task"), ..Fixture::asked(Kind::Requeue, &filter) };
    let id = bulk::create(f.store(), &asked, BY).await.unwrap();
    let scheduler = f.scheduler();
    // Selects, then asks.
    scheduler.run_once(now(2_000)).await.unwrap();
    scheduler.run_once(now(2_000)).await.unwrap();
    id
}

async fn items(f: &Fixture, bulk: i64) -> Vec<(String, Option<String>)> {
    sqlx::query_as("SELECT state, note FROM bulk_items WHERE bulk_id = $1 ORDER BY ordinal")
        .bind(bulk)
        .fetch_all(f.db.pool())
        .await
        .unwrap()
}

/// As a worker would have it.
async fn answered(f: &Fixture, happened: bool) {
    let statement = "UPDATE executions SET state = 'succeeded', outcome = 'succeeded', result = $1,
        finished_at = now(), next_attempt_at = NULL WHERE asks_about IS NOT NULL";
    let answered = sqlx::query(statement).bind(json!(happened));
    assert_eq!(answered.execute(f.db.pool()).await.unwrap().rows_affected(), 1);
}

async fn edited(f: &Fixture, id: ExecutionId) {
    let seen: Value = sqlx::query_scalar("SELECT params FROM executions WHERE id = $1")
        .bind(id.get())
        .fetch_one(f.db.pool())
        .await
        .unwrap();
    let params = json!({"customer": 2});
    let change =
        Edit { seen: &seen, params: &params, pool: None, requeue: false, unverified: false };
    let attempt = AttemptNumber::new(2).unwrap();
    edit(f.store(), id, attempt, change, BY, now(2_001)).await.unwrap();
}

#[tokio::test]
async fn a_question_that_nobody_begins_is_taken_back_and_its_execution_left() {
    let f = Fixture::new().await;
    let id = f.failed(10).await;
    let bulk = asks(&f).await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000 + 599)).await.unwrap();
    assert_eq!(items(&f, bulk).await, [("unasked".to_owned(), None)]);
    scheduler.run_once(now(2_000 + 601)).await.unwrap();
    scheduler.run_once(now(2_000 + 601)).await.unwrap();
    let note = "its verify task was begun by no worker within 10 minutes".to_owned();
    assert_eq!(items(&f, bulk).await, [("left".to_owned(), Some(note))]);
    assert_eq!(f.state(id).await, "failed/2");
    let taken_back =
        "SELECT count(*) FROM executions WHERE asks_about IS NOT NULL AND state = 'cancelled'";
    assert_eq!(f.number(taken_back).await, 1);
    assert_eq!(f.bulk(bulk).await.state, "done");
}

/// Whoever changed it wants what is there now, of which nothing was asked.
#[tokio::test]
async fn an_answer_about_params_that_were_changed_since_is_none() {
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
async fn nothing_is_asked_while_a_worker_of_the_version_before_is_at_work() {
    let f = Fixture::new().await;
    f.failed(10).await;
    let old = "INSERT INTO instances (id, kind, name, pid, version, started_at, heartbeat_at)
        VALUES (gen_random_uuid(), 'worker', 'old', 1, '0.0.1', $1, $1)";
    sqlx::query(old).bind(super::at(1_990)).execute(f.db.pool()).await.unwrap();
    let bulk = asks(&f).await;
    let questions = "SELECT count(*) FROM bulk_questions";
    assert_eq!(f.number(questions).await, 0);
    assert_eq!(items(&f, bulk).await, [("unasked".to_owned(), None)]);
    // Nothing was heard of it for longer than a minute.
    f.scheduler().run_once(now(2_060)).await.unwrap();
    assert_eq!(f.number(questions).await, 1);
}

#[tokio::test]
async fn bulks_that_wait_hold_up_none_however_many_they_are() {
    let f = Fixture::new().await;
    f.failed(10).await;
    f.sql(
        "INSERT INTO bulks (kind, asked, asked_at, actor, state, prepared_at, created_at)
         SELECT 'requeue', '{}', now(), 'ann', 'running', now(), now() FROM generate_series(1, 101)",
    )
    .await;
    let first = bulk::alive(f.store(), 0).await.unwrap();
    assert_eq!(first.len(), MOST_ALIVE);
    let next = bulk::alive(f.store(), first[MOST_ALIVE - 1]).await.unwrap();
    assert_eq!(
        next[0],
        first[MOST_ALIVE - 1] + 1,
        "the next round begins where the last one ended"
    );
    assert_eq!(next[1..], first[..MOST_ALIVE - 1]);
}

/// The preview looks at the first hundred thousand; what it has not seen is asked about all the same.
#[tokio::test]
async fn whether_anybody_is_asked_is_not_the_preview_s_to_say() {
    let f = Fixture::new().await;
    assert!(!bulk::some_job_asks(f.store()).await.unwrap());
    f.sql("UPDATE jobs SET verify_task = 'charged'").await;
    assert!(bulk::some_job_asks(f.store()).await.unwrap());
}
