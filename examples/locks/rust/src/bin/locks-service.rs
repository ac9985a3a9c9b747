//! Cleans tokens up every second, on one of the service's instances.

use std::error::Error;

use sexton_guard::{DistributedCron, Lock, Tick};
use sqlx::postgres::{PgConnectOptions, PgPool};
use tokio::signal::unix::{SignalKind, signal};

const KEY: i64 = 5101;

async fn clean_up(pool: PgPool, service: String, tick: Tick) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO cleanups (tick, service) VALUES ($1, $2)");
    insert.bind(tick.scheduled_for()).bind(service).execute(&pool).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let service = std::env::var("SERVICE").unwrap_or_else(|_| "rust".to_owned());
    let options: PgConnectOptions = std::env::var("DATABASE_URL")?.parse()?;
    let pool = PgPool::connect_with(options.application_name(&service)).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    println!("{service} runs");
    // It fires by the database's clock, and has a connection of its own for the locks.
    DistributedCron::new(pool.clone())
        .job("tokenCleanup", "* * * * * *", Lock::advisory(KEY), move |tick| {
            clean_up(pool.clone(), service.clone(), tick)
        })
        .run(async move {
            let _ = terminated.recv().await;
        })
        .await?;
    Ok(())
}
