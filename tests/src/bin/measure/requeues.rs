//! How soon a requeued execution is published, and whether many of them keep workers busy.
//!
//! Two jobs fail so many times each, in earnest: their tickets are consumed by a worker whose catalogue
//! does not know the task, and parked. Then one after the other is requeued, from the start of the command to
//! the broker's confirm as the row has it. The rest of the first job is requeued while no worker consumes, which is
//! how fast a bulk is by itself, and drained by a worker, which is how fast that is by itself. The second job
//! is requeued while the worker consumes: both at once, on the same processors.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_tests::platform::{Platform, Program};

use super::figures::{Figures, Spread};
use super::resident_mb;

/// How many are requeued one by one.
const ONE_BY_ONE: usize = 100;
/// The most that one backfill takes.
const BACKFILLED_AT_ONCE: i64 = 20_000;
/// How long anything may take.
const DEADLINE: Duration = Duration::from_mins(15);
/// How often memory is read.
const LOOK: Duration = Duration::from_millis(500);

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
    let first = failed(&platform, "requeued.alone", count).await?;
    let second = failed(&platform, "requeued.drained", count).await?;
    figures.add("a requeue of one, from the command's start to the confirm", {
        Spread::new(one_by_one(&platform).await?).told()
    });
    let before = resident_mb(&scheduler)?;
    figures.add(format!("scheduler, with {} failed executions", first + second), mb(before));

    let bulk = requeued(&platform, &scheduler, "requeued.alone").await?;
    let alone = per_second(first, bulk.published);
    figures.add(format!("a bulk of {first} while no worker consumes"), rate(alone));
    let began = Instant::now();
    let mut worker = platform
        .start_nothing("handlers", &[("WORKER_POOLS", "handlers"), ("WORKER_SLOTS", "64")])?;
    worker.ready().await;
    succeeded(&platform, first).await?;
    let drained = per_second(first, began.elapsed());
    figures.add("a worker of 64 slots drains them", rate(drained));

    let began = Instant::now();
    let both = requeued(&platform, &scheduler, "requeued.drained").await?;
    succeeded(&platform, first + second).await?;
    let together = per_second(second, began.elapsed());
    let share = 100.0 * together / drained;
    let told = format!("{}, {share:.0} % of the drain", rate(together));
    figures.add(format!("a bulk of {second} and that worker at once"), told);
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

/// Lets a job fail so many times: firings of the past, for a worker that does not know the task. Those that
/// came before the pause are taken along: the answer is how many there are.
async fn failed(platform: &Platform, job: &str, count: i64) -> Result<i64> {
    let text = format!(
        "[[job]]\nname = \"{job}\"\ntask = \"nothing\"\npool = \"handlers\"\nschedule = \"* * * * * *\"\n\
         overlap = \"allow\"\n"
    );
    platform.apply(&text).await?;
    let done = platform.try_sexton(&["jobs", "pause", job, "--reason", "measured"]).await?;
    ensure!(done.status.success(), "sexton jobs pause failed: {done}");
    let mut upto = clock::now();
    let mut left = count;
    while left > 0 {
        let some = left.min(BACKFILLED_AT_ONCE);
        let from = upto - chrono::Duration::seconds(some - 1);
        let (from_text, to_text) = (told(from), told(upto));
        let command = ["jobs", "backfill", job, "--from", &from_text, "--to", &to_text, "--yes"];
        let done = platform.try_sexton(&command).await?;
        ensure!(done.status.success(), "sexton jobs backfill failed: {done}");
        (upto, left) = (from - chrono::Duration::seconds(1), left - some);
    }
    let pools = [("WORKER_POOLS", "handlers"), ("WORKER_SLOTS", "64")];
    let mut ignorant = platform.start_worker("ignorant", &pools)?;
    ignorant.ready().await;
    let parked = async || {
        let statement = "SELECT count(*), count(*) FILTER (WHERE e.state = 'failed'
                AND e.ticket_published_at IS NOT NULL)
            FROM executions e JOIN jobs j ON j.id = e.job_id WHERE j.name = $1";
        let counted = sqlx::query_as::<_, (i64, i64)>(statement).bind(job);
        let (all, failed) = counted.fetch_one(platform.store().pool()).await.ok()?;
        (all == failed).then_some(all)
    };
    let all = platform.eventually("all have failed and are parked", DEADLINE, parked).await;
    ignorant.terminate();
    ignorant.exit(DEADLINE).await;
    Ok(all)
}

fn told(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Requeues some, each from the start of the command to the confirm, in milliseconds. They fail no more:
/// nobody consumes.
async fn one_by_one(platform: &Platform) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(ONE_BY_ONE);
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM executions WHERE state = 'failed' ORDER BY id LIMIT $1")
            .bind(ONE_BY_ONE as i64)
            .fetch_all(platform.store().pool())
            .await?;
    for id in ids {
        let began = clock::now();
        let text = id.to_string();
        let done = platform.try_sexton(&["failed", "requeue", &text]).await?;
        ensure!(done.status.success(), "sexton failed requeue failed: {done}");
        let published = async || {
            let statement = "SELECT ticket_published_at FROM executions
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
        let statement = "SELECT count(*) FROM bulks WHERE state = 'done'
            AND id = (SELECT max(id) FROM bulks)";
        let done = sqlx::query_scalar::<_, i64>(statement);
        if done.fetch_one(platform.store().pool()).await? > 0 {
            return Ok(Bulk { published: began.elapsed(), most_mb });
        }
        ensure!(began.elapsed() < DEADLINE, "the bulk is not done within {DEADLINE:?}");
        tokio::time::sleep(LOOK).await;
    }
}

async fn succeeded(platform: &Platform, count: i64) -> Result<()> {
    let all = async || {
        let statement = "SELECT count(*) FROM executions WHERE state = 'succeeded'";
        let ended = sqlx::query_scalar::<_, i64>(statement);
        (ended.fetch_one(platform.store().pool()).await.ok()? >= count).then_some(())
    };
    platform.eventually("they have ended", DEADLINE, all).await;
    Ok(())
}
