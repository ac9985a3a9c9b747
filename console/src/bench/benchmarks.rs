//! What is measured. A task does nothing, and each attempt is recorded as ever: opened durably before it runs, settled
//! durably before its ticket is acknowledged.
//!
//! The instants are those of the record, by the database's clock: a task begins when its open is written.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_store::Store;
use sexton_store::measurement::{self, Progress};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::environment::{BenchEnvironment, POOL};
use super::programs::{Programs, Workers};
use crate::failure::Failure;
use crate::show;

/// Between two looks at how far it has come.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// So many times as long as a look takes nobody looks, at least: each reads all rows, beside what is measured.
const POLL_REST_FACTOR: u32 = 20;
/// For one work, but for how long a lag is measured.
const BENCH_TIMEOUT: Duration = Duration::from_mins(15);
/// The most that one backfill takes.
const MAX_BACKFILL_FIRINGS: u32 = 20_000;
/// How long before jobs are due they begin to be made, and how many of them in each second more.
const DUE_LEAD: chrono::Duration = chrono::Duration::seconds(10);
const JOBS_CREATED_PER_SECOND: u32 = 2_000;
/// What fires before the programs have made every round once is not counted.
const WARM_UP: Duration = Duration::from_secs(5);

/// Tasks that waited in the queue.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Drain {
    /// How many.
    pub tasks: u64,
    /// From the first start to the last success.
    pub seconds: f64,
    /// Of them.
    pub tasks_per_second: f64,
}

/// Jobs that were due at the same instant.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Burst {
    /// How many.
    pub jobs: usize,
    /// From then to the first start.
    pub first_start_ms: f64,
    /// And to the last.
    pub last_start_ms: f64,
}

/// One job a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lag {
    /// How many times it fired.
    pub firings: usize,
    /// From due to begun: half of them took no longer.
    pub p50_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}

/// Where and with what is measured.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The servers.
    pub environment: &'a BenchEnvironment,
    /// Its database.
    pub store: &'a Store,
    /// Its programs; no worker is started before it is needed.
    pub programs: &'a mut Programs,
    /// How the workers work.
    pub workers: Workers,
    /// For files of its own.
    pub folder: &'a Path,
}

