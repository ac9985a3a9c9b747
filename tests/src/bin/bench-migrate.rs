//! `make bench-migrate`: how late claims become while a large database is migrated.
//!
//! Fills a database of its own on the servers that tests use, at an earlier schema, migrates it while something
//! claims, prints what it measured and writes it into the document.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use sexton_tests::database::TestDatabase;
use sexton_tests::upgrade::{Size, Upgraded, prepare, upgrade};
use sexton_tests::{commit, reliability, servers};
use uuid::Uuid;

/// How late claims become while a large database is migrated.
#[derive(Debug, Parser)]
struct Arguments {
    /// The schema before: the number of its last migration
    #[arg(long, default_value_t = 9)]
    from: i64,
    /// How many jobs; 50 of their firings are due each second
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(i64).range(1_000..=100_000_000))]
    jobs: i64,
    /// How many executions that are over; a tenth of them failed
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(i64).range(0..=100_000_000))]
    executions: i64,
    /// Take this database, which an earlier run has filled, instead of filling one that is dropped in the end
    #[arg(long, value_name = "URL")]
    filled: Option<String>,
    /// Write the section of this document
    #[arg(long)]
    report: Option<PathBuf>,
    /// End with an error if a claim is later than so many milliseconds
    #[arg(long, default_value_t = 2_000)]
    limit_ms: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let size =
        Size { from: arguments.from, jobs: arguments.jobs, executions: arguments.executions };
    let say = |text: &str| eprintln!("{text}");
    let own = if arguments.filled.is_some() {
        None
    } else {
        let name = format!("sexton_bench_migrate_{}", &Uuid::new_v4().simple().to_string()[..8]);
        let server = servers::shared().await?.database_url.clone();
        Some(TestDatabase::create_empty_on(&server, &name).await?)
    };
    let filled = arguments.filled.as_deref();
    let url = filled.or(own.as_ref().map(TestDatabase::url)).unwrap_or_default();
    prepare(url, size, say).await?;
    let done = upgrade(url, size, say).await?;
    let text = section(size, &done);
    println!("{text}");
    if let Some(report) = arguments.report {
        reliability::write(&report, "migrate", &text)?;
    }
    let limit = Duration::from_millis(arguments.limit_ms);
    ensure!(done.latest() <= limit, "a claim was late by {} ms", done.latest().as_millis());
    Ok(())
}

fn section(size: Size, done: &Upgraded) -> String {
    let day = sexton_service::clock::now().format("%Y-%m-%d");
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut text = format!(
        "<!-- Written by `make bench-migrate`; not to be edited by hand. -->\n\n\
         {day}, commit {}, {processors} processors: from {:04} on, {} jobs and {} executions;\n\
         {} migrations in {:.1} s, meanwhile {} claims.\n\n\
         | claims | p50 | p99 | latest |\n|---|---|---|---|\n",
        commit::describe().unwrap_or_else(|| "unknown".to_owned()),
        size.from,
        size.jobs,
        size.executions,
        done.applied,
        done.took.as_secs_f64(),
        done.late.len(),
    );
    for (when, late) in [("before", &done.late_before), ("meanwhile", &done.late)] {
        let at = |per_mille: usize| {
            let index = (late.len() * per_mille / 1_000).min(late.len().saturating_sub(1));
            late.get(index).copied().unwrap_or_default().as_millis()
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {when} | {} ms | {} ms | {} ms |", at(500), at(990), at(1_000));
    }
    let slow: Vec<String> = done
        .each
        .iter()
        .filter(|(_, took)| *took >= Duration::from_millis(100))
        .map(|(version, took)| format!("{version:04} ({} ms)", took.as_millis()))
        .collect();
    let _ = write!(
        text,
        "\nFiles that took 100 ms or more: {}.",
        if slow.is_empty() { "none".to_owned() } else { slow.join(", ") }
    );
    text
}
