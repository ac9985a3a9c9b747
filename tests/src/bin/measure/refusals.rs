//! How soon a trigger starts while another pool's queue refuses very many tickets.
//!
//! The queue of the pool `full` has a policy under which it takes one message and refuses the others, on a
//! RabbitMQ of its own. A job of the pool `default` is triggered again and again: first by itself, then from the
//! instant on at which the pool `full` has so many unpublished tickets, all of them older.

use std::time::Duration;

use anyhow::{Result, ensure};
use sexton_servers::{RabbitOptions, RabbitServer};
use sexton_tests::platform::Platform;

use super::figures::{Figures, Spread};

/// Triggers of each part.
const TRIGGERS: usize = 400;
/// Rows of one statement.
const INSERT_BATCH_ROWS: i64 = 20_000;
/// From one trigger to the next; the command takes its own time besides.
const TRIGGER_INTERVAL: Duration = Duration::from_millis(100);
/// How long the last of them may take.
const DEADLINE: Duration = Duration::from_mins(2);
/// A job of each pool.
const JOBS: &str = "[[job]]\nname = \"healthy.one\"\ntask = \"noop\"\n\
    [[job]]\nname = \"refused.one\"\ntask = \"noop\"\npool = \"full\"\n";

/// Measures with so many refused tickets, on a database and a RabbitMQ of its own.
pub(super) async fn measure(
    database_server: &str,
    count: i64,
    figures: &mut Figures,
) -> Result<()> {
    let rabbit = RabbitServer::start_private(RabbitOptions::default()).await?;
    let mut platform = Platform::on(database_server, rabbit.url()).await?;
    let pattern = format!("^{}\\.full$", platform.namespace());
    let definition = r#"{"max-length":1,"overflow":"reject-publish"}"#;
    rabbit.control(&["set_policy", "full", &pattern, definition, "--apply-to", "queues"]).await?;
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    let mut worker = platform.start_worker("worker", &[])?;
    scheduler.ready().await;
    worker.ready().await;
    platform.apply(JOBS).await?;
    figures.add("a trigger, to its start", Spread::new(triggered(&platform).await?).render());
    refused(&platform, count).await?;
    figures.add(
        format!("the same from when {count} tickets of another pool are refused"),
        Spread::new(triggered(&platform).await?).render(),
    );
    let left = "SELECT count(*) FROM sexton.executions WHERE pool = 'full' AND ticket_published_at IS NULL";
    let left: i64 = sqlx::query_scalar(left).fetch_one(platform.store().pool()).await?;
    // RabbitMQ keeps to the limit of a quorum queue only roughly: it takes what arrives before the first confirm.
    ensure!(left >= count - 1_000, "only {left} of {count} tickets were refused");
    for program in [&mut worker, &mut scheduler] {
        program.terminate();
        program.exit(DEADLINE).await;
    }
    drop(platform);
    Ok(rabbit.end().await?)
}

/// Triggers the healthy job, and returns how long each took from its row to its start, in milliseconds.
async fn triggered(platform: &Platform) -> Result<Vec<f64>> {
    let since: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("SELECT now()").fetch_one(platform.store().pool()).await?;
    for _ in 0..TRIGGERS {
        let done = platform.try_sexton(&["jobs", "trigger", "healthy.one"]).await?;
        ensure!(done.status.success(), "sexton jobs trigger failed: {done}");
        tokio::time::sleep(TRIGGER_INTERVAL).await;
    }
    let times = async || {
        let statement = "SELECT extract(epoch FROM started_at - claimed_at)::float8 * 1000
            FROM sexton.executions WHERE pool = 'default' AND claimed_at > $1 AND started_at IS NOT NULL";
        let times = sqlx::query_scalar::<_, f64>(statement).bind(since);
        let times = times.fetch_all(platform.store().pool()).await.ok()?;
        (times.len() == TRIGGERS).then_some(times)
    };
    Ok(platform.eventually("all triggers have started", DEADLINE, times).await)
}

/// Makes the refused tickets, a day older than all others.
async fn refused(platform: &Platform, count: i64) -> Result<()> {
    for first in (1..=count).step_by(INSERT_BATCH_ROWS as usize) {
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
                idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT gen_random_uuid(), j.id, 'refused-' || n, now() - interval '1 day', 'pending', j.task_type,
                j.pool, '{}', j.name || n, 'measure:1', now(), now() - interval '1 day', now()
             FROM sexton.jobs j, generate_series($1, $2) n WHERE j.name = 'refused.one'",
        )
        .bind(first)
        .bind(count.min(first + INSERT_BATCH_ROWS - 1))
        .execute(platform.store().pool())
        .await?;
    }
    sqlx::query("SELECT pg_notify('sexton', 'unpublished')")
        .execute(platform.store().pool())
        .await?;
    Ok(())
}
