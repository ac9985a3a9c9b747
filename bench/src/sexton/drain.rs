//! Drain: from tickets in the queue until the last attempt is recorded.

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_tests::platform::{Platform, Program};

use tokio::time::timeout;

use super::memory::{proportional_mb, resident_mb};
use super::{DEADLINE, apply_each_second, handlers, line, run, stop, until, with};
use crate::line::Line;
use crate::{Arguments, processor};

/// Maximum number of firings of one backfill.
const MAX_BACKFILL_FIRINGS: i64 = 20_000;
const JOB: &str = "bench.drain";

/// Measures from the first open to the last record, by the database's clock.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    fill(platform, "nothing", arguments.count).await?;
    let workers = handlers(platform, arguments)?;
    watch_to_the_end(platform, arguments, "drain", workers).await?;
    stop(vec![scheduler]).await;
    Ok(())
}

/// Prints the rate at which these workers complete what waits, and stops them.
pub(super) async fn watch_to_the_end(
    platform: &Platform,
    arguments: &Arguments,
    work: &'static str,
    mut workers: Vec<Program>,
) -> Result<()> {
    for worker in &mut workers {
        worker.ready().await;
    }
    let busy = processor::busy()?;
    let most = timeout(DEADLINE, watch(platform, &workers)).await??;
    let processor_ms = Some(processor::busy_ms_each(busy, arguments.count)?);
    let (ended, seconds): (i64, f64) = sqlx::query_as(
        "SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))::float8
         FROM sexton.executions WHERE state = 'succeeded'",
    )
    .fetch_one(platform.store().pool())
    .await?;
    // A firing or two may have come before the pause.
    ensure!(ended >= arguments.count, "{ended} of {} have succeeded", arguments.count);
    let value = ended as f64 / seconds;
    let per_second = Line { value, unit: "/s", processor_ms, ..line(arguments, work) };
    let with_memory = with(per_second, "worker_mb", most.worker_mb);
    with(
        with(with_memory, "with_guards_proportional_mb", most.with_guards_mb),
        "count",
        ended as f64,
    )
    .print();
    stop(workers).await;
    Ok(())
}

/// Makes past firings, all published. No worker consumes yet.
pub(super) async fn fill(platform: &Platform, task: &str, count: i64) -> Result<()> {
    apply_each_second(platform, JOB, task).await?;
    run(platform, &["jobs", "pause", JOB, "--reason", "measured"]).await?;
    let (mut upto, mut left) = (clock::now(), count);
    while left > 0 {
        let some = left.min(MAX_BACKFILL_FIRINGS);
        let from = upto - chrono::Duration::seconds(some - 1);
        // The last second is in the range: a scheduler may have claimed it before the pause.
        let since = format_time(from);
        let until = upto.format("%Y-%m-%dT%H:%M:%S.000001Z").to_string();
        let command = ["jobs", "backfill", JOB, "--since", &since, "--until", &until, "--yes"];
        run(platform, &command).await?;
        (upto, left) = (from - chrono::Duration::seconds(1), left - some);
    }
    let published = "SELECT count(*) = 0 FROM sexton.executions
        WHERE state = 'pending' AND ticket_published_at IS NULL";
    until(platform, "every ticket is published", published).await
}

fn format_time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The largest memory of a worker.
#[derive(Clone, Copy, Default)]
struct Memory {
    worker_mb: f64,
    /// With its guards; what processes share counts in parts.
    with_guards_mb: f64,
}

/// Waits until none is left; returns the largest memory meanwhile.
async fn watch(platform: &Platform, workers: &[Program]) -> Result<Memory> {
    let mut most = Memory::default();
    let mut round = 0_u32;
    loop {
        for worker in workers {
            most.worker_mb = most.worker_mb.max(resident_mb(worker)?);
            // Once a second, since it costs the kernel a walk through each guard's memory.
            if round.is_multiple_of(5) {
                most.with_guards_mb = most.with_guards_mb.max(proportional_mb(worker)?);
            }
        }
        let open = "SELECT EXISTS (SELECT FROM sexton.executions
            WHERE state IN ('pending', 'running', 'retrying'))";
        let open = sqlx::query_scalar::<_, bool>(open);
        if !open.fetch_one(platform.store().pool()).await? {
            return Ok(most);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        round += 1;
    }
}
