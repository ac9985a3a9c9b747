//! A service whose instances share cron jobs: each tick runs on one of them.

use std::process::ExitCode;
use std::time::Duration;

use sexton_guard::{DistributedCron, Lock, LockRow, Schedule, Tick};
use sqlx::PgPool;
use tokio::signal::unix::{SignalKind, signal};

async fn clean_up(pool: PgPool, tick: Tick) -> Result<(), sqlx::Error> {
    let removed = sqlx::query("DELETE FROM tokens WHERE expires_at < $1")
        .bind(tick.scheduled_for())
        .execute(&pool)
        .await?;
    tracing::info!("{} removed {} tokens", tick.job(), removed.rows_affected());
    Ok(())
}

async fn send_reports(tick: Tick) -> Result<(), std::io::Error> {
    // A program that the job starts follows the signal: the service stops, or the lock is lost.
    let mut report = tokio::process::Command::new("/bin/true").kill_on_drop(true).spawn()?;
    tokio::select! {
        status = report.wait() => status.map(drop),
        () = tick.stop().cancelled() => report.kill().await,
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    let mut stop = signal(SignalKind::terminate())?;
    let reports = LockRow::new("sendReports", Duration::from_mins(1))?;
    let tokens = pool.clone();
    let mut cron = DistributedCron::new(pool)
        .job("tokenCleanup", "0 */1 * * * *", Lock::advisory(5101), move |tick| {
            clean_up(tokens.clone(), tick)
        })
        .job(
            "sendReports",
            Schedule::new("0 0 8 * * MON-FRI").timezone("Europe/Vienna"),
            Lock::row(reports),
            send_reports,
        )
        .from_env("CRON_JOBS");
    if let Ok(direct) = std::env::var("DATABASE_DIRECT_URL") {
        cron = cron.direct(direct.parse()?);
    }
    let ended = cron
        .run(async move {
            let _ = stop.recv().await;
        })
        .await?;
    for (job, counts) in ended.all() {
        println!("{job}: {counts:?}");
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    if let Err(error) = run().await {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
