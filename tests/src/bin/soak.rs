//! `make soak`; what it does is in [`sexton_tests::soak`].

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use sexton_tests::servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer};
use sexton_tests::soak::report::{self, Circumstances};
use sexton_tests::soak::{self, Options};
use sexton_tests::{commit, reliability};

/// The platform under a steady load for a long time, to see that nothing grows.
#[derive(Debug, Parser)]
struct Arguments {
    /// For how many minutes it is fed
    #[arg(long, env = "SOAK_MINUTES", default_value_t = 20.0)]
    minutes: f64,
    /// Feed with at most so many executions a second, on a machine whose load changes
    #[arg(long, default_value_t = 1_000)]
    at_most: usize,
    /// Do not write the sections of docs/internals/reliability.md and tests/long-runs.md
    #[arg(long)]
    no_document: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if !arguments.no_document && commit::changes().is_some() {
        bail!("the record must be of a commit: commit what is changed, or pass --no-document");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let log = log_file()?;
    let options = Options {
        length: Duration::try_from_secs_f64(arguments.minutes * 60.0)?,
        every: Duration::from_secs(5),
        keep: Duration::from_mins(1),
        backlog: 1_500,
        most_jobs: arguments.at_most,
        log: Some(log.clone()),
    };
    // Its own, with the settings of a fresh installation: a server for tests may leave tables unvacuumed.
    let (database, broker) = tokio::join!(
        PostgresServer::start_private(PostgresOptions::default()),
        RabbitServer::start_private(RabbitOptions::default())
    );
    let (database, broker) = (database?, broker?);
    let circumstances = circumstances(database.version(), broker.version());
    report::append(&log, &circumstances)?;
    let outcome = soak::run(database.url(), broker.url(), &options).await?;
    let growths = soak::judge(&outcome.samples, outcome.fed_per_s);
    report::append(&log, &outcome)?;
    report::append(&log, &growths)?;
    let section = report::section(&circumstances, &outcome, &growths);
    let record = report::record(&circumstances, &outcome, &growths);
    println!("{section}\n{record}\n{}", log.display());
    if !arguments.no_document {
        reliability::write(&root.join("docs/internals/reliability.md"), "soak", &section)?;
        reliability::write(&root.join("tests/long-runs.md"), "soak", &record)?;
    }
    tokio::try_join!(database.end(), broker.end())?;
    let bounded = !growths.is_empty() && growths.iter().all(soak::verdict::Growth::is_bounded);
    Ok(if bounded && outcome.was_fed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `soak/<when>.jsonl` in cargo's target folder, which this program is in.
fn log_file() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("this program is not in a target folder")?;
    let folder = target.join("soak");
    std::fs::create_dir_all(&folder)?;
    let when = sexton_service::clock::now().format("%Y%m%dT%H%M%SZ");
    Ok(folder.join(format!("{when}.jsonl")))
}

fn circumstances(postgresql: &str, rabbitmq: &str) -> Circumstances {
    Circumstances {
        day: sexton_service::clock::now().format("%Y-%m-%d").to_string(),
        commit: commit::describe().unwrap_or_else(|| "unknown".to_owned()),
        servers: format!("PostgreSQL {postgresql}, RabbitMQ {rabbitmq}"),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    }
}
