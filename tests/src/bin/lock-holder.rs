//! A process that takes a lock again and again and works under it, for the tests in `tests/it/guard`.
//!
//! Its environment says what it does:
//!
//! - `DATABASE_URL`: where it works, in the table `runs`;
//! - `LOCK_URL`: where it takes the lock; `DATABASE_URL` unless it is set;
//! - `LOCK`: `session:KEY`, or `row:NAME:AT_MOST_MS`;
//! - `STEPS`: statements of a work, with 5 ms between two; without end unless it is set.
//!
//! It writes a line for each event: `ready`, `began`, `done`, `lost`, `uncertain`, `error: …`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sexton_guard::{AdvisoryLocks, Key, LockRow, Run};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use tokio::sync::Mutex;

/// Between two statements of a work, and between two works.
const STEP: Duration = Duration::from_millis(5);

enum Lock {
    Session(AdvisoryLocks, Key),
    Row(LockRow, PgPool),
}

/// What the work needs: a connection that does not go through what disturbs the locks.
struct Work {
    connection: Mutex<PgConnection>,
    lock: String,
    steps: Option<u64>,
}

impl Work {
    /// One work: a row that says from when until when it ran, by the database's clock.
    async fn run(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let begin = "INSERT INTO runs (lock, pid, began, confirmed, ended)
                     SELECT $1, $2, now, now, now FROM clock_timestamp() AS now RETURNING id";
        let begin = sqlx::query_scalar(begin).bind(&self.lock).bind(std::process::id() as i32);
        let id: i64 = begin.fetch_one(&mut *connection).await?;
        println!("began");
        let mut step = 0;
        while self.steps.is_none_or(|steps| step < steps) {
            tokio::time::sleep(STEP).await;
            // What was sent before a kill may be carried out after it, so the time before is that of an answer.
            let mark = "UPDATE runs SET confirmed = ended, ended = clock_timestamp() WHERE id = $1";
            sqlx::query(mark).bind(id).execute(&mut *connection).await?;
            // So the guard looks at its lock between this answer and what confirms it.
            tokio::task::yield_now().await;
            step += 1;
        }
        let done = "UPDATE runs SET confirmed = ended WHERE id = $1";
        sqlx::query(done).bind(id).execute(&mut *connection).await?;
        Ok(())
    }
}

impl Lock {
    async fn open(lock: &str, url: &str) -> Result<Self> {
        let parts: Vec<&str> = lock.split(':').collect();
        Ok(match parts[..] {
            ["session", key] => {
                Self::Session(AdvisoryLocks::connect(url.parse()?).await?, key.parse()?)
            }
            ["row", name, at_most_ms] => {
                let at_most = Duration::from_millis(at_most_ms.parse()?);
                let pool = PgPoolOptions::new().max_connections(2).connect(url).await?;
                Self::Row(LockRow::new(name, at_most)?, pool)
            }
            _ => bail!("LOCK is {lock}"),
        })
    }

    async fn run(&self, work: &Work) -> Result<Run<Result<(), sqlx::Error>>> {
        Ok(match self {
            Self::Session(locks, key) => locks.try_run(*key, |_| work.run()).await?,
            Self::Row(row, pool) => row.try_run(pool, |_| work.run()).await?,
        })
    }
}

async fn run() -> Result<()> {
    let variable = |name: &str| std::env::var(name).with_context(|| name.to_owned());
    let (url, lock) = (variable("DATABASE_URL")?, variable("LOCK")?);
    let steps = variable("STEPS").ok().map(|steps| steps.parse()).transpose()?;
    let connection = Mutex::new(PgConnection::connect(&url).await?);
    let work = Arc::new(Work { connection, lock: lock.clone(), steps });
    let lock_url = variable("LOCK_URL").unwrap_or(url);
    let lock = Lock::open(&lock, &lock_url).await?;
    println!("ready");
    loop {
        match lock.run(&work).await {
            Ok(Run::Busy) => {}
            Ok(Run::Done(outcome)) => {
                outcome?;
                println!("done");
            }
            Ok(Run::Lost) => println!("lost"),
            Ok(Run::Uncertain(_)) => println!("uncertain"),
            Err(error) => println!("error: {error}"),
        }
        tokio::time::sleep(STEP).await;
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if let Err(error) = run().await {
        println!("failed: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