impl Bench<'_> {
    /// Fills the queue, then lets the workers empty it. Before the other works: no worker may run yet.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub async fn drain(&mut self, count: u32) -> Result<Drain, Failure> {
        let job = "bench.drain";
        self.apply(job, "* * * * * *").await?;
        self.run_sexton(&["jobs", "pause", job, "--reason", "measured"]).await?;
        let (mut upto, mut left) = (self.now().await?, count);
        while left > 0 {
            let batch = left.min(MAX_BACKFILL_FIRINGS);
            let from = upto - chrono::Duration::seconds(i64::from(batch) - 1);
            // The last second is in the range: a scheduler may have claimed it before the pause.
            let since = format_instant(from);
            let until = upto.format("%Y-%m-%dT%H:%M:%S.000001Z").to_string();
            let range = ["--since", &since, "--until", &until, "--yes"];
            self.run_sexton(&[&["jobs", "backfill", job][..], &range].concat()).await?;
            (upto, left) = (from - chrono::Duration::seconds(1), left - batch);
        }
        let bar = show::Progress::new(count as usize);
        self.wait_until("publishing the tickets", job, BENCH_TIMEOUT, |now| {
            bar.set(now.executions - now.unpublished, u64::from(count));
            now.unpublished == 0
        })
        .await?;
        self.programs.start_workers(self.environment, self.workers)?;
        let end = self.wait_until("draining the queue", job, BENCH_TIMEOUT, |now| {
            bar.set(now.succeeded, u64::from(count));
            now.succeeded == now.executions
        });
        let end = end.await?;
        let seconds = end.took.as_secs_f64();
        Ok(Drain {
            tasks: end.succeeded,
            seconds,
            tasks_per_second: end.succeeded as f64 / seconds,
        })
    }

    /// Makes jobs that are due at the same instant, and waits until the last has begun.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub async fn burst(&mut self, count: u32) -> Result<Burst, Failure> {
        let job = "bench.burst";
        self.wait_until_ready().await?;
        // Seldom, so that each fires once.
        self.apply(job, "0 0 1 1 *").await?;
        let began = self.now().await?;
        let due = began
            + DUE_LEAD
            + chrono::Duration::seconds(i64::from(count / JOBS_CREATED_PER_SECOND));
        measurement::copy_job(self.store, job, count, due).await?;
        if self.now().await? >= due {
            return Err(Failure::Failed(format!(
                "{count} jobs could not be made before they were due; nothing was measured, try fewer (`--count`)"
            )));
        }
        let bar = show::Progress::new(count as usize);
        self.wait_until("running the jobs that are due at once", job, BENCH_TIMEOUT, |now| {
            bar.set(now.begun, u64::from(count));
            now.succeeded == u64::from(count)
        })
        .await?;
        let late = measurement::list_start_lags(self.store, job, began).await?;
        let (first_start_ms, last_start_ms) = (percentile(&late, 0.0), percentile(&late, 1.0));
        Ok(Burst { jobs: late.len(), first_start_ms, last_start_ms })
    }

    /// Lets a job fire once a second.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub async fn lag(&mut self, seconds: u32) -> Result<Lag, Failure> {
        let job = "bench.lag";
        self.wait_until_ready().await?;
        self.apply(job, "* * * * * *").await?;
        let total_firings = u64::from(seconds) + WARM_UP.as_secs();
        let bar = show::Progress::new(total_firings as usize);
        let counted_from = self.now().await? + WARM_UP;
        let limit = BENCH_TIMEOUT + Duration::from_secs(total_firings);
        self.wait_until("letting a job fire once a second", job, limit, |now| {
            bar.set(now.succeeded.min(total_firings), total_firings);
            now.succeeded >= total_firings
        })
        .await?;
        let lags = measurement::list_start_lags(self.store, job, counted_from).await?;
        Ok(Lag {
            firings: lags.len(),
            p50_ms: percentile(&lags, 0.5),
            p99_ms: percentile(&lags, 0.99),
        })
    }

    /// Waits until all programs are ready; starts the workers unless they run.
    async fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let (_, workers) = measurement::count_ready(self.store).await?;
        if workers == 0 {
            self.programs.start_workers(self.environment, self.workers)?;
        }
        let (count, end) = (u64::from(self.workers.count), Instant::now() + BENCH_TIMEOUT);
        loop {
            let (schedulers, workers) = measurement::count_ready(self.store).await?;
            if schedulers > 0 && workers >= count {
                return Ok(());
            }
            self.wait_to_poll("starting the programs", end).await?;
        }
    }

    /// Waits until `enough`; what there is then.
    async fn wait_until(
        &mut self,
        what: &str,
        job: &str,
        limit: Duration,
        mut enough: impl FnMut(Progress) -> bool,
    ) -> Result<Progress, Failure> {
        let end = Instant::now() + limit;
        loop {
            let started = Instant::now();
            let now = measurement::read_progress(self.store, job).await?;
            let took = started.elapsed();
            if now.otherwise > 0 {
                return Err(Failure::Failed(format!(
                    "{what}: {} of {} tasks did not succeed; nothing was measured",
                    now.otherwise, now.executions
                )));
            }
            if enough(now) {
                return Ok(now);
            }
            self.wait_to_poll(what, end).await?;
            sleep(took * POLL_REST_FACTOR).await;
        }
    }

    async fn wait_to_poll(&mut self, what: &str, end: Instant) -> Result<(), Failure> {
        self.programs.check()?;
        if Instant::now() >= end {
            return Err(Failure::Failed(format!(
                "{what} took too long and was given up; measure fewer (`--count`), or see what holds the servers \
                 up with `sexton doctor`"
            )));
        }
        sleep(POLL_INTERVAL).await;
        Ok(())
    }

    async fn now(&self) -> Result<DateTime<Utc>, Failure> {
        Ok(sexton_store::status::clock(self.store).await?)
    }

    async fn apply(&self, name: &str, schedule: &str) -> Result<(), Failure> {
        let file = self.folder.join("jobs.toml");
        std::fs::write(
            &file,
            format!(
                "[[job]]\nname = \"{name}\"\ntask = \"bench.noop\"\npool = \"{POOL}\"\n\
                 schedule = \"{schedule}\"\noverlap = \"allow\"\n"
            ),
        )?;
        self.run_sexton(&["jobs", "apply", "--file", &file.to_string_lossy()]).await
    }

    /// Another command of this program, on this ground.
    async fn run_sexton(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).env("DATABASE_URL", &self.environment.urls.database);
        command.env("SEXTON_NAMESPACE", self.environment.namespace()).kill_on_drop(true);
        let done = command.output().await?;
        if done.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&done.stderr);
        let (what, message) = (arguments[..2].join(" "), message.trim());
        Err(Failure::Failed(format!(
            "`sexton {what}` failed on the database of the measurement: {message}"
        )))
    }
}

fn format_instant(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The smallest sample that at least this share (0 to 1) of them does not exceed.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_samples_is_not_exceeded() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        let shares = [0.0, 0.5, 0.99, 1.0].map(|share| percentile(&samples, share) as u32);
        assert_eq!(shares, [1, 50, 99, 100]);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
