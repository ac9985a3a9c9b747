//! `make bench-retention`: whether what can go goes, with how many rows ever kept before it, and what the index costs
//! that it stands on.
//!
//! Fills a database of its own on the servers that tests use: rows that are kept (a fifth of them failed, the others
//! those of callers' own keys, stripped) and behind them rows that are to go, in two nights. Then the pruner makes both
//! passes as it does at night, rests included.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chrono::{DateTime, Days, Utc};
use clap::Parser;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::pruner::{PruneCounts, Pruner, PrunerReport};
use sexton_store::retention::RetentionPolicy;
use sexton_tests::database::TestDatabase;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio_util::sync::CancellationToken;

/// Rows of one insert.
const INSERT_BATCH_ROWS: i64 = 100_000;

/// How long retention takes.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many rows are kept
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(i64).range(1_000..=100_000_000))]
    kept: i64,
    /// How many rows are to go in each of two nights
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(i64).range(1_000..=10_000_000))]
    old: i64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let database = TestDatabase::create().await?;
    let pool = unlimited(&database).await?;
    let now: DateTime<Utc> = sqlx::query_scalar("SELECT now()").fetch_one(&pool).await?;
    sqlx::raw_sql(
        "INSERT INTO sexton.jobs (id, name, schedule_kind, task_type, params, pool, overlap, misfire_policy,
             misfire_window_ms, misfire_limit, timeout_ms, created_at, updated_at)
         VALUES (gen_random_uuid(), 'the.job', 'none', 'work', '{}', 'default', 'allow', 'skip', 0, 1, 60000,
             now(), now());
         ALTER TABLE sexton.executions SET (autovacuum_enabled = off)",
    )
    .execute(&pool)
    .await?;
    let began = Instant::now();
    let failed = arguments.kept / 5;
    fill(&pool, "failed", false, failed, now - Days::new(200)).await?;
    fill(&pool, "succeeded", true, arguments.kept - failed, now - Days::new(100)).await?;
    fill(&pool, "succeeded", false, arguments.old, now - Days::new(40)).await?;
    fill(&pool, "succeeded", false, arguments.old, now - Days::new(30)).await?;
    sqlx::raw_sql("VACUUM (ANALYZE) sexton.executions").execute(&pool).await?;
    let size: i64 =
        sqlx::query_scalar("SELECT pg_database_size(current_database())").fetch_one(&pool).await?;
    println!("filled in {} s, {} MB", began.elapsed().as_secs(), size / 1_000_000);
    for (night, days) in [("first", 0), ("second", 1)] {
        // The second is of tomorrow, when the others are older than thirty days.
        pass(&database, &pool, night, now + Days::new(days), arguments.old).await?;
    }
    index_costs(&pool).await
}

async fn unlimited(database: &TestDatabase) -> Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(1).connect(database.url()).await?;
    sqlx::raw_sql("SET statement_timeout = 0").execute(&pool).await?;
    Ok(pool)
}

/// So many executions that ended from then on, one a millisecond.
async fn fill(
    pool: &PgPool,
    state: &str,
    own_key: bool,
    count: i64,
    from: DateTime<Utc>,
) -> Result<()> {
    // The failure index is not what is measured.
    sqlx::raw_sql("SET session_replication_role = replica").execute(pool).await?;
    let mut done = 0;
    while done < count {
        let to = count.min(done + INSERT_BATCH_ROWS);
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, own_key, scheduled_for, state, task_type, pool,
                 params, idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at,
                 finished_at, outcome)
             SELECT (lpad(to_hex((extract(epoch FROM t) * 1000)::bigint), 12, '0') || '7000'
                     || substr(md5(n::text), 1, 16))::uuid,
                 (SELECT id FROM sexton.jobs), $1 || $2::timestamptz || n, $3, t, $1, 'work', 'default', '{}',
                 'the.job:' || n, 's1:1', t, t, t, t, t, $1
             FROM generate_series($4, $5) n, LATERAL (SELECT $2 + n * interval '1 ms' AS t) t",
        )
        .bind(state)
        .bind(from)
        .bind(own_key)
        .bind(done + 1)
        .bind(to)
        .execute(pool)
        .await?;
        done = to;
        eprintln!("{done} of {count} {state}");
    }
    sqlx::raw_sql("SET session_replication_role = origin").execute(pool).await?;
    Ok(())
}

async fn pass(
    database: &TestDatabase,
    pool: &PgPool,
    night: &str,
    at: DateTime<Utc>,
    old: i64,
) -> Result<()> {
    let terms = RetentionPolicy { days: 30, audit_days: Some(400) };
    let pruner = Pruner::new(database.store().clone(), terms, CancellationToken::new());
    let left = "SELECT count(*) FROM sexton.executions WHERE NOT own_key AND state = 'succeeded'";
    let (before, wal_before) = (count(pool, left).await?, wal(pool).await?);
    let (began, mut gone) = (Instant::now(), None);
    let passing = pruner.run_once(Some(at));
    let looking = async {
        // As soon as they are gone, whatever the pass does besides.
        while count(pool, left).await? > before - old {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        gone = Some(began.elapsed());
        Ok::<_, anyhow::Error>(())
    };
    let (passed, looked) = tokio::join!(passing, looking);
    looked?;
    let PrunerReport::Pass(PruneCounts { deleted, complete, .. }) = passed? else {
        anyhow::bail!("no pass was due")
    };
    ensure!(complete && deleted == old.unsigned_abs(), "{deleted} went, complete: {complete}");
    println!(
        "{night} night: {deleted} rows gone after {:.0} s, the pass over after {:.0} s, {} MB of WAL, {} MB resident at most",
        gone.unwrap_or_default().as_secs_f64(),
        began.elapsed().as_secs_f64(),
        (wal(pool).await? - wal_before) / 1_000_000,
        peak_kb()? / 1_000,
    );
    Ok(())
}

/// What an end of an execution writes, with and without the index: a hundred thousand of them, in one statement.
async fn index_costs(pool: &PgPool) -> Result<()> {
    for index in [true, false] {
        if !index {
            sqlx::raw_sql("DROP INDEX sexton.executions_ended").execute(pool).await?;
        }
        // The pages' images after a checkpoint are no cost of the index alone.
        sqlx::raw_sql("DELETE FROM sexton.executions WHERE pool = 'ends'; CHECKPOINT")
            .execute(pool)
            .await?;
        sqlx::raw_sql(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
                 idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT gen_random_uuid(), (SELECT id FROM sexton.jobs), 'ends' || n, now(), 'pending', 'work', 'ends', '{}',
                 'the.job:' || n, 's1:1', now(), now(), now() FROM generate_series(1, 100000) n",
        )
        .execute(pool)
        .await?;
        let (before, began) = (wal(pool).await?, Instant::now());
        sqlx::raw_sql(
            "UPDATE sexton.executions SET state = 'succeeded', next_attempt_at = NULL, finished_at = clock_timestamp()
             WHERE pool = 'ends'",
        )
        .execute(pool)
        .await?;
        println!(
            "an execution ends, {} the index: {} bytes of WAL, {:.1} us",
            if index { "with" } else { "without" },
            (wal(pool).await? - before) / 100_000,
            began.elapsed().as_secs_f64() * 10.0,
        );
    }
    Ok(())
}

async fn count(pool: &PgPool, query: &'static str) -> Result<i64> {
    Ok(sqlx::query_scalar(query).fetch_one(pool).await?)
}

async fn wal(pool: &PgPool) -> Result<i64> {
    count(pool, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").await
}

fn peak_kb() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.unwrap_or_default().trim().trim_end_matches("kB").trim().parse()?)
}
