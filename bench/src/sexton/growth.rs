//! Growth: what vacuum leaves of the tables and indexes while executions come and go at a steady rate.
//!
//! `--rate` executions a second are inserted, marked as published, opened and settled, batch after batch, for
//! `--seconds`; `--slots` is the size of a batch. Nothing is removed, so the record grows by what it keeps. What has
//! to stay small is what is about live executions: each entry of it is dead a moment later. The figures are the
//! duration of a batch in each twelfth of the time, and in the end the size of each relation, its dead rows and how often
//! it was vacuumed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use sexton_model::id::{ExecutionId, ProcessId};
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::open::{Offer, OpenRequest, open};
use sexton_store::settle::{Settlement, settle};
use sexton_tests::database::TestDatabase;
use sqlx::PgPool;
use uuid::Uuid;

use super::journal::{LEASE, prepare, request, settlement};
use super::line;
use crate::Arguments;
use crate::line::Line;

/// Parts of the time, each with a figure.
const PARTS: usize = 12;

/// Returns the size of the whole schema in MB.
pub(super) async fn measure(arguments: &Arguments, database_url: &str) -> Result<()> {
    let database = TestDatabase::create_on(database_url).await?;
    // One execution, for the job that comes with it.
    prepare(&database, arguments, 1).await?;
    let mut dedicated = DedicatedConnection::for_key_lookups(database.store());
    let worker = ProcessId::new(Uuid::now_v7());
    let offers = [Offer::new("nothing")];
    let pause = Duration::from_secs(1) * u32::from(arguments.slots) / arguments.rate;
    let part = Duration::from_secs(arguments.seconds.into()) / PARTS as u32;
    let mut samples = Vec::with_capacity(PARTS);
    let mut done: i64 = 1;
    let mut next = tokio::time::interval(pause);
    for _ in 0..PARTS {
        let (since, mut took, mut batches) = (Instant::now(), Duration::ZERO, 0_u32);
        while since.elapsed() < part {
            next.tick().await;
            let began = Instant::now();
            let ids = added(database.pool(), done, arguments.slots).await?;
            done += i64::from(arguments.slots);
            let requests: Vec<OpenRequest> =
                ids.into_iter().map(|id| request(ExecutionId::new(id))).collect();
            let mut connection = dedicated.acquire().await?;
            let opened =
                open(&mut *connection, worker, "bench:1", &offers, &requests, LEASE, None).await?;
            ensure!(opened.opened.len() == requests.len(), "some were not opened");
            let ends: Vec<Settlement> = requests.iter().map(settlement).collect();
            settle(&mut *connection, &ends, None).await?;
            connection.release();
            took += began.elapsed();
            batches += 1;
        }
        samples
            .push((took.as_secs_f64() * 1e3 / f64::from(batches.max(1)) * 100.0).round() / 100.0);
    }
    let mut line = Line { unit: "MB", samples, ..line(arguments, "growth") };
    line.settings.insert("executions".to_owned(), json!(done));
    line.settings.insert("design".to_owned(), json!(arguments.design));
    for (name, megabytes, dead, vacuums) in relations(database.pool()).await? {
        line.settings.insert(name, json!({ "mb": megabytes, "dead": dead, "vacuums": vacuums }));
    }
    line.value = sqlx::query_scalar(
        "SELECT sum(pg_relation_size(oid))::float8 / 1e6 FROM pg_class WHERE relnamespace = 'sexton'::regnamespace",
    )
    .fetch_one(database.pool())
    .await?;
    line.print();
    Ok(())
}

/// Inserts executions and marks their tickets as published, as a scheduler does.
async fn added(pool: &PgPool, done: i64, count: u16) -> Result<Vec<Uuid>> {
    let ids = sqlx::query_scalar(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool,
            params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
         SELECT gen_random_uuid(), $1, n::text, now(), 'pending', 1, 'nothing', 'default', '{}', n::text, 'bench:1',
            now(), now(), now()
         FROM generate_series($2, $3) n RETURNING id",
    )
    .bind(Uuid::nil())
    .bind(done)
    .bind(done + i64::from(count) - 1)
    .fetch_all(pool)
    .await?;
    sqlx::query("UPDATE sexton.executions SET ticket_published_at = now() WHERE id = ANY ($1)")
        .bind(&ids)
        .execute(pool)
        .await?;
    Ok(ids)
}

/// Returns the name, size in MB, dead rows and vacuums of each table and index above 1 MB, or with dead rows.
async fn relations(pool: &PgPool) -> Result<Vec<(String, f64, i64, i64)>> {
    Ok(sqlx::query_as(
        "SELECT c.relname::text, round(pg_relation_size(c.oid) / 1e6, 1)::float8, coalesce(s.n_dead_tup, 0),
            coalesce(s.autovacuum_count, 0)
         FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
         WHERE c.relnamespace = 'sexton'::regnamespace AND c.relkind IN ('r', 'i')
            AND (pg_relation_size(c.oid) > 1000000 OR s.n_dead_tup > 0)
         ORDER BY 2 DESC",
    )
    .fetch_all(pool)
    .await?)
}
