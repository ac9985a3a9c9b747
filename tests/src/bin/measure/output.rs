//! What it costs a worker that tasks write: how fast one may, what the others notice, and memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sexton_tests::platform::{Platform, Program};

use super::figures::Figures;
use super::resident_mb;

/// What the one task writes, in bytes.
const FLOOD_BYTES: u64 = 2_000_000_000;
/// Tasks that end at once, while nothing else runs and while one writes.
const OTHER_TASKS: usize = 40;
/// Tasks that write without end at the same time, and for how long.
const CHATTY_TASKS: usize = 64;
const CHATTY_SECONDS: u64 = 15;

pub(super) fn catalogue() -> String {
    let shell = |name: &str, script: String| {
        format!("[tasks.{name}]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n")
    };
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    shell("flood", format!("yes {line} | head -c {FLOOD_BYTES}"))
        + &shell("chatty", format!("timeout {CHATTY_SECONDS} yes {line} >&2; exit 0"))
}

pub(super) const JOBS: &str = "
[[job]]
name = \"measure.other\"
task = \"noop\"
[[job]]
name = \"measure.flood\"
task = \"flood\"
[[job]]
name = \"measure.chatty\"
task = \"chatty\"
";

/// Measures with a worker of at least 65 slots that does nothing else.
pub(super) async fn measure(
    platform: &Platform,
    worker: &Program,
    figures: &mut Figures,
) -> Result<()> {
    let quiet = others(platform).await?;
    trigger(platform, "measure.flood").await?;
    let busy = others(platform).await?;
    ended(platform, "measure.flood", 1).await?;
    let seconds = took(platform, "measure.flood").await?;
    let mb = FLOOD_BYTES as f64 / 1e6;
    let speed = mb / seconds;
    figures.add("one task's output", format!("{mb:.0} MB in {seconds:.1} s: {speed:.0} MB/s"));
    figures.add("another task, while no task writes", format!("p50 {quiet:.1} ms"));
    figures.add("another task, meanwhile", format!("p50 {busy:.1} ms"));

    let idle = resident_mb(worker)?;
    for _ in 0..CHATTY_TASKS {
        trigger(platform, "measure.chatty").await?;
    }
    let end = Instant::now() + Duration::from_secs(CHATTY_SECONDS);
    let mut most = idle;
    while Instant::now() < end {
        most = most.max(resident_mb(worker)?);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ended(platform, "measure.chatty", CHATTY_TASKS as i64).await?;
    figures.add(
        format!("worker, with {CHATTY_TASKS} children that write without end"),
        format!("{:.1} MB more than before ({idle:.1} MB)", most - idle),
    );
    Ok(())
}

/// The median time of a task that does nothing, from its open to its record, in milliseconds.
async fn others(platform: &Platform) -> Result<f64> {
    sqlx::query(
        "DELETE FROM sexton.executions WHERE job_id = (SELECT id FROM sexton.jobs WHERE name = $1)",
    )
    .bind("measure.other")
    .execute(platform.store().pool())
    .await?;
    for _ in 0..OTHER_TASKS {
        trigger(platform, "measure.other").await?;
    }
    ended(platform, "measure.other", OTHER_TASKS as i64).await?;
    Ok(took(platform, "measure.other").await? * 1000.0)
}

pub(super) async fn trigger(platform: &Platform, job: &str) -> Result<()> {
    let done = platform.try_sexton(&["jobs", "trigger", job]).await?;
    anyhow::ensure!(done.status.success(), "sexton jobs trigger failed: {done}");
    Ok(())
}

pub(super) async fn ended(platform: &Platform, job: &str, wanted: i64) -> Result<()> {
    let all = async || {
        let ended: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
             WHERE j.name = $1 AND e.state = 'succeeded'",
        )
        .bind(job)
        .fetch_one(platform.store().pool())
        .await
        .ok()?;
        (ended == wanted).then_some(())
    };
    platform.eventually("they have ended", Duration::from_mins(5), all).await;
    Ok(())
}

/// The median of the attempts of a job, in seconds.
async fn took(platform: &Platform, job: &str) -> Result<f64> {
    sqlx::query_scalar(
        "SELECT percentile_cont(0.5) WITHIN GROUP (
                    ORDER BY extract(epoch FROM a.finished_at - a.opened_at)::float8)
         FROM sexton.all_attempts a JOIN sexton.executions e ON e.id = a.execution_id
              JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = $1",
    )
    .bind(job)
    .fetch_one(platform.store().pool())
    .await
    .context("no attempt was recorded")
}
