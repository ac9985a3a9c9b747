//! Rows of a platform that has run for long, in columns that every schema from 0001 on has.

use anyhow::Result;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPool;

use super::Size;

/// Rows of one insert.
const INSERT_BATCH_ROWS: i64 = 50_000;
/// Jobs that are due every five seconds.
pub(super) const DUE_JOBS: i64 = 250;
/// Over how many jobs the executions are spread.
const JOBS_WITH_EXECUTIONS: i64 = 10_000;

pub(super) async fn fill(pool: &PgPool, size: Size, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    for from in (0..size.jobs).step_by(INSERT_BATCH_ROWS as usize) {
        sqlx::query(
            "INSERT INTO jobs (id, name, schedule_kind, schedule_expression, task_type, params, pool, overlap,
                misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, next_fire_at, created_at, updated_at)
             SELECT lpad(to_hex(n + 1), 32, '0')::uuid, 'team.job' || n, 'every', '5s', 'type_' || n % 20,
                jsonb_build_object('customer', n), 'pool-' || n % 5, 'allow', 'skip', 0, 1, 60000,
                now() + CASE WHEN n < $3 THEN interval '20 ms' * n ELSE interval '1 year' END, now(), now()
             FROM generate_series($1::bigint, $2::bigint - 1) n",
        )
        .bind(from)
        .bind(size.jobs.min(from + INSERT_BATCH_ROWS))
        .bind(DUE_JOBS)
        .execute(pool)
        .await?;
    }
    say(&format!("{} jobs", size.jobs));
    for from in (0..size.executions).step_by(INSERT_BATCH_ROWS as usize) {
        let to = size.executions.min(from + INSERT_BATCH_ROWS);
        sqlx::query(
            "INSERT INTO executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool,
                params, idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at,
                finished_at, outcome, error_class, error_message)
             SELECT (lpad(to_hex(n), 12, '0') || '70008000000000000000')::uuid,
                lpad(to_hex(1 + n % least($3, $4)), 32, '0')::uuid, n::text, at, state, 2, 'type_1', 'pool-1',
                jsonb_build_object('customer', n), n::text, 'test:1', at, at, at, at, at,
                CASE WHEN state = 'failed' THEN 'error' ELSE state END,
                CASE WHEN state = 'failed' THEN 'exit_1' END,
                CASE WHEN state = 'failed' THEN 'exit code 1: order ' || n || ' declined' END
             FROM generate_series($1::bigint, $2::bigint - 1) n,
                  LATERAL (SELECT now() - interval '30 days' * (1 - n::float8 / $5) AS at,
                                  CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'succeeded' END AS state) a",
        )
        .bind(from)
        .bind(to)
        .bind(JOBS_WITH_EXECUTIONS)
        .bind(size.jobs)
        .bind(size.executions)
        .execute(pool)
        .await?;
        if to % 1_000_000 == 0 {
            say(&format!("{to} executions"));
        }
    }
    for table in ["jobs", "executions"] {
        let mut connection = pool.acquire().await?;
        sqlx::query("SET statement_timeout = 0").execute(&mut *connection).await?;
        let vacuum = AssertSqlSafe(format!("VACUUM (ANALYZE) {table}"));
        sqlx::query(vacuum).execute(&mut *connection).await?;
        connection.close().await?;
    }
    Ok(())
}

/// Makes the first of them due, one after the other, from now on.
pub(super) async fn due(pool: &PgPool) -> Result<()> {
    sqlx::query(
        "UPDATE jobs SET next_fire_at = now() + interval '5 s' / $1 * substr(name, 9)::int
         WHERE next_fire_at < now() + interval '1 day'",
    )
    .bind(DUE_JOBS as f64)
    .execute(pool)
    .await?;
    Ok(())
}
