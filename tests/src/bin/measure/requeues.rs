//! How soon a requeued execution is published, and whether many of them keep workers busy.
//!
//! Two jobs have so many failed executions each, and a third a hundred, all of them parked in the failed queue by the
//! scheduler. Those of the third are requeued one by one, from the start of the command to the broker's confirm as
//! the row has it. Those of the first are requeued while no worker consumes, which is how fast a bulk is by itself, and drained by a worker, which is how fast that is by itself. The second job
//! is requeued while the worker consumes: both at once, on the same processors.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_tests::platform::{Platform, Program};

use super::figures::{Figures, Spread};
use super::resident_mb;

/// How many are requeued one by one.
const SINGLE_REQUEUES: usize = 100;
/// Rows of one statement, which has to end within the limits of any other.
const INSERT_BATCH_ROWS: usize = 5_000;
/// How long anything may take.
const DEADLINE: Duration = Duration::from_mins(15);
/// How often memory is read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// Measures with so many failures of each job, on a database of its own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    count: i64,
    figures: &mut Figures,
) -> Result<()> {
    let mut platform = Platform::on(database_server, amqp_url).await?;
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    for job in ["requeued.alone", "requeued.drained"] {
        failed(&platform, job, count).await?;
    }
    figures.add("a requeue of one, from the command's start to the confirm", {
        Spread::new(one_by_one(&platform).await?).render()
    });
    let before = resident_mb(&scheduler)?;
    figures.add(format!("scheduler, with {} failed executions", 2 * count), mb(before));

    let one = SINGLE_REQUEUES as i64;
    let bulk = requeued(&platform, &scheduler, "requeued.alone").await?;
    let alone = per_second(count, bulk.published);
    figures.add(format!("a bulk of {count} while no worker consumes"), rate(alone));
    let began = Instant::now();
    let mut worker = platform
        .start_nothing("handlers", &[("WORKER_POOLS", "handlers"), ("WORKER_SLOTS", "64")])?;
    worker.ready().await;
    succeeded(&platform, one + count).await?;
    let drained = per_second(one + count, began.elapsed());
    figures.add("a worker of 64 slots drains them", rate(drained));

    let began = Instant::now();
    let both = requeued(&platform, &scheduler, "requeued.drained").await?;
    succeeded(&platform, one + 2 * count).await?;
    let together = per_second(count, began.elapsed());
    let share = 100.0 * together / drained;
    let text = format!("{}, {share:.0} % of the drain", rate(together));
    figures.add(format!("a bulk of {count} and that worker at once"), text);
    figures.add("scheduler, at most during the bulks", mb(bulk.most_mb.max(both.most_mb)));
    worker.terminate();
    worker.exit(DEADLINE).await;
    scheduler.terminate();
    scheduler.exit(DEADLINE).await;
    Ok(())
}

fn mb(mb: f64) -> String {
    format!("{mb:.1} MB resident")
}

fn per_second(count: i64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn rate(rate: f64) -> String {
    format!("{rate:.0} a second")
}

/// Makes so many failed executions of a job, as the end of their second retry would have left them, and waits
/// until the scheduler has parked them all.
pub(super) async fn failed(platform: &Platform, job: &str, count: i64) -> Result<()> {
    let text = format!("[[job]]\nname = \"{job}\"\ntask = \"nothing\"\npool = \"handlers\"\n");
    platform.apply(&text).await?;
    for first in (1..=count).step_by(INSERT_BATCH_ROWS) {
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type, pool,
                params, idempotency_key, claimed_by, claimed_at, relay_after, started_at, finished_at, outcome,
                error_class, error_message, retries_used)
             SELECT gen_random_uuid(), j.id, 'measured-' || n, now(), 'failed', 3, j.task_type, j.pool,
                jsonb_build_object('order', n), j.name || '-' || n, 'measure:1', now(), now(), now(), now(),
                'error', 'exit_1', 'exit code 1: order ' || n || ' declined', 2
             FROM sexton.jobs j, generate_series($2, $3) n WHERE j.name = $1",
        )
        .bind(job)
        .bind(first)
        .bind(count.min(first + INSERT_BATCH_ROWS as i64 - 1))
        .execute(platform.store().pool())
        .await?;
    }
    let parked = async || {
        let statement =
            "SELECT count(*) = 0 FROM sexton.executions WHERE ticket_published_at IS NULL";
        let parked = sqlx::query_scalar::<_, bool>(statement);
        parked.fetch_one(platform.store().pool()).await.ok()?.then_some(())
    };
    platform.eventually("all are parked", DEADLINE, parked).await;
    Ok(())
}

