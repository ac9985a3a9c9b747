//! `make bench-failed`: how long queries of the failed executions take among many executions.
//!
//! Fills its own database on the test servers, runs each query `rounds` times, prints the table and
//! writes it into the document.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use sexton_tests::database::TestDatabase;
use sexton_tests::failed::{Size, fill, measure, table};
use sexton_tests::{commit, reliability};

/// Measures queries of the failed executions
#[derive(Debug, Parser)]
struct Arguments {
    /// How many executions; a tenth of them is failed
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(i64).range(1_000..=100_000_000))]
    scale: i64,
    /// How often each query runs
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Write the section of this document
    #[arg(long)]
    report: Option<PathBuf>,
    /// End with an error if a p99 exceeds this many milliseconds
    #[arg(long)]
    limit_ms: Option<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let database = TestDatabase::create().await?;
    let size = Size { executions: arguments.scale };
    fill(database.store(), size, |rows| eprintln!("{rows} executions")).await?;
    let answered = measure(database.store(), arguments.rounds).await?;
    let text = section(size, arguments.rounds, &table(&answered));
    println!("{text}");
    if let Some(report) = arguments.report {
        reliability::write(&report, "bench", &text)?;
    }
    if let Some(limit) = arguments.limit_ms {
        let slow: Vec<_> =
            answered.iter().filter(|one| one.percentile(99) > limit).map(|one| one.name).collect();
        ensure!(slow.is_empty(), "p99 above {limit} ms: {}", slow.join("; "));
    }
    Ok(())
}

fn section(size: Size, rounds: usize, table: &str) -> String {
    let day = sexton_service::clock::now().format("%Y-%m-%d");
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "<!-- Written by `make bench-failed`; not to be edited by hand. -->\n\n\
         {day}, commit {}, {processors} processors: {} executions, {} of them failed; each question asked\n\
         {rounds} times. *Pages* are those that the plan read, of 8 KiB, cached ones included; *by* are the\n\
         indexes it used.\n\n{table}",
        commit::describe().unwrap_or_else(|| "unknown".to_owned()),
        size.executions,
        size.failed(),
    )
}
