//! A connection that its holder keeps.

use sexton_model::retry::Decision;
use sexton_store::StoreError;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::lease::AttemptFence;
use sexton_store::open::{Offer, open};
use sexton_store::settle::settle;
use sexton_tests::database::TestDatabase;
use sqlx::{Connection as _, PgConnection};

use super::{Fixture, LEASE, at, request, settlement};

async fn server(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
}

async fn used_and_given_back(dedicated: &mut DedicatedConnection) -> i32 {
    let mut connection = dedicated.acquire().await.unwrap();
    let server = server(&mut connection).await;
    connection.release();
    server
}

#[tokio::test]
async fn a_dedicated_connection_is_kept_as_long_as_it_answers() {
    let db = TestDatabase::create().await.unwrap();
    let mut dedicated = DedicatedConnection::new(db.store());
    let first = used_and_given_back(&mut dedicated).await;
    // Its guard is dropped without `release`.
    assert_eq!(server(&mut dedicated.acquire().await.unwrap()).await, first);
    assert_ne!(server(&mut dedicated.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn a_cancelled_statement_replaces_the_dedicated_connection() {
    let db = TestDatabase::create().await.unwrap();
    let mut dedicated = DedicatedConnection::new(db.store());
    let first = used_and_given_back(&mut dedicated).await;
    let mut lock = db.pool().begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(7)").execute(&mut *lock).await.unwrap();
    let mut connection = dedicated.acquire().await.unwrap();
    let waits = sqlx::query("SELECT pg_advisory_lock(7)").execute(&mut *connection);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), waits).await;
    assert!(waited.is_err(), "the lock is taken");
    drop(connection);
    assert_ne!(server(&mut dedicated.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn locks_of_a_cancelled_transaction_are_released_before_the_next_use() {
    let db = TestDatabase::create().await.unwrap();
    let mut dedicated = DedicatedConnection::new(db.store());
    let mut connection = dedicated.acquire().await.unwrap();
    let mut given_up = connection.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(8)").execute(&mut *given_up).await.unwrap();
    drop(given_up);
    drop(connection);
    let lock = sqlx::query("SELECT pg_advisory_lock(8)").execute(db.pool());
    let free = tokio::time::timeout(std::time::Duration::from_secs(10), lock).await;
    free.expect("the lock is free").unwrap();
    // Not before: its end would free the lock as well.
    drop(dedicated);
}

#[tokio::test]
async fn a_dedicated_connection_that_died_while_idle_is_replaced() {
    let db = TestDatabase::create().await.unwrap();
    let mut dedicated = DedicatedConnection::new(db.store());
    let first = used_and_given_back(&mut dedicated).await;
    let ended: bool = sqlx::query_scalar("SELECT pg_terminate_backend($1, 5000)")
        .bind(first)
        .fetch_one(db.pool())
        .await
        .unwrap();
    assert!(ended);
    // A rest is a second or more.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_ne!(server(&mut dedicated.acquire().await.unwrap()).await, first);
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_does_not_cost_the_connection() {
    let db = TestDatabase::create().await.unwrap();
    let mut dedicated = DedicatedConnection::new(db.store());
    let first = used_and_given_back(&mut dedicated).await;
    let mut connection = dedicated.acquire().await.unwrap();
    let refused = sqlx::query("SELECT 1 / 0").execute(&mut *connection).await;
    let refused = connection.release_if_answered(refused.map_err(StoreError::from));
    assert!(matches!(refused, Err(StoreError::Data(_))), "{refused:?}");
    assert_eq!(server(&mut dedicated.acquire().await.unwrap()).await, first);
}

/// Rows that were read, in sequence or by an index.
async fn rows_read(connection: &mut PgConnection) -> i64 {
    sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *connection).await.unwrap();
    sqlx::query_scalar(
        "SELECT sum(t.seq_tup_read)::bigint + (SELECT sum(i.idx_tup_read)::bigint
             FROM pg_stat_user_indexes i WHERE i.schemaname = 'sexton' AND i.relname IN ('executions', 'attempts'))
         FROM pg_stat_user_tables t WHERE t.schemaname = 'sexton' AND t.relname IN ('executions', 'attempts')",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_plan_made_on_an_empty_table_does_not_scan_a_long_one() {
    let f = Fixture::new().await;
    let mut dedicated = DedicatedConnection::for_key_lookups(f.store());
    let offers = [Offer::new("work")];
    let mut before = 0;
    for (round, key) in ["planned", "again"].into_iter().enumerate() {
        let request = request(f.claim(key).await, 1);
        let mut connection = dedicated.acquire().await.unwrap();
        let now = Some(at(1));
        let opened = open(&mut *connection, f.worker, "w:1", &offers, &[request], LEASE, now).await;
        assert_eq!(opened.unwrap().opened.len(), 1);
        let held = AttemptFence {
            execution_id: request.execution_id,
            attempt: request.attempt,
            token: request.token,
        };
        let end = settlement(held, Decision::Succeed);
        settle(&mut *connection, &[end], now).await.unwrap();
        if round > 0 {
            let read = rows_read(&mut connection).await - before;
            assert!(read < 100, "{read}");
        } else {
            sqlx::query(
                "INSERT INTO sexton.executions (id, job_id, execution_key, idempotency_key, scheduled_for,
                    state, next_attempt_at, relay_after, task_type, pool, params, claimed_by, claimed_at)
                 SELECT gen_random_uuid(), $1, 'k' || n, 'i' || n, now(), 'pending', now(), now(),
                    'work', 'default', '{}', 'test:1', now() FROM generate_series(1, 20000) n",
            )
            .bind(f.job.get())
            .execute(f.db.pool())
            .await
            .unwrap();
            before = rows_read(&mut connection).await;
        }
        connection.release();
    }
}
