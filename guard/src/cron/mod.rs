//! Cron jobs that a service runs itself: on every instance the same jobs, each tick on one of them.

mod clock;
mod counts;
mod environment;
mod error;
mod runner;
mod schedule;
mod work;

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::clock::DatabaseClock;
pub use self::counts::{JobCounts, Statistics};
pub use self::error::{CronError, InvalidCron};
use self::runner::Runner;
pub use self::schedule::{Days, Schedule};
pub use self::work::Tick;
use self::work::Work;
use crate::advisory::AdvisoryLocks;
use crate::error::LockError;
use crate::lock_row::LockRow;

/// How long running works may go on after the shutdown began, unless it is set.
const GRACE: Duration = Duration::from_secs(25);

/// By which lock the instances of a service agree who runs a tick.
#[derive(Clone, Debug)]
pub enum Lock {
    /// The advisory lock of a key, with the tick in the platform's table: the database needs the schema (`sexton migrate`).
    /// Instances in other languages that take the same key are kept out.
    Advisory(i64),
    /// A row of ShedLock's table, which is taken once per tick.
    Row(LockRow),
}

impl Lock {
    /// The advisory lock of a key.
    pub const fn advisory(key: i64) -> Self {
        Self::Advisory(key)
    }

    /// A lock row.
    pub const fn row(row: LockRow) -> Self {
        Self::Row(row)
    }

    const fn key(&self) -> Option<i64> {
        match self {
            Self::Advisory(key) => Some(*key),
            Self::Row(_) => None,
        }
    }

    /// Whether a job with this lock would take the ticks of one with the other.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Advisory(key), Self::Advisory(other)) => key == other,
            (Self::Row(row), Self::Row(other)) => row.is_same_row(other),
            _ => false,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Advisory(key) => key.to_string(),
            Self::Row(row) => format!("the row {:?}", row.name()),
        }
    }
}

/// A job as it was registered.
#[derive(Debug)]
struct Job {
    name: String,
    schedule: Schedule,
    lock: Lock,
    work: Work,
}

/// The cron jobs of a service.
///
/// Every instance runs the same program with the same jobs. At each tick all of them try to take it; one runs the function, the
/// others count the tick as skipped. Which instant a tick is comes from the schedule, and when it has come from the
/// database's clock: the clocks of the instances are never read.
///
/// ```no_run
/// use sexton_guard::{DistributedCron, Lock};
///
/// # async fn clean_up(_: sexton_guard::Tick) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// DistributedCron::new(pool)
///     .job("tokenCleanup", "0 */1 * * * *", Lock::advisory(5101), clean_up)
///     .from_env("CRON_JOBS")
///     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// - A tick runs **at most once**. If its instance dies in the middle nobody repeats it; the next tick runs.
/// - A work that panics, fails or loses its lock is logged and counted, and the next tick runs. When the lock is lost the work's
///   future is dropped first.
/// - A work that takes longer than its period skips the ticks meanwhile, logged as an overrun. Ticks that no instance could
///   try in time are logged as missed.
#[derive(Debug)]
#[must_use = "no job runs before DistributedCron::run"]
pub struct DistributedCron {
    pool: PgPool,
    direct: Option<PgConnectOptions>,
    jobs: Vec<Job>,
    variable: Option<String>,
    grace: Duration,
    statistics: Statistics,
}

impl DistributedCron {
    /// Takes the pool for the clock and for lock rows. Advisory locks get a connection of their own, by the pool's options.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            direct: None,
            jobs: Vec::new(),
            variable: None,
            grace: GRACE,
            statistics: Statistics::default(),
        }
    }

    /// Sets the way to PostgreSQL itself, for advisory locks where the pool goes through a pooler (`DATABASE_DIRECT_URL`).
    pub fn direct(mut self, options: PgConnectOptions) -> Self {
        self.direct = Some(options);
        self
    }

    /// Sets how long running works may go on after the shutdown began; 25 seconds unless it is set. Then they are dropped.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Registers a job: its name, its [schedule](Schedule), its lock, and its function.
    ///
    /// Nothing is checked before [`Self::run`], which names all problems at once.
    pub fn job<F, T, E>(
        mut self,
        name: impl Into<String>,
        schedule: impl Into<Schedule>,
        lock: Lock,
        work: impl Fn(Tick) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        E: Display,
    {
        let (name, schedule) = (name.into(), schedule.into());
        self.jobs.push(Job { name, schedule, lock, work: Work::new(work) });
        self
    }

    /// Lets an environment variable change schedules and keys of the jobs:
    /// `{"tokenCleanup": {"schedule": "0 */5 * * * *", "lockKey": 5101}}`. Jobs that it does not name stay as they are.
    pub fn from_env(mut self, variable: impl Into<String>) -> Self {
        self.variable = Some(variable.into());
        self
    }

    /// The counts of the jobs while they run; clones show the same.
    pub fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    /// Runs the jobs until `shutdown` resolves. Then no tick is taken any more, running works get the signal and the grace,
    /// and the counts are returned.
    ///
    /// If this future is dropped all works are dropped, and their locks are released.
    ///
    /// # Errors
    ///
    /// [`CronError::Invalid`] with all problems of names, schedules and keys, before anything is connected;
    /// [`CronError::Lock`] where the locks cannot be taken at all: a pooler that shares sessions, a missing schema. A database
    /// that does not answer at the start is an error, too; afterwards it costs the ticks of the outage.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Statistics, CronError> {
        let value = self.variable.as_ref().and_then(std::env::var_os);
        let value = value.as_ref().map(|value| value.to_string_lossy());
        let jobs = environment::apply(self.jobs, self.variable.as_deref(), value.as_deref())
            .map_err(CronError::Invalid)?;
        let clock = Arc::new(DatabaseClock::read(self.pool.clone()).await?);
        let locks = if jobs.iter().any(|job| matches!(job.lock, Lock::Advisory(_))) {
            let options = self
                .direct
                .unwrap_or_else(|| PgConnectOptions::clone(&self.pool.connect_options()));
            let locks = AdvisoryLocks::connect(options).await?;
            check_ticks(&self.pool).await?;
            Some(locks)
        } else {
            None
        };
        let stop = CancellationToken::new();
        // Dropped with this future: no job outlives it.
        let mut running = JoinSet::new();
        running.spawn(clock::follow(Arc::clone(&clock), stop.clone()));
        for job in jobs {
            let counts = self.statistics.of(&job.name);
            let runner = Runner {
                job,
                clock: Arc::clone(&clock),
                locks: locks.clone(),
                pool: self.pool.clone(),
                stop: stop.clone(),
                counts,
            };
            running.spawn(runner.run());
        }
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                Some(Err(error)) = running.join_next() => {
                    tracing::error!(%error, "a cron job does not run any more: {error}");
                }
            }
        }
        stop.cancel();
        tracing::info!("no cron job begins any more; those that run have {:?}", self.grace);
        let all = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all).await.is_err() {
            tracing::warn!("cron jobs are dropped, since they still run after {:?}", self.grace);
            running.shutdown().await;
        }
        if let Some(locks) = locks {
            // So that the ends of what was dropped are recorded before the process is over.
            locks.flush().await;
        }
        Ok(self.statistics)
    }
}

/// Fails unless the platform's function can be called: it refuses the absent key before it does anything.
async fn check_ticks(pool: &PgPool) -> Result<(), LockError> {
    let called = sqlx::raw_sql("SELECT sexton.guard_try(NULL, NULL)").execute(pool).await;
    match called.map_err(LockError::of_tick) {
        Ok(_) | Err(LockError::Tick(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
