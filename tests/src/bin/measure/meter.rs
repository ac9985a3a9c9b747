//! What a program, and PostgreSQL's processes that work for it, use of the processors.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sexton_tests::platform::Program;
use sqlx::PgPool;

use crate::schedules::time_of;

/// How often the processes of the server are looked at: one that ends in between is counted up to the last look.
const INTERVAL: Duration = Duration::from_secs(1);

/// A measurement that has not begun.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    program: u32,
    /// What the names of its sessions begin with.
    sessions: &'static str,
    with_background: bool,
    pool: &'a PgPool,
}

impl<'a> Meter<'a> {
    /// Of this scheduler, and of the sessions in its database that bear its name.
    pub(super) fn of(scheduler: &Program, pool: &'a PgPool) -> Self {
        let program = scheduler.pid();
        Self { program, sessions: "sexton scheduler", with_background: false, pool }
    }

    /// Of this `sexton serve`, its sessions, and the processes that write for all sessions.
    pub(super) fn of_server(server: &Program, pool: &'a PgPool) -> Self {
        let program = server.pid();
        Self { program, sessions: "sexton serve", with_background: true, pool }
    }

    /// Measures for so long. Returns the shares of one processor, 1.0 for all of it: of the program, and of PostgreSQL.
    pub(super) async fn over(self, time: Duration) -> Result<(f64, f64)> {
        self.until(tokio::time::sleep(time))
            .await
            .map(|((), program, backends)| (program, backends))
    }

    /// Measures until this work is done. Returns what it came to, and the shares as [`Self::over`] does.
    pub(super) async fn until<T>(self, work: impl Future<Output = T>) -> Result<(T, f64, f64)> {
        let (used, began) = (time_of(self.program)?, Instant::now());
        let mut first: HashMap<i32, Duration> = self.processes().await?;
        let mut last = first.clone();
        tokio::pin!(work);
        let done = loop {
            let done = tokio::time::timeout(INTERVAL, work.as_mut()).await.ok();
            for (pid, used) in self.processes().await? {
                // A session that is new has done all that for the program.
                first.entry(pid).or_default();
                last.insert(pid, used);
            }
            if let Some(done) = done {
                break done;
            }
        };
        let elapsed = began.elapsed().as_secs_f64();
        let program = time_of(self.program)?.saturating_sub(used);
        let backends: Duration =
            last.iter().map(|(pid, used)| used.saturating_sub(first[pid])).sum();
        Ok((done, program.as_secs_f64() / elapsed, backends.as_secs_f64() / elapsed))
    }

    async fn processes(&self) -> Result<HashMap<i32, Duration>> {
        let pids: Vec<i32> = sqlx::query_scalar(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)
                OR $2 AND backend_type <> 'client backend'",
        )
        .bind(self.sessions)
        .bind(self.with_background)
        .fetch_all(self.pool)
        .await?;
        // One that has ended meanwhile has no account any more.
        let used = |pid: i32| Some((pid, time_of(pid.unsigned_abs()).ok()?));
        Ok(pids.into_iter().filter_map(used).collect())
    }
}

/// How long all processors of this machine have worked so far, for whatever program.
pub(super) fn machine() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("the kernel does not tell the machine's times")?;
    // user, nice, system, idle, iowait, irq, softirq, in hundredths of a second.
    let times = line.split_whitespace().skip(1).take(7).map(str::parse);
    let times: Vec<u64> = times.collect::<Result<_, _>>()?;
    let busy: u64 = times
        .iter()
        .enumerate()
        .filter(|(place, _)| ![3, 4].contains(place))
        .map(|(_, time)| time)
        .sum();
    Ok(Duration::from_millis(busy * 10))
}
