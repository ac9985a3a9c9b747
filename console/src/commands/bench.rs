//! `sexton bench`: how fast the platform is on its own servers.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use sexton_store::doctor;
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use crate::bench::benchmarks::{Bench, Burst, Drain, Lag};
use crate::bench::environment::{self, BenchEnvironment};
use crate::bench::programs::{Programs, Workers};
use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;

/// Measure the platform's throughput and latency on its own servers
///
/// Creates a database and a namespace of its own on the servers of DATABASE_URL and AMQP_URL, and removes them
/// afterwards: the role must be allowed to create databases. The measurement and the servers' other work slow each
/// other down.
#[derive(Debug, Args)]
pub struct BenchCommand {
    /// Benchmarks to run; all by default
    #[arg(value_enum)]
    works: Vec<Benchmark>,
    /// Number of tasks of the drain and of jobs of the burst
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    count: u32,
    /// Seconds for which the job of the lag fires
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=3_600))]
    seconds: u32,
    /// Number of slots of each worker
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=500))]
    slots: u16,
    /// Number of messages that a slot holds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    prefetch: u16,
    /// Number of workers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    workers: u8,
    /// Measure nothing; remove what killed measurements left behind
    #[arg(long, conflicts_with_all = ["works", "count", "seconds", "slots", "prefetch", "workers"])]
    clean: bool,
    /// Remove without confirmation
    #[arg(long, requires = "clean")]
    yes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Benchmark {
    /// Throughput of waiting tasks
    Drain,
    /// Time until the last of many jobs due at one instant has begun
    Burst,
    /// Delay from due to begun, of one job a second
    Lag,
}

/// Measures, and removes what it made, also after a signal to stop.
///
/// # Errors
///
/// [`Failure`]; its message says what is left, if anything is.
pub async fn run(arguments: &BenchCommand, session: &Session) -> Result<(), Failure> {
    if arguments.clean {
        return clean(arguments.yes, session).await;
    }
    let folder = TempFolder::new()?;
    let mut programs = Programs::new(&folder.0)?;
    let stop_signal = stop_signal()?;
    let environment = BenchEnvironment::create(session).await?;
    let outcome = tokio::select! {
        measured = measure(arguments, &environment, &mut programs, &folder.0) => measured,
        () = stop_signal => Err(Failure::Failed("stopped before the end".to_owned())),
    };
    programs.stop().await;
    match (outcome, environment.remove().await) {
        (Ok(figures), Ok(())) => render(arguments, &figures, session),
        (Ok(_), Err(leftover)) => Err(leftover),
        (Err(why), Ok(())) => Err(why),
        (Err(why), Err(leftover)) => Err(Failure::Failed(format!("{why}\n{leftover}"))),
    }
}

/// All figures of one run.
struct Figures {
    postgres: String,
    rabbitmq: Option<String>,
    drain: Option<Drain>,
    burst: Option<Burst>,
    lag: Option<Lag>,
}

async fn measure(
    arguments: &BenchCommand,
    environment: &BenchEnvironment,
    programs: &mut Programs,
    folder: &Path,
) -> Result<Figures, Failure> {
    let store = environment.store()?;
    let is_selected = |work| arguments.works.is_empty() || arguments.works.contains(&work);
    let (postgres, rabbitmq) =
        (doctor::server(&store).await?.version_text, environment.broker_version().await);
    programs.start_scheduler(environment)?;
    let BenchCommand { count, seconds, slots, prefetch, workers, .. } = *arguments;
    let workers = Workers { count: workers, slots, prefetch };
    let mut bench = Bench { environment, store: &store, programs, workers, folder };
    let drain = if is_selected(Benchmark::Drain) { Some(bench.drain(count).await?) } else { None };
    let burst = if is_selected(Benchmark::Burst) { Some(bench.burst(count).await?) } else { None };
    let lag = if is_selected(Benchmark::Lag) { Some(bench.lag(seconds).await?) } else { None };
    store.close().await;
    Ok(Figures { postgres, rabbitmq, drain, burst, lag })
}

fn render(arguments: &BenchCommand, figures: &Figures, session: &Session) -> Result<(), Failure> {
    let BenchCommand { slots, prefetch, workers, .. } = *arguments;
    let Figures { postgres, rabbitmq, drain, burst, lag } = figures;
    if session.out.is_json() {
        let mut document = Map::new();
        document.insert("servers".into(), json!({"postgresql": postgres, "rabbitmq": rabbitmq}));
        let with = json!({"workers": workers, "slots": slots, "prefetch": prefetch});
        document.insert("settings".into(), with);
        let works: [(&str, Option<Value>); 3] = [
            ("drain", drain.map(|drain| json!(drain))),
            ("burst", burst.map(|burst| json!(burst))),
            ("lag", lag.map(|lag| json!(lag))),
        ];
        document.extend(works.into_iter().filter_map(|(name, work)| Some((name.into(), work?))));
        return session.out.document(&Value::Object(document));
    }
    let rabbitmq = rabbitmq.as_deref().unwrap_or("of an unknown release");
    session.out.print(format!("PostgreSQL {postgres}, RabbitMQ {rabbitmq}"))?;
    let noun = if workers == 1 { "worker" } else { "workers" };
    session.out.print(format!("{workers} {noun} of {slots} slots, prefetch {prefetch}"))?;
    if let Some(Drain { tasks, seconds, tasks_per_second }) = drain {
        let rate = tasks_per_second.round();
        session
            .out
            .print(format!("drain  {rate} tasks a second: {tasks} tasks in {seconds:.1} s"))?;
    }
    if let Some(Burst { jobs, first_start_ms, last_start_ms }) = burst {
        session.out.print(format!(
            "burst  {last_start_ms:.0} ms: {jobs} jobs due at once, from then to the last start (the first {first_start_ms:.0} ms)"
        ))?;
    }
    if let Some(Lag { firings, p50_ms, p99_ms }) = lag {
        session.out.print(format!(
            "lag    p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms: from due to the start, {firings} firings, one a second"
        ))?;
    }
    session.out.print("The tasks do nothing, and every attempt is recorded as ever.")
}

/// Completes at a signal to stop.
fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let signal_failure =
        |error: std::io::Error| Failure::Failed(format!("signals cannot be listened for: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_failure)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(signal_failure)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(signal_failure)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

async fn clean(yes: bool, session: &Session) -> Result<(), Failure> {
    let store = session.database().await?;
    let found = environment::leftovers(session, session.now(&store).await?).await?;
    store.close().await;
    if found.is_empty() {
        return Err(Failure::NothingDone("no measurement has left anything behind".to_owned()));
    }
    let listed: Vec<_> = found.iter().map(BenchEnvironment::names).collect();
    if !session.out.is_json() {
        for (database, namespace) in &listed {
            session.out.print(format!("database {database} and namespace {namespace}"))?;
        }
    }
    confirm(&format!("Remove {} of each, with all that is in them", found.len()), yes)?;
    let (mut removed, mut failures): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for leftover in &found {
        match leftover.remove().await {
            Ok(()) => {
                let (database, namespace) = leftover.names();
                removed.push(json!({"database": database, "namespace": namespace}));
            }
            Err(why) => failures.push(why.to_string()),
        }
    }
    if session.out.is_json() {
        session.out.document(&json!({"removed": removed, "left": failures}))?;
    } else {
        session.out.print(format!("removed {}", removed.len()))?;
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::Reported { exit: Exit::Partly, message: failures.join("\n") })
}

/// A folder for temporary files, gone when this is dropped. A process that is killed leaves it to the system.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("sexton-bench-{}", Uuid::new_v4()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
