//! `make measure`: how soon a firing starts on an idle machine, what the idle programs occupy, what
//! a command costs, how soon a cancel arrives, and what much output and many jobs cost.
//!
//! One scheduler and one worker, one job a second for a minute (or `--seconds`). The lag of a
//! firing is its attempt's `started_at` less its nominal time, both by the database's clock. The
//! resident memory is read before the first job exists. Afterwards, one after the other:
//! [`command`], [`output`] and [`schedules`]; [`requeues`], [`sweeps`], [`refusals`], [`monitors`], [`checks`],
//! [`pings`] and [`console`] run only by an option.

mod checks;
mod command;
mod console;
mod figures;
mod hook;
mod meter;
mod monitors;
mod output;
mod pings;
mod refusals;
mod requeues;
mod schedules;
mod sweeps;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use figures::{Figures, Spread};
use sexton_tests::platform::{Platform, Program};
use sexton_tests::{commit, reliability};

const JOB: &str = "[[job]]\nname = \"measure.tick\"\ntask = \"noop\"\nevery = \"1s\"\n";

/// Measures latencies on an idle machine, and costs
#[derive(Debug, Parser)]
struct Arguments {
    /// For how many seconds jobs fire, or pings are sent
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only the cost of many jobs; printed, and not written into a document
    #[arg(long, conflicts_with = "report")]
    schedules: bool,
    /// Only requeues, of this many failed executions at once; written into the section `requeues`
    #[arg(long, conflicts_with = "schedules", value_parser = clap::value_parser!(i64).range(1_000..=1_000_000))]
    requeues: Option<i64>,
    /// Only a pass of the sweep, over each of these numbers of messages; written into the section `sweeps`
    #[arg(long, conflicts_with_all = ["schedules", "requeues"], value_delimiter = ',',
          value_parser = clap::value_parser!(i64).range(1_000..=10_000_000))]
    sweeps: Vec<i64>,
    /// Only triggers, while this many tickets of another pool are refused; written into the section `refusals`
    #[arg(long, conflicts_with_all = ["schedules", "requeues", "sweeps"],
          value_parser = clap::value_parser!(i64).range(1_000..=1_000_000))]
    refusals: Option<i64>,
    /// Only monitors, of this many jobs; written into the section `monitors`
    #[arg(long, conflicts_with_all = ["schedules", "requeues", "sweeps", "refusals"],
          value_parser = clap::value_parser!(i64).range(1_000..=1_000_000))]
    monitors: Option<i64>,
    /// Only checks of foreign jobs, so many; written into the section `checks`
    #[arg(long, conflicts_with_all = ["schedules", "requeues", "sweeps", "refusals", "monitors"],
          value_parser = clap::value_parser!(i64).range(1_000..=1_000_000))]
    checks: Option<i64>,
    /// Only pings of `sexton serve`, so many a second; written into the section `pings`
    #[arg(long, conflicts_with_all = ["schedules", "requeues", "sweeps", "refusals", "monitors", "checks"],
          value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pings: Option<u32>,
    /// Only pages and lists of the console, among so many executions; written into the section `console`
    #[arg(long, conflicts_with_all = ["schedules", "requeues", "sweeps", "refusals", "monitors", "checks", "pings"],
          value_parser = clap::value_parser!(i64).range(100_000..=100_000_000))]
    console: Option<i64>,
    /// Write the section of this document
    #[arg(long)]
    report: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let servers = sexton_servers::provide_durable(sexton_servers::Needed::Both).await?;
    let (database_url, amqp_url) = (&servers.database_url, &servers.amqp_url);
    let mut figures = Figures::default();
    let mut missed = Vec::new();
    let section = if arguments.schedules {
        schedules::measure(database_url, amqp_url, &mut figures).await?;
        ("schedules", BY_FIRINGS)
    } else if let Some(count) = arguments.requeues {
        requeues::measure(database_url, amqp_url, count, &mut figures).await?;
        ("requeues", BY_REQUEUES)
    } else if let Some(count) = arguments.refusals {
        refusals::measure(database_url, count, &mut figures).await?;
        ("refusals", BY_REFUSALS)
    } else if let Some(count) = arguments.monitors {
        monitors::measure(database_url, amqp_url, count, &mut figures).await?;
        ("monitors", BY_MONITORS)
    } else if let Some(count) = arguments.checks {
        checks::measure(database_url, amqp_url, count, &mut figures).await?;
        ("checks", BY_CHECKS)
    } else if let Some(rate) = arguments.pings {
        let time = Duration::from_secs(arguments.seconds.into());
        pings::measure(database_url, amqp_url, (rate, time), &mut figures).await?;
        ("pings", BY_PINGS)
    } else if let Some(executions) = arguments.console {
        missed = console::measure(database_url, amqp_url, executions, &mut figures).await?;
        ("console", BY_CONSOLE)
    } else if arguments.sweeps.is_empty() {
        everything(database_url, amqp_url, arguments.seconds, &mut figures).await?;
        ("measure", BY_FIRINGS)
    } else {
        for count in arguments.sweeps {
            sweeps::measure(database_url, amqp_url, count, &mut figures).await?;
        }
        ("sweeps", BY_REQUEUES)
    };
    servers.shutdown().await?;
    if let Some(report) = arguments.report {
        let (name, heading) = section;
        reliability::write(&report, name, &render(heading, &figures))?;
    }
    ensure!(missed.is_empty(), "goals were missed: {}", missed.join("; "));
    Ok(())
}

