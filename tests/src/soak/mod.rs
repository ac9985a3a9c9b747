//! `make soak`: the platform under a steady load for a long time, to see that nothing grows.
//!
//! Two schedulers and two workers on a database and a namespace of their own. How fast they drain is
//! measured first, with a backlog of the same mix. Then jobs that each fire once a second are fed at
//! half of that, with tasks that succeed, are retried, fail for good, write much and take time; an
//! operator requeues, discards and cancels; and retention keeps a minute. All the while memory,
//! descriptors, threads, tables, indexes and queues are sampled, and in the end judged: see
//! [`verdict`].
//!
//! A run writes `target/soak/<when>.jsonl` (a line for each sample, the outcome last) and the section
//! between the markers of [`report`].

mod load;
mod maintenance;
pub mod report;
pub mod sample;
mod series;
pub mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Timeouts};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::platform::{Platform, Program};
use maintenance::MaintenanceCounts;
use sample::Sample;

pub use series::judge;

/// How long a backlog may take to drain, and the rest after the feeding.
const DRAIN_TIMEOUT: Duration = Duration::from_mins(5);
/// Between applying a backlog and its due time.
const LEAD_TIME: Duration = Duration::from_secs(5);
/// Fewer cannot be judged.
const MIN_SAMPLES: usize = 12;
/// The share of the nominal feeding that must have become executions.
const MIN_FED_SHARE: f64 = 0.95;
/// Slots of each worker.
const SLOTS: &str = "8";

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long it is fed.
    pub length: Duration,
    /// Between two samples.
    pub every: Duration,
    /// Executions that are kept after their end.
    pub keep: Duration,
    /// Executions by which the drain rate is measured.
    pub backlog: usize,
    /// The most jobs, of a firing a second each.
    pub most_jobs: usize,
    /// Where each sample is written to as soon as it is taken.
    pub log: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Executions a second that were drained.
    pub drained_per_s: f64,
    /// Executions a second that were fed.
    pub fed_per_s: f64,
    /// Seconds of feeding.
    pub seconds: f64,
    /// Executions that there were in all, the backlog not counted.
    pub executions: u64,
    /// Of these, those that retention removed.
    pub removed: u64,
    /// Failed executions that were run again.
    pub requeued: u64,
    /// Failed executions that were given up.
    pub discarded: u64,
    /// Executions that were cancelled.
    pub cancelled: u64,
    /// Rows in the audit of operators' actions.
    pub audited: u64,
    /// All samples.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Outcome {
    /// Whether as many executions came of the feeding as were to come of it: at least 95 %. A
    /// scheduler that does not keep up turns firings into gaps, and then little was shown.
    pub fn was_fed(&self) -> bool {
        self.executions as f64 >= MIN_FED_SHARE * self.fed_per_s * self.seconds
    }
}

/// Runs a soak on the given servers.
///
/// # Errors
///
/// A program ended, or something did not drain within five minutes. What grew is no error: ask
/// [`judge`].
pub async fn run(database_server: &str, amqp_url: &str, options: &Options) -> Result<Outcome> {
    let mut platform = Platform::on(database_server, amqp_url).await?;
    platform.catalogue(&load::catalogue());
    let slots = [("WORKER_SLOTS", SLOTS)];
    let mut programs = vec![
        platform.start_scheduler("scheduler-1", &[])?,
        platform.start_scheduler("scheduler-2", &[])?,
        platform.start_worker("worker-1", &slots)?,
        platform.start_worker("worker-2", &slots)?,
    ];
    for program in &mut programs {
        program.try_ready().await?;
    }
    let drained_per_s = measure_drain(&platform, options.backlog).await?;
    let jobs = half(drained_per_s).clamp(load::MIXED, options.most_jobs.max(load::MIXED));
    eprintln!("drains {drained_per_s:.1} executions a second; fed with {jobs}");
    feed(&platform, &programs, jobs, drained_per_s, options).await
}

/// Whole executions a second.
fn half(rate: f64) -> usize {
    (rate / 2.0).floor().max(0.0) as usize
}

/// Executions a second that finish while there are always more.
async fn measure_drain(platform: &Platform, backlog: usize) -> Result<f64> {
    let due = sexton_service::clock::now() + LEAD_TIME;
    platform.apply(&load::backlog(backlog, due)).await?;
    idle(platform, backlog as i64).await?;
    let seconds: f64 = sqlx::query_scalar(
        "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 FROM sexton.executions",
    )
    .fetch_one(platform.store().pool())
    .await?;
    ensure!(seconds > 0.0, "the backlog of {backlog} was too small to measure anything");
    Ok(backlog as f64 / seconds)
}

