//! The demo: the platform at work before one's eyes, within a minute.
//!
//! # Purpose
//!
//! Somebody who has never seen Sexton runs `make demo` and sees a cron job fire, run, fail, be
//! retried, be parked, be looked at and put back; then a scheduler and a worker are killed and
//! nothing is lost.
//!
//! # Guarantees
//!
//! - Real programs on a real PostgreSQL and RabbitMQ, in a database and a namespace of their own;
//!   what an operator does is done by the command `sexton`.
//! - Each line about an execution is read from rows and carries its id.
//! - Without a terminal it ends by itself; at a terminal it stays up until Enter, for people who look at the
//!   console. It succeeds only if all of it was observed. Otherwise it names what is missing and shows the ends of
//!   the programs' logs.
//! - Whatever it started is stopped again, also on Ctrl-C.
//!
//! `up` and `down` leave the same platform running, and end it; see [`up`]. `clients` shows services in other languages.

mod changes;
mod clients;
mod cluster;
mod console;
mod event_lines;
mod ledger;
mod observer;
mod output;
mod rows;
mod scenarios;
mod state;
mod stop_signal;
pub mod up;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use sexton_servers::{Needed, Servers, provide};
use tokio::time::Instant;

use cluster::{Cluster, example};
use observer::Observer;
use output::{Output, Tone};
use stop_signal::StopSignal;

/// How long a demo may take.
pub const DEMO_TIMEOUT: Duration = Duration::from_secs(110);

/// What of [`DEMO_TIMEOUT`] is left to the story at least, however long the servers took to start: on a bare
/// machine they are installed first.
const MIN_SCENARIO_TIME: Duration = Duration::from_secs(80);

/// How to run it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Without workers it must fail: that shows that its lines are no foregone conclusion.
    pub has_workers: bool,
    /// How long it may take.
    pub limit: Duration,
    /// Whether it stays up at its end, until Enter, for people who look at the console.
    pub stays: bool,
}

/// Runs the demo. Success: all of it was observed; 1: not all of it; 128 + n: signal n ended it.
///
/// # Errors
///
/// There are no servers, or something failed that is not part of the play.
pub async fn run(options: Options) -> Result<ExitCode> {
    let output = Output::new();
    output::write("Sexton at work: two schedulers, two workers, PostgreSQL and RabbitMQ.");
    output::write("Each line with an execution's id tells what its rows in PostgreSQL say.\n");
    on_servers(&output, async |servers| perform(servers, &output, options).await).await
}

/// Shows services in other languages that enqueue. Success: a worker ran what each of them enqueued, those in languages that
/// are not installed left out; 1: not so; 128 + n: signal n ended it.
///
/// # Errors
///
/// There are no servers, or a service did not start or took no order.
pub async fn run_clients() -> Result<ExitCode> {
    let output = Output::new();
    output::write("Services in Python, TypeScript and Java enqueue a job, and workers run it.\n");
    on_servers(&output, async |servers| clients::perform(servers, &output).await).await
}

/// Finds or starts the servers, plays on them, and stops what was started.
async fn on_servers(
    output: &Output,
    play: impl AsyncFnOnce(&Servers) -> Result<bool>,
) -> Result<ExitCode> {
    let mut stop_signal = StopSignal::listen()?;
    output.say("servers", Tone::Plain, "finding or starting PostgreSQL and RabbitMQ …");
    let servers = tokio::select! {
        servers = provide(Needed::Both) => servers?,
        // What was started so far is dropped here, and its guards stop it.
        code = stop_signal.exit_code() => return Ok(code),
    };
    output.say("servers", Tone::Plain, &servers.description());
    let outcome = tokio::select! {
        outcome = play(&servers) => outcome.map(|is_complete| {
            if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }),
        code = stop_signal.exit_code() => {
            output.say("stopped", Tone::Plain, "everything that was started is gone");
            Ok(code)
        }
    };
    servers.shutdown().await?;
    outcome
}

/// Sets the stage and plays; whether all was observed.
async fn perform(servers: &Servers, output: &Output, options: Options) -> Result<bool> {
    let left = options.limit.saturating_sub(output.elapsed());
    let deadline = Instant::now() + left.max(MIN_SCENARIO_TIME.min(options.limit));
    let mut cluster = Cluster::build(servers, "demo").await?;
    output.say("migrated", Tone::Plain, "a database of its own, by `sexton migrate`");
    let tasks = example("demo/tasks.toml");
    cluster.start(options.has_workers.then_some(tasks.as_path())).await?;
    let names: Vec<_> =
        cluster.programs().map(|p| format!("{} (process {})", p.name(), p.pid())).collect();
    output.say("started", Tone::Plain, &names.join(", "));

    let mut observer = Observer::begin(&mut cluster, output, deadline).await?;
    let end = scenarios::run_all(&mut observer).await;
    let is_complete = summarise(&mut observer, end).await?;
    if is_complete && options.stays {
        console::stay(&mut observer).await?;
    }
    if !is_complete {
        output.head("The ends of the programs' logs");
        output::write(&cluster.platform.log_tails());
    }
    Ok(is_complete)
}

/// Prints the summary; whether nothing is missing and nothing is wrong.
async fn summarise(observer: &mut Observer<'_>, end: Result<()>) -> Result<bool> {
    let balance = scenarios::balance(observer).await?;
    let (output, ledger) = (observer.output, &observer.ledger);
    output.head("Summary");
    output::write(&ledger.table(output.has_color()));
    output::write(&balance.table(output.has_color()));
    let mut faults = Vec::new();
    if let Err(error) = end {
        faults.push(format!("{error:#}"));
    }
    let missing = ledger.missing();
    if !missing.is_empty() {
        faults.push(format!("not observed: {}", missing.join(", ")));
    }
    faults.extend(balance.faults());
    if faults.is_empty() {
        output::write("");
        output.say("complete", Tone::Good, "all of it was observed, and nothing was lost");
        return Ok(true);
    }
    output::write("");
    for fault in faults {
        output.say("FAILED", Tone::Bad, &fault);
    }
    Ok(false)
}
