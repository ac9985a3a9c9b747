//! `make measure`: how soon a firing starts on an idle machine, and what the idle programs occupy.
//!
//! One scheduler and one worker, one job a second for a minute (or as many seconds as the first
//! argument says). The lag of a firing is its attempt's `started_at` less its nominal time, both by
//! the database's clock. The resident memory is read before the first job exists.
//! Afterwards, what it costs that tasks write; see [`output`].

mod output;

use std::time::Duration;

use anyhow::{Context as _, Result};
use sexton_tests::platform::{Platform, Program};

const JOB: &str = "[[job]]\nname = \"measure.tick\"\ntask = \"noop\"\nevery = \"1s\"\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let seconds: i64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("the argument is a number of seconds")?,
        None => 60,
    };
    let servers = sexton_servers::provide(sexton_servers::Needed::Both).await?;
    let mut platform = Platform::on(&servers.database_url, &servers.amqp_url).await?;
    let noop = "[tasks.noop]\ncommand = [\"/bin/true\"]\n";
    platform.catalogue(&(noop.to_owned() + &output::catalogue()));
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    let mut worker = platform.start_worker("worker", &[])?;
    scheduler.ready().await;
    worker.ready().await;
    // Long enough for every loop to have made its rounds once.
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!("scheduler, idle: {:.1} MB resident", resident_mb(&scheduler)?);
    println!("worker, idle:    {:.1} MB resident", resident_mb(&worker)?);

    platform.apply(JOB).await?;
    let deadline = Duration::from_secs(seconds.unsigned_abs() + 30);
    let wanted = "as many firings as seconds";
    let firings = platform
        .eventually(wanted, deadline, async || {
            let count: i64 =
                sqlx::query_scalar("SELECT count(*) FROM executions WHERE state = 'succeeded'")
                    .fetch_one(platform.store().pool())
                    .await
                    .ok()?;
            (count >= seconds).then_some(count)
        })
        .await;
    let lag: (f64, f64, f64) = sqlx::query_as(
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY lag_ms),
                percentile_cont(0.99) WITHIN GROUP (ORDER BY lag_ms), max(lag_ms)
         FROM (SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000 AS lag_ms
               FROM executions WHERE started_at IS NOT NULL) AS firings",
    )
    .fetch_one(platform.store().pool())
    .await?;
    println!(
        "{firings} firings, due to started: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        lag.0, lag.1, lag.2
    );
    println!("scheduler, after: {:.1} MB resident", resident_mb(&scheduler)?);
    println!("worker, after:    {:.1} MB resident", resident_mb(&worker)?);
    worker.terminate();
    worker.exit(Duration::from_mins(1)).await;
    platform.sexton(&["jobs", "pause", "measure.tick", "--reason", "measured"]).await;
    platform.apply(output::JOBS).await?;
    let mut worker = platform.start_worker("worker", &[("WORKER_SLOTS", "80")])?;
    worker.ready().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    output::measure(&platform, &worker).await?;
    drop(platform);
    servers.shutdown().await?;
    Ok(())
}

fn resident_mb(program: &Program) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid()))?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .context("the kernel does not tell the resident memory")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
