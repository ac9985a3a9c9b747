//! Lists of executions: where a page begins, and what a slow one is called.

use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::state::State;
use sexton_store::StoreError;
use sexton_store::executions::{ExecutionPosition, MAX_WALKED_EXECUTIONS as WALK, list};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewExecution;
use uuid::Uuid;

use super::plans::of;
use super::{Fixture, at};

#[tokio::test]
async fn a_page_continues_after_the_previous_one_even_if_that_row_is_gone() {
    let fixture = Fixture::new().await;
    let job = fixture.job;
    let mut ids = Vec::new();
    for hour in 0..4 {
        let execution = NewExecution::new(job, State::Succeeded, at(hour * 3_600));
        ids.push(execution.insert(fixture.db.pool()).await.unwrap().get());
    }
    sqlx::query("DELETE FROM sexton.executions WHERE id = $1")
        .bind(ids[2])
        .execute(fixture.db.pool())
        .await
        .unwrap();
    for filter in [of(job.get()), ExecutionFilter::default()] {
        let after = ExecutionPosition { claimed_at: at(2 * 3_600), id: ids[2] };
        let page = list(fixture.store(), &filter, Some(after), 10, WALK).await.unwrap();
        let found: Vec<Uuid> = page.executions.iter().map(|row| row.id).collect();
        assert_eq!(found, [ids[1], ids[0]]);
    }
}

#[tokio::test]
async fn a_slow_query_is_distinguished_from_an_unreachable_database() {
    let db = TestDatabase::create().await.unwrap();
    let mut connection = db.pool().acquire().await.unwrap();
    sqlx::query("SET statement_timeout = 10").execute(&mut *connection).await.unwrap();
    let slow = sqlx::query("SELECT pg_sleep(60)").execute(&mut *connection).await;
    let error = StoreError::from(slow.unwrap_err());
    assert!(matches!(error, StoreError::TooSlow(_)), "{error:?}");
    assert!(error.is_transient());
    let text = error.to_string();
    assert!(text.contains("--job") && !text.contains("does not answer"), "{text}");
    // What is set on a connection must not go back to the pool with it.
    connection.close().await.unwrap();
}
