//! Enqueue: executions in a program's transactions, in bulk and one by one.
//!
//! Each has its row and a key that deduplicates it. They are not published meanwhile, like the rows of the bare insert in
//! the comparison.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use sexton_client::{Client, Enqueue};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use sqlx::{Connection as _, PgConnection};

use super::line;
use crate::Arguments;
use crate::bare::{BATCHES, TRANSACTION};
use crate::line::Line;

const JOB: &str = "bench.enqueue";

/// Returns executions per second.
pub(super) async fn measure(arguments: &Arguments, database_url: &str) -> Result<()> {
    let all = (1..=arguments.count)
        .map(|order| {
            Ok(Enqueue::new(JOB).params(&json!({"order": order}))?.key(format!("order-{order}")))
        })
        .collect::<Result<Vec<_>>>()?;
    for batch in BATCHES {
        let rate = rate(database_url, &all, batch, true).await?;
        of_batch(arguments, "enqueue", batch, rate).print();
    }
    let rate = rate(database_url, &all, TRANSACTION, false).await?;
    of_batch(arguments, "enqueue-one", TRANSACTION, rate).print();
    Ok(())
}

/// Enqueues in a database of its own, in transactions of `batch` executions, each by one call or by one call for each
/// execution.
async fn rate(database_url: &str, all: &[Enqueue], batch: usize, in_bulk: bool) -> Result<f64> {
    let database = TestDatabase::create_on(database_url).await?;
    NewJob::new(JOB).insert(database.pool()).await?;
    let mut connection = PgConnection::connect(database.url()).await?;
    let client = Client::new();
    let began = Instant::now();
    for batch in all.chunks(batch) {
        let mut tx = connection.begin().await?;
        if in_bulk {
            client.enqueue_many(&mut tx, batch).await?;
        } else {
            for one in batch {
                client.enqueue(&mut tx, one).await?;
            }
        }
        tx.commit().await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    connection.close().await?;
    let counting = "SELECT count(*) FROM sexton.executions WHERE state = 'pending'";
    let rows: i64 = sqlx::query_scalar(counting).fetch_one(database.pool()).await?;
    ensure!(rows == all.len() as i64, "{rows} of {} were enqueued", all.len());
    Ok(all.len() as f64 / seconds)
}

fn of_batch(arguments: &Arguments, work: &'static str, batch: usize, value: f64) -> Line {
    let mut line = Line { value, unit: "/s", ..line(arguments, work) };
    line.settings.insert("batch".to_owned(), batch.into());
    // It has no worker.
    line.settings.remove("slots");
    line
}