async fn feed(
    platform: &Platform,
    programs: &[Program],
    jobs: usize,
    drained_per_s: f64,
    options: &Options,
) -> Result<Outcome> {
    let link = link(platform).await?;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let store = platform.store();
    let counts = Arc::new(MaintenanceCounts::default());
    let operating = maintenance::operator(store.clone(), Arc::clone(&counts), stop.clone());
    let pruning =
        maintenance::prune(store.clone(), options.keep, Arc::clone(&counts), stop.clone());
    let tasks = [tokio::spawn(operating), tokio::spawn(pruning)];

    platform.apply(&load::jobs(jobs)).await?;
    let samples = sample(platform, programs, &link, &counts, options).await?;
    let seconds = samples.last().map_or(0.0, |sample| sample.at_s);
    end_of_feeding(platform).await?;
    idle(platform, 0).await?;
    stop.cancel();
    for task in tasks {
        task.await??;
    }
    let removed = maintenance::count(&counts.removed);
    let left = count(platform, "sexton.executions").await?;
    link.close().await;
    let executions = (removed + left).saturating_sub(options.backlog as u64);
    Ok(Outcome {
        drained_per_s,
        fed_per_s: jobs as f64,
        seconds,
        executions,
        removed,
        requeued: maintenance::count(&counts.requeued),
        discarded: maintenance::count(&counts.discarded),
        cancelled: maintenance::count(&counts.cancelled),
        audited: count(platform, "sexton.operator_actions WHERE actor = 'soak'").await?,
        samples,
    })
}

async fn sample(
    platform: &Platform,
    programs: &[Program],
    link: &Link,
    counts: &MaintenanceCounts,
    options: &Options,
) -> Result<Vec<Sample>> {
    let began = Instant::now();
    let mut samples = Vec::new();
    let mut rounds = interval(options.every);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // On a machine that stands still a short soak goes on until there was something to see.
    while began.elapsed() < options.length || !counts.have_worked() || samples.len() < MIN_SAMPLES {
        ensure!(began.elapsed() < options.length + DRAIN_TIMEOUT, "{}", platform.log_tails());
        rounds.tick().await;
        let pool = platform.store().pool();
        let (states, unpublished) = sample::executions(pool).await?;
        let sample = Sample {
            at_s: began.elapsed().as_secs_f64(),
            processes: sample::processes(programs).with_context(|| platform.log_tails())?,
            tables: sample::tables(pool).await?,
            queues: sample::queues(link, platform.namespace()).await?,
            states,
            unpublished,
        };
        if let Some(log) = &options.log {
            report::append(log, &sample)?;
        }
        samples.push(sample);
    }
    Ok(samples)
}

/// No firings any more.
async fn end_of_feeding(platform: &Platform) -> Result<()> {
    let none = platform.folder().join("no-jobs.toml");
    std::fs::write(&none, "")?;
    let none = none.to_str().context("the folder's path is not UTF-8")?;
    let output = platform.try_sexton(&["jobs", "apply", "-f", none, "--prune", "--yes"]).await?;
    ensure!(output.status.success(), "the jobs could not be paused: {output}");
    Ok(())
}

/// Waits until at least so many executions have finished and none is under way.
async fn idle(platform: &Platform, finished: i64) -> Result<()> {
    let end = Instant::now() + DRAIN_TIMEOUT;
    let mut looks = interval(Duration::from_millis(100));
    loop {
        looks.tick().await;
        let (states, _) = sample::executions(platform.store().pool()).await?;
        let of = |names: &[&str]| names.iter().filter_map(|name| states.get(*name)).sum::<i64>();
        let under_way = of(&["pending", "running", "retrying"]);
        if under_way == 0 && of(&["succeeded", "failed"]) >= finished {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("{under_way} executions are still under way\n{}", platform.log_tails());
        }
    }
}

async fn count(platform: &Platform, what: &str) -> Result<u64> {
    let statement = format!("SELECT count(*) FROM {what}");
    let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .fetch_one(platform.store().pool())
        .await?;
    Ok(count.unsigned_abs())
}

/// A connection of its own, to count messages with.
async fn link(platform: &Platform) -> Result<Link> {
    let timeouts = Timeouts::default();
    let link = Link::start(LinkSettings {
        endpoint: Endpoint::parse(platform.amqp_url())?,
        name: "soak".to_owned(),
        namespace: platform.namespace().clone(),
        pools: vec![PoolName::default_pool()],
        timeouts,
    });
    let up = tokio::time::timeout(timeouts.connect, link.up()).await;
    ensure!(matches!(up, Ok(Some(_))), "the broker cannot be reached");
    Ok(link)
}
