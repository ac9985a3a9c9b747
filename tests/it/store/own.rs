//! A connection that its holder keeps.

use sexton_store::own::OwnConnection;
use sexton_tests::database::TestDatabase;
use sqlx::PgConnection;

async fn server(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_connection_of_one_s_own_is_kept_as_long_as_its_answers_come() {
    let db = TestDatabase::create().await.unwrap();
    let mut own = OwnConnection::new(db.store());
    let first = server(own.get().await.unwrap()).await;
    own.answered();
    assert_eq!(server(own.get().await.unwrap()).await, first);
    // It has not been told that this answer came.
    assert_ne!(server(own.get().await.unwrap()).await, first);
}

#[tokio::test]
async fn after_a_statement_that_was_given_up_another_connection_is_made() {
    let db = TestDatabase::create().await.unwrap();
    let mut own = OwnConnection::new(db.store());
    let first = server(own.get().await.unwrap()).await;
    own.answered();
    let mut lock = db.pool().begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(7)").execute(&mut *lock).await.unwrap();
    let connection = own.get().await.unwrap();
    let waits = sqlx::query("SELECT pg_advisory_lock(7)").execute(connection);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), waits).await;
    assert!(waited.is_err(), "the lock is taken");
    assert_ne!(server(own.get().await.unwrap()).await, first);
    own.answered();
}

#[tokio::test]
async fn a_connection_of_one_s_own_that_died_while_it_rested_is_made_anew() {
    let db = TestDatabase::create().await.unwrap();
    let mut own = OwnConnection::new(db.store());
    let first = server(own.get().await.unwrap()).await;
    own.answered();
    let ended: bool = sqlx::query_scalar("SELECT pg_terminate_backend($1, 5000)")
        .bind(first)
        .fetch_one(db.pool())
        .await
        .unwrap();
    assert!(ended);
    // A rest is a second or more.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_ne!(server(own.get().await.unwrap()).await, first);
}
