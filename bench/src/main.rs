//! `make bench`, the part in Rust: Sexton's performance, and the servers' limits.
//!
//! One run does one work once and prints one line of JSON for it, in the form of `bench/peers`; `bench/run.py` does
//! the rounds, the other programs and the report. The servers are those of DATABASE_URL and AMQP_URL.

mod bare;
mod line;
mod processor;
mod sexton;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};

/// One work of the comparison.
#[derive(Debug, Parser)]
struct Arguments {
    /// Who works
    #[arg(value_enum)]
    who: Who,
    /// What
    #[arg(long, value_enum)]
    work: Work,
    /// How many tasks
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(i64).range(100..=1_000_000))]
    count: i64,
    /// Slots of the worker, or consumers
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    slots: u16,
    /// Messages that a consumer has at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    prefetch: u16,
    /// How many workers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    workers: u8,
    /// For how many seconds, where a work takes as long as it is given
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=3_600))]
    seconds: u32,
    /// Executions a second that come and go
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    rate: u32,
    /// Executions that have ended before the journal
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=20_000_000))]
    finished: i64,
    /// SQL that changes the journal's schema first, to compare designs: a file of bench/designs
    #[arg(long)]
    design: Option<std::path::PathBuf>,
    /// The number of this round, which the output repeats
    #[arg(long, default_value_t = 1)]
    round: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Who {
    /// The scheduler and workers that `TEST_BIN_DIR` has
    Sexton,
    /// Loops around the client libraries, which keep nothing and survive nothing
    Bare,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Work {
    /// Tasks that wait in the queue, until the last is recorded
    Drain,
    /// Commands that wait in the queue, until the last is recorded
    Commands,
    /// Jobs that are due at the same instant, until the last has begun
    Burst,
    /// Executions that a program enqueues, in batches and one by one
    Enqueue,
    /// Executions that a program enqueues one by one on an idle platform, from the commit to begun
    Start,
    /// What `--count` executions cost that are enqueued for later, and how late those begin that become due
    Delayed,
    /// One job a second, from due to begun
    Lag,
    /// A hundred jobs a second, beside `--count` jobs that are defined and not due
    Defined,
    /// What idle and busy programs occupy
    Memory,
    /// From a worker's death until another has begun its task
    Recovery,
    /// The statements that open and settle, in batches as large as the number of slots
    Journal,
    /// What vacuum leaves, at a steady rate of executions that come and go
    Growth,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let url = |name: &str| {
        std::env::var(name).with_context(|| format!("{name} is not set; `make bench` sets it"))
    };
    let (database_url, amqp_url) = (url("DATABASE_URL")?, url("AMQP_URL")?);
    match arguments.who {
        Who::Sexton => sexton::work(&arguments, &database_url, &amqp_url).await,
        Who::Bare => bare::work(&arguments, &database_url, &amqp_url).await,
    }
}
