//! Ways into the failed queue that take a database or a hand which nobody expects.

use chrono::TimeDelta;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::Platform;

use super::probe::assert_sound;
use super::wire::{Message, Wire};
use super::{DEADLINE, one_slot, platform, succeeded, trigger};

const REPORT: &str = "[[job]]\nname = \"billing.report\"\ntask = \"report\"\n";

/// Beside all that the schema wants of its rows.
async fn refuse(platform: &Platform, what: &str) {
    let refuse = format!("ALTER TABLE sexton.executions ADD CONSTRAINT of_a_test CHECK ({what})");
    sqlx::query(sqlx::AssertSqlSafe(refuse)).execute(platform.store().pool()).await.unwrap();
}

/// What of a task waits in the failed queue and is moved by hand to where nobody can run it is not lost there.
#[tokio::test]
async fn a_parked_message_moved_to_a_pool_without_its_task_type_is_parked_again() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let pool = platform.store().pool();
    let job = NewJob { task_type: "unheard".to_owned(), ..NewJob::new("billing.unheard") };
    let job = job.insert(pool).await.unwrap();
    let at = clock::now() - TimeDelta::minutes(2);
    let id = NewExecution::new(job, State::Failed, at).published().insert(pool).await.unwrap();
    let wire = Wire::connect(&platform).await;
    let body = format!(r#"{{"type":"unheard","execution_id":"{id}","attempt":1}}"#);
    let moved = Message::new(body).id(id.to_string()).header("sexton-attempt", 1);
    wire.send(std::slice::from_ref(&moved)).await;
    let [parked] = wire.parked(&platform, 1).await.try_into().unwrap();
    assert_eq!(parked.body, moved.body);
    let reason = parked.reason.unwrap();
    assert!(reason.contains("unheard") && reason.contains("WORKER_TASKS"), "{reason}");
    let row: (String, i32) = sqlx::query_as("SELECT state, attempt FROM sexton.executions")
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(row, ("failed".to_owned(), 1));
    assert_eq!(wire.depth(wire.main()).await, 0);
    assert_sound(&worker);
}

#[tokio::test]
async fn an_execution_that_the_database_refuses_to_open_fails_and_is_parked_with_the_reason() {
    let platform = platform().await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    platform.apply(REPORT).await.unwrap();
    refuse(&platform, "state <> 'running'").await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    let id = trigger(&platform, "billing.report").await;
    let [parked] = wire.parked(&platform, 1).await.try_into().unwrap();
    assert_eq!((parked.id, parked.attempt), (Some(id.to_string()), Some(2)));
    let row: (String, i32, String, String) =
        sqlx::query_as("SELECT state, attempt, error_class, error_message FROM sexton.executions")
            .fetch_one(platform.store().pool())
            .await
            .unwrap();
    assert_eq!((&*row.0, row.1, &*row.2), ("failed", 2, "unopenable"), "{}", row.3);
    assert!(row.3.contains("refuses to open it") && row.3.contains("of_a_test"), "{}", row.3);
    let is_logged = async || worker.log().contains(" is parked: ").then_some(());
    platform.eventually("the worker says so", DEADLINE, is_logged).await;
    assert_sound(&worker);
}

#[tokio::test]
async fn a_foreign_task_refused_by_the_database_is_parked_unchanged() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    refuse(&platform, "execution_key <> 'odd'").await;
    let wire = Wire::connect(&platform).await;
    let task = |id| Message::new(r#"{"type":"report","params_scheduler":{}}"#).id(id);
    wire.send(&[task("odd"), task("behind")]).await;
    succeeded(&platform, "behind").await;
    let [parked] = wire.parked(&platform, 1).await.try_into().unwrap();
    assert_eq!((parked.id.as_deref(), parked.body), (Some("odd"), task("odd").body));
    let reason = parked.reason.unwrap();
    assert!(reason.contains("the database refuses this task"), "{reason}");
    assert_eq!(wire.depth(wire.main()).await, 0);
    assert_sound(&worker);
}