/// Measures what no option asks for.
async fn everything(
    database_url: &str,
    amqp_url: &str,
    seconds: u32,
    figures: &mut Figures,
) -> Result<()> {
    let mut platform = Platform::on(database_url, amqp_url).await?;
    let noop = "[tasks.noop]\ncommand = [\"/bin/true\"]\n";
    platform.catalogue(&[noop, &command::catalogue(), &output::catalogue()].concat());
    idle_and_firing(&platform, i64::from(seconds), figures).await?;
    platform.apply(&[command::JOBS, output::JOBS].concat()).await?;
    let mut worker = platform.start_worker("worker", &[("WORKER_SLOTS", "80")])?;
    worker.ready().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    command::measure(&platform, figures).await?;
    output::measure(&platform, &worker, figures).await?;
    drop(platform);
    schedules::measure(database_url, amqp_url, figures).await
}

const BY_FIRINGS: &str = "## Measured\n\n\
    <!-- Written by `make measure`; not to be edited by hand. -->\n\n";
const BY_REQUEUES: &str = "<!-- Written by `make bench-failed`; not to be edited by hand. -->\n\n";

const BY_REFUSALS: &str = "## Refused tickets\n\n\
    <!-- Written by `make bench-refusals`; not to be edited by hand. -->\n\n";

const BY_MONITORS: &str = "## Monitors\n\n\
    <!-- Written by `make bench-monitors`; not to be edited by hand. -->\n\n";

const BY_CHECKS: &str = "## Checks\n\n\
    <!-- Written by `make bench-monitors`; not to be edited by hand. -->\n\n";

const BY_PINGS: &str = "## Pings\n\n\
    <!-- Written by `make bench-pings`; not to be edited by hand. -->\n\n";

const BY_CONSOLE: &str = "## Console\n\n\
    <!-- Written by `make bench-console`; not to be edited by hand. -->\n\n";

/// The section of the document.
fn render(heading: &str, figures: &Figures) -> String {
    let day = sexton_service::clock::now().format("%Y-%m-%d");
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{heading}{day}, commit {}, {processors} processors; release builds, with\n\
         nothing else to do.\n\n{}",
        commit::describe().unwrap_or_else(|| "unknown".to_owned()),
        figures.table()
    )
}

/// Starts a scheduler that stays, and a worker that is stopped in the end.
async fn idle_and_firing(platform: &Platform, seconds: i64, figures: &mut Figures) -> Result<()> {
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    let mut worker = platform.start_worker("worker", &[])?;
    scheduler.ready().await;
    worker.ready().await;
    // Long enough for every loop to have made its rounds once.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let memory =
        |program| Ok::<_, anyhow::Error>(format!("{:.1} MB resident", resident_mb(program)?));
    figures.add("scheduler, idle", memory(&scheduler)?);
    figures.add("worker, idle", memory(&worker)?);

    platform.apply(JOB).await?;
    let deadline = Duration::from_secs(seconds.unsigned_abs() + 30);
    let enough = async || {
        let count = "SELECT count(*) FROM sexton.executions WHERE state = 'succeeded'";
        let count: i64 = sqlx::query_scalar(count).fetch_one(platform.store().pool()).await.ok()?;
        (count >= seconds).then_some(())
    };
    platform.eventually("as many firings as seconds", deadline, enough).await;
    let lags: Vec<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000
         FROM sexton.executions WHERE started_at IS NOT NULL",
    )
    .fetch_all(platform.store().pool())
    .await?;
    figures.add("a firing, from due to started", Spread::new(lags).render());
    figures.add("scheduler, after that", memory(&scheduler)?);
    figures.add("worker, after that", memory(&worker)?);
    worker.terminate();
    worker.exit(Duration::from_mins(1)).await;
    platform.sexton(&["jobs", "pause", "measure.tick", "--reason", "measured"]).await;
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
