//! Sexton's works: the real programs, with their usual records.

mod backends;
mod burst;
mod commands;
mod defined;
mod delayed;
mod drain;
mod enqueue;
mod growth;
mod journal;
mod lag;
mod memory;
mod recovery;
mod rounds;
mod start;

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Map, json};
use sexton_tests::platform::{Platform, Program};

use crate::line::Line;
use crate::{Arguments, Work};

/// Time limit for everything.
const DEADLINE: Duration = Duration::from_mins(15);
/// The pool of the handlers.
const POOL: &str = "handlers";

pub(crate) async fn work(arguments: &Arguments, database_url: &str, amqp_url: &str) -> Result<()> {
    match arguments.work {
        Work::Journal => return journal::measure(arguments, database_url).await,
        Work::Growth => return growth::measure(arguments, database_url).await,
        Work::Enqueue => return enqueue::measure(arguments, database_url).await,
        _ => {}
    }
    let mut platform = Platform::on(database_url, amqp_url).await?;
    platform.catalogue(
        "[tasks.wait]\ncommand = [\"/bin/sleep\", \"60\"]\n\
         [tasks.true]\ncommand = [\"/bin/true\"]\n",
    );
    match arguments.work {
        Work::Drain => drain::measure(&platform, arguments).await,
        Work::Commands => commands::measure(&platform, arguments).await,
        Work::Burst => burst::measure(&platform, arguments).await,
        Work::Lag => lag::measure(&platform, arguments).await,
        Work::Start => start::measure(&platform, arguments).await,
        Work::Delayed => Box::pin(delayed::measure(&platform, arguments)).await,
        Work::Defined => defined::measure(&platform, arguments).await,
        Work::Memory => memory::measure(&platform, arguments).await,
        Work::Recovery => recovery::measure(&platform, arguments).await,
        Work::Journal | Work::Growth | Work::Enqueue => Ok(()),
    }
}

/// A line without value.
fn line(arguments: &Arguments, work: &'static str) -> Line {
    let mut settings = Map::new();
    settings.insert("slots".to_owned(), arguments.slots.into());
    settings.insert("prefetch".to_owned(), arguments.prefetch.into());
    settings.insert("workers".to_owned(), arguments.workers.into());
    settings.insert("record".to_owned(), "every attempt".into());
    Line {
        peer: "sexton",
        version: env!("CARGO_PKG_VERSION"),
        work,
        round: arguments.round,
        prefetch: (work == "drain").then_some(arguments.prefetch),
        p99: None,
        processor_ms: None,
        settings,
        value: f64::NAN,
        unit: "ms",
        samples: Vec::new(),
    }
}

/// The workers with a handler that does nothing, not yet ready.
fn handlers(platform: &Platform, arguments: &Arguments) -> Result<Vec<Program>> {
    workers(arguments, |name, env| platform.start_nothing(name, env))
}

/// As many workers as the arguments say, each by `start`, not yet ready.
fn workers(
    arguments: &Arguments,
    start: impl Fn(&str, &[(&str, &str)]) -> Result<Program>,
) -> Result<Vec<Program>> {
    let (slots, prefetch) = (arguments.slots.to_string(), arguments.prefetch.to_string());
    let env = [("WORKER_POOLS", POOL), ("WORKER_SLOTS", &slots), ("WORKER_PREFETCH", &prefetch)];
    (1..=arguments.workers).map(|number| start(&format!("worker-{number}"), &env)).collect()
}

/// One job whose task does nothing, once a second.
async fn apply_tick(platform: &Platform, name: &str) -> Result<()> {
    apply_each_second(platform, name, "nothing").await
}

/// One job with this task, once a second.
async fn apply_each_second(platform: &Platform, name: &str, task: &str) -> Result<()> {
    platform
        .apply(&format!(
            "[[job]]\nname = \"{name}\"\ntask = \"{task}\"\npool = \"{POOL}\"\n\
             schedule = \"* * * * * *\"\noverlap = \"allow\"\n"
        ))
        .await
}

/// One job whose task does nothing, without a schedule: it runs what programs enqueue.
async fn apply_unscheduled(platform: &Platform, name: &str) -> Result<()> {
    platform
        .apply(&format!("[[job]]\nname = \"{name}\"\ntask = \"nothing\"\npool = \"{POOL}\"\n"))
        .await
}

async fn run(platform: &Platform, command: &[&str]) -> Result<()> {
    let done = platform.try_sexton(command).await?;
    ensure!(done.status.success(), "sexton {} failed: {done}", command.join(" "));
    Ok(())
}

/// Waits until this query returns true.
async fn until(platform: &Platform, what: &str, question: &'static str) -> Result<()> {
    let yes = async || {
        let answer = sqlx::query_scalar::<_, bool>(question);
        answer.fetch_one(platform.store().pool()).await.ok()?.then_some(())
    };
    platform.eventually(what, DEADLINE, yes).await;
    Ok(())
}

async fn stop(programs: Vec<Program>) {
    for mut program in programs {
        program.terminate();
        program.exit(DEADLINE).await;
    }
}

fn with(mut line: Line, key: &str, value: f64) -> Line {
    line.settings.insert(key.to_owned(), json!((value * 10.0).round() / 10.0));
    line
}
