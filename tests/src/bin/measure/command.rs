//! What a command costs as a task, beside the same program started by nobody in particular and beside
//! a task that starts no program, and how soon a cancel reaches it.
//!
//! The three are taken in turns, so that whatever else goes on befalls all of them. A task is measured
//! from its open to its record, by the database's clock: that is everything between. A handler that does
//! nothing takes what every attempt does, such as the commit of its open; what a command takes beyond
//! that and beyond its own start is its guard, its folder and its pipes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_tests::platform::Platform;

use super::figures::{Figures, Spread};
use super::output::{ended, trigger};

/// How often a program is started in either way.
const PROGRAM_STARTS: usize = 100;
/// How often one is cancelled.
const CANCELS: usize = 100;

/// How long anything may take.
const DEADLINE: Duration = Duration::from_mins(1);

/// Writes down when it received SIGTERM. The shell waits for the pause, so that its trap can run.
const CANCELLED: &str =
    "trap 'date +%s%N > signalled; exit 0' TERM; echo > begun; sleep 600 & wait";

pub(super) fn catalogue() -> String {
    format!("[tasks.cancelled]\ncommand = [\"/bin/sh\", \"-c\", \"{CANCELLED}\"]\n")
}

/// The lease is so long that no renewal brings the cancel.
pub(super) const JOBS: &str = "
[[job]]
name = \"measure.plain\"
task = \"noop\"
[[job]]
name = \"measure.nothing\"
task = \"nothing\"
pool = \"handlers\"
[[job]]
name = \"measure.cancelled\"
task = \"cancelled\"
lease = \"1h\"
";

/// Measures with a worker that does nothing else.
pub(super) async fn measure(platform: &Platform, figures: &mut Figures) -> Result<()> {
    let mut handlers = platform.start_nothing("handlers", &[("WORKER_POOLS", "handlers")])?;
    handlers.ready().await;
    let mut alone = Vec::with_capacity(PROGRAM_STARTS);
    for number in 1..=PROGRAM_STARTS {
        alone.push(started_alone()?);
        trigger(platform, "measure.plain").await?;
        ended(platform, "measure.plain", number as i64).await?;
        trigger(platform, "measure.nothing").await?;
        ended(platform, "measure.nothing", number as i64).await?;
    }
    let alone = Spread::new(alone);
    let as_task = Spread::new(as_tasks(platform, "measure.plain").await?);
    let nothing = Spread::new(as_tasks(platform, "measure.nothing").await?);
    figures.add("fork and exec of `/bin/true` alone", alone.render());
    figures.add("the same as a task, from open to settlement", as_task.render());
    figures.add("a handler that does nothing, from open to settlement", nothing.render());
    let all = as_task.at(0.5) - alone.at(0.5);
    figures.add("overhead of a command, without fork and exec", format!("{all:.1} ms (p50)"));
    let own_time = all - nothing.at(0.5);
    figures.add("the same, without a handler's overhead", format!("{own_time:.1} ms (p50)"));

    let mut cancels = Vec::with_capacity(CANCELS);
    for _ in 0..CANCELS {
        cancels.push(cancelled(platform).await?);
    }
    handlers.terminate();
    handlers.exit(DEADLINE).await;
    figures.add("from `sexton executions cancel` to SIGTERM", Spread::new(cancels).render());
    Ok(())
}

/// Starts the program and waits for its end, in milliseconds.
fn started_alone() -> Result<f64> {
    let begin = Instant::now();
    let mut process = Command::new("/bin/true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    process.wait()?;
    Ok(begin.elapsed().as_secs_f64() * 1000.0)
}

async fn as_tasks(platform: &Platform, job: &str) -> Result<Vec<f64>> {
    sqlx::query_scalar(
        "SELECT extract(epoch FROM a.finished_at - a.opened_at)::float8 * 1000
         FROM sexton.all_attempts a JOIN sexton.executions e ON e.id = a.execution_id
              JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = $1",
    )
    .bind(job)
    .fetch_all(platform.store().pool())
    .await
    .context("the attempts cannot be read")
}

/// From the start of the command to the signal, in milliseconds.
async fn cancelled(platform: &Platform) -> Result<f64> {
    let (begun, signal_file) =
        (platform.folder().join("begun"), platform.folder().join("signalled"));
    let answer = platform.sexton_json(&["jobs", "trigger", "measure.cancelled"]).await;
    let id = answer["id"].as_str().context("a trigger tells the execution")?;
    let exists = async || begun.exists().then_some(());
    platform.eventually("the task has begun", DEADLINE, exists).await;
    let sent_at = clock::now();
    let done = platform.try_sexton(&["executions", "cancel", id]).await?;
    ensure!(done.status.success(), "sexton executions cancel failed: {done}");
    let at =
        platform.eventually("it received the signal", DEADLINE, async || read(&signal_file)).await;
    std::fs::remove_file(&begun)?;
    std::fs::remove_file(&signal_file)?;
    Ok((at - sent_at).as_seconds_f64() * 1000.0)
}

/// What `date` wrote, once it is whole.
fn read(file: &Path) -> Option<DateTime<Utc>> {
    let nanos = std::fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok()?;
    Some(DateTime::from_timestamp_nanos(nanos))
}
