//! Executions opened and settled in batches, as one statement each, and rows inserted in batches.

use std::time::Instant;

use anyhow::Result;
use sexton_tests::database::TestDatabase;
use sqlx::{Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use crate::Arguments;

/// Rows of one statement.
pub(super) const BATCH: usize = 100;
/// Rows of one transaction that inserts.
pub(crate) const TRANSACTION: usize = 1_000;
/// The same in bulk; 10,000 is the most that one call enqueues.
pub(crate) const BATCHES: [usize; 2] = [TRANSACTION, 10_000];
/// Number of concurrent statements, each on its own connection.
const CONNECTIONS: usize = 2;

/// Returns executions opened and settled per second, in the real tables.
pub(super) async fn recorded(arguments: &Arguments, database_url: &str) -> Result<f64> {
    let database = TestDatabase::create_on(database_url).await?;
    let ids = fill(database.pool(), arguments.count).await?.0;
    sqlx::query("VACUUM ANALYZE sexton.executions").execute(database.pool()).await?;
    let began = Instant::now();
    let share = ids.len().div_ceil(CONNECTIONS).max(1);
    let both: Vec<_> = ids
        .chunks(share)
        .map(|ids| tokio::spawn(open_and_settle(database.pool().clone(), ids.to_vec())))
        .collect();
    for one in both {
        one.await??;
    }
    Ok(arguments.count as f64 / began.elapsed().as_secs_f64())
}

async fn open_and_settle(pool: PgPool, ids: Vec<Uuid>) -> Result<()> {
    for batch in ids.chunks(BATCH) {
        sqlx::query(
            "UPDATE sexton.executions SET state = 'running', rev = rev + 1, worker_id = $2,
                 open_token = gen_random_uuid(), lease_until = now() + interval '20 seconds', lease_ms = 20000,
                 started_at = now(), next_attempt_at = NULL
             WHERE id = ANY ($1)",
        )
        .bind(batch)
        .bind(Uuid::nil())
        .execute(&pool)
        .await?;
        sqlx::query(
            "WITH u AS (UPDATE sexton.executions SET state = 'succeeded', rev = rev + 1,
                 outcome = 'succeeded', worker_id = NULL, open_token = NULL, lease_until = NULL, lease_ms = NULL,
                 finished_at = now()
             WHERE id = ANY ($1) RETURNING id, attempt, started_at, finished_at)
             INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at, finished_at, outcome)
             SELECT id, attempt, $2, 20000, started_at, finished_at, 'succeeded' FROM u",
        )
        .bind(batch)
        .bind(Uuid::nil())
        .execute(&pool)
        .await?;
    }
    Ok(())
}

/// Returns executions inserted per second, in batches: keys and params come from the program, as they do where a
/// program enqueues.
pub(super) async fn inserted(
    arguments: &Arguments,
    database_url: &str,
    batch: usize,
) -> Result<f64> {
    let database = TestDatabase::create_on(database_url).await?;
    // For its job.
    fill(database.pool(), 0).await?;
    let all: Vec<(String, serde_json::Value)> = (0..arguments.count)
        .map(|number| (format!("order-{number}"), serde_json::json!({"order": number})))
        .collect();
    let mut connection = PgConnection::connect(database.url()).await?;
    let began = Instant::now();
    for batch in all.chunks(batch) {
        let (keys, params): (Vec<String>, Vec<serde_json::Value>) = batch.iter().cloned().unzip();
        let ids: Vec<Uuid> = keys.iter().map(|_| Uuid::now_v7()).collect();
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, own_key, scheduled_for, state, task_type, pool,
                params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT id, $1, key, true, now(), 'pending', 'nothing', 'default', params, key, 'bench:1', now(), now(), now()
             FROM unnest($2::uuid[], $3::text[], $4::jsonb[]) AS t (id, key, params)",
        )
        .bind(Uuid::nil())
        .bind(&ids)
        .bind(&keys)
        .bind(&params)
        .execute(&mut connection)
        .await?;
    }
    let rate = arguments.count as f64 / began.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(rate)
}

/// Returns executions inserted per second, one by one in transactions like those that enqueue.
pub(super) async fn inserted_singly(arguments: &Arguments, database_url: &str) -> Result<f64> {
    let database = TestDatabase::create_on(database_url).await?;
    // For its job.
    fill(database.pool(), 0).await?;
    let mut connection = PgConnection::connect(database.url()).await?;
    let began = Instant::now();
    for first in (0..arguments.count).step_by(TRANSACTION) {
        let mut tx = connection.begin().await?;
        for number in first..arguments.count.min(first + TRANSACTION as i64) {
            let key = format!("order-{number}");
            sqlx::query(
                "INSERT INTO sexton.executions (id, job_id, execution_key, own_key, scheduled_for, state, task_type, pool,
                    params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
                 VALUES ($1, $2, $3, true, now(), 'pending', 'nothing', 'default', $4, $3, 'bench:1', now(), now(), now())",
            )
            .bind(Uuid::now_v7())
            .bind(Uuid::nil())
            .bind(key)
            .bind(serde_json::json!({"order": number}))
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
    }
    let rate = arguments.count as f64 / began.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(rate)
}

/// Inserts executions with published tickets; returns their ids, and the time in seconds.
pub(crate) async fn fill(pool: &PgPool, count: i64) -> Result<(Vec<Uuid>, f64)> {
    sqlx::query(
        "INSERT INTO sexton.jobs (id, name, schedule_kind, task_type, params, pool, overlap, misfire_policy,
            misfire_window_ms, misfire_limit, timeout_ms, labels, created_at, updated_at)
         VALUES ($1, 'bench.bare', 'none', 'nothing', '{}', 'default', 'allow', 'skip', 0, 1, 60000, '{}',
            now(), now())",
    )
    .bind(Uuid::nil())
    .execute(pool)
    .await?;
    let began = Instant::now();
    let mut ids = Vec::with_capacity(count as usize);
    for first in (0..count).step_by(TRANSACTION) {
        let made: Vec<Uuid> = sqlx::query_scalar(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type,
                pool, params, idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after,
                next_attempt_at)
             SELECT (lpad(to_hex(n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, $3,
                n::text, now(), 'pending', 1, 'nothing', 'default', '{}', n::text, 'bench:1', now(), now(),
                now(), now()
             FROM generate_series($1, $2) n RETURNING id",
        )
        .bind(first)
        .bind(count.min(first + TRANSACTION as i64) - 1)
        .bind(Uuid::nil())
        .fetch_all(pool)
        .await?;
        ids.extend(made);
    }
    Ok((ids, began.elapsed().as_secs_f64()))
}
