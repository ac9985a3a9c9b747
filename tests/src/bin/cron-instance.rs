//! An instance of a service with cron jobs of its own, for the tests in `tests/it/guard/cron`.
//!
//! The jobs `session` and `row` run each second, by a lock of that kind, and write a row into the table `runs`: as `lock` the
//! job with its tick. `CRON_JOBS` may change them. It writes `ready`, and its counts when SIGTERM has ended it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use sexton_guard::{DistributedCron, Lock, LockRow, Tick};
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::signal::unix::{SignalKind, signal};

const EVERY_SECOND: &str = "* * * * * *";

async fn work(pool: PgPool, tick: Tick) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO runs (lock, pid, began, confirmed, ended)
         SELECT $1, $2, now, now, $3 FROM clock_timestamp() AS now",
    )
    .bind(tick.job())
    .bind(std::process::id() as i32)
    .bind(tick.scheduled_for())
    .execute(&pool)
    .await?;
    Ok(())
}

async fn run() -> Result<()> {
    let pool =
        PgPoolOptions::new().max_connections(4).connect(&std::env::var("DATABASE_URL")?).await?;
    let mut stop = signal(SignalKind::terminate())?;
    let row = LockRow::new("row", Duration::from_secs(2))?;
    let (of_session, of_row) = (pool.clone(), pool.clone());
    let cron = DistributedCron::new(pool)
        .job("session", EVERY_SECOND, Lock::advisory(5101), move |tick| {
            work(of_session.clone(), tick)
        })
        .job("row", EVERY_SECOND, Lock::row(row), move |tick| work(of_row.clone(), tick))
        .from_env("CRON_JOBS");
    println!("ready");
    let ended = cron
        .run(async move {
            let _ = stop.recv().await;
        })
        .await?;
    println!("{:?}", ended.all());
    Ok(())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if let Err(error) = run().await {
        println!("failed: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