/// Requeues some, each from the start of the command to the confirm, in milliseconds. They fail no more:
/// nobody consumes.
async fn one_by_one(platform: &Platform) -> Result<Vec<f64>> {
    failed(platform, "requeued.one", SINGLE_REQUEUES as i64).await?;
    let job: uuid::Uuid =
        sqlx::query_scalar("SELECT id FROM sexton.jobs WHERE name = 'requeued.one'")
            .fetch_one(platform.store().pool())
            .await?;
    let mut times = Vec::with_capacity(SINGLE_REQUEUES);
    let ids: Vec<uuid::Uuid> = sqlx::query_scalar(
        "SELECT id FROM sexton.executions WHERE job_id = $1 ORDER BY id LIMIT $2",
    )
    .bind(job)
    .bind(SINGLE_REQUEUES as i64)
    .fetch_all(platform.store().pool())
    .await?;
    for id in ids {
        let began = clock::now();
        let text = id.to_string();
        let done = platform.try_sexton(&["failed", "requeue", &text]).await?;
        ensure!(done.status.success(), "sexton failed requeue failed: {done}");
        let published = async || {
            let statement = "SELECT ticket_published_at FROM sexton.executions
                WHERE id = $1 AND ticket_published_at >= $2";
            let published = sqlx::query_scalar::<_, DateTime<Utc>>(statement).bind(id).bind(began);
            published.fetch_optional(platform.store().pool()).await.ok()?
        };
        let at = platform.eventually("it is published", DEADLINE, published).await;
        times.push((at - began).as_seconds_f64() * 1_000.0);
    }
    Ok(times)
}

/// What a bulk took.
struct Bulk {
    /// Until its last ticket was published.
    published: Duration,
    /// The scheduler's memory, at most.
    most_mb: f64,
}

/// Requeues what has failed of the job, by the job's name, and waits until the bulk is done.
async fn requeued(platform: &Platform, scheduler: &Program, job: &str) -> Result<Bulk> {
    let began = Instant::now();
    let command = ["failed", "requeue", "--job", job, "--yes", "--detach", "--reason", "measured"];
    let done = platform.try_sexton(&command).await?;
    ensure!(done.status.success(), "sexton failed requeue failed: {done}");
    let mut most_mb = 0.0_f64;
    loop {
        most_mb = most_mb.max(resident_mb(scheduler)?);
        let statement = "SELECT count(*) FROM sexton.bulks WHERE state = 'done'
            AND id = (SELECT max(id) FROM sexton.bulks)";
        let done = sqlx::query_scalar::<_, i64>(statement);
        if done.fetch_one(platform.store().pool()).await? > 0 {
            return Ok(Bulk { published: began.elapsed(), most_mb });
        }
        ensure!(began.elapsed() < DEADLINE, "the bulk is not done within {DEADLINE:?}");
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}

async fn succeeded(platform: &Platform, count: i64) -> Result<()> {
    let all = async || {
        let statement = "SELECT count(*) FROM sexton.executions WHERE state = 'succeeded'";
        let ended = sqlx::query_scalar::<_, i64>(statement);
        (ended.fetch_one(platform.store().pool()).await.ok()? >= count).then_some(())
    };
    platform.eventually("they have ended", DEADLINE, all).await;
    Ok(())
}
