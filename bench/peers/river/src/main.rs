//! River, by its client for Rust: makes its tables, inserts in bulk. `peer_river.py` runs it.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use riverqueue::migrate::PostgresMigrator;
use riverqueue::sqlx::PgPool;
use riverqueue::{Client, JobArgs};
use serde::{Deserialize, Serialize};

/// What `run.py` asks for, in `BENCH_RUN`.
#[derive(Debug, Deserialize)]
struct Run {
    database: String,
    count: u64,
    settings: Settings,
}

#[derive(Debug, Deserialize)]
struct Settings {
    /// Jobs of one transaction.
    batch: usize,
}

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "bench")]
struct Order {
    order: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let run = std::env::var("BENCH_RUN").context("BENCH_RUN is not set; run.py sets it")?;
    let run: Run = serde_json::from_str(&run)?;
    let pool = PgPool::connect(&run.database).await?;
    match std::env::args().nth(1).as_deref() {
        Some("prepare") => {
            PostgresMigrator::new(pool).migrate_up().await?;
            Ok(())
        }
        Some("bulk") => insert_in_bulk(&run, pool).await,
        _ => bail!("say prepare or bulk"),
    }
}

/// Prints the seconds from the first to the last commit.
async fn insert_in_bulk(run: &Run, pool: PgPool) -> Result<()> {
    let client = Client::builder(pool).build()?;
    let jobs: Vec<Order> = (1..=run.count).map(|order| Order { order }).collect();
    let began = Instant::now();
    for batch in jobs.chunks(run.settings.batch) {
        client.insert_many::<Order, _>(batch.iter().cloned()).await?;
    }
    println!("{}", began.elapsed().as_secs_f64());
    Ok(())
}
