//! One look at everything that must not grow.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use sexton_broker::names::{failed_queue, main_queue, retry_queue};
use sexton_broker::{DELAY_QUEUES_MS, Link, Namespace, PoolName};
use sqlx::PgPool;

use crate::platform::Program;

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Resident memory.
    pub rss_kib: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

/// What a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// With its indexes and all else that belongs to it.
    pub bytes: i64,
    /// Its indexes alone.
    pub index_bytes: i64,
    /// As the server's statistics have it.
    pub live_rows: i64,
    /// The same: rows that a vacuum would remove.
    pub dead_rows: i64,
}

/// Everything at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the soak began.
    pub at_s: f64,
    /// Each scheduler and worker, by name.
    pub processes: BTreeMap<String, Process>,
    /// Each table of the platform.
    pub tables: BTreeMap<String, Table>,
    /// Messages that wait: `main`, `failed`, and `delay` for all delay queues.
    pub queues: BTreeMap<String, u64>,
    /// Executions by state.
    pub states: BTreeMap<String, i64>,
    /// Executions whose ticket is unpublished.
    pub unpublished: i64,
}

/// Looks at the processes.
///
/// # Errors
///
/// One of them has ended.
pub(super) fn processes<'a>(
    programs: impl IntoIterator<Item = &'a Program>,
) -> Result<BTreeMap<String, Process>> {
    let look = |program: &Program| {
        let process = process(program.pid());
        let process = process.with_context(|| format!("{} cannot be looked at", program.name()))?;
        Ok((program.name().to_owned(), process))
    };
    programs.into_iter().map(look).collect()
}

fn process(pid: u32) -> Result<Process> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let number = |field: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .with_context(|| format!("the kernel does not tell {field}"))
    };
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
    Ok(Process { rss_kib: number("VmRSS")?, descriptors, threads: number("Threads")? })
}

/// Looks at the tables.
pub(super) async fn tables(pool: &PgPool) -> Result<BTreeMap<String, Table>> {
    let rows: Vec<(String, i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT relname::text, pg_total_relation_size(relid), pg_indexes_size(relid),
                n_live_tup, n_dead_tup
         FROM pg_stat_user_tables WHERE schemaname = 'sexton' AND relname NOT LIKE '\\_%'",
    )
    .fetch_all(pool)
    .await?;
    let table = |(name, bytes, index_bytes, live_rows, dead_rows)| {
        (name, Table { bytes, index_bytes, live_rows, dead_rows })
    };
    Ok(rows.into_iter().map(table).collect())
}

/// Looks at the executions: how many are in each state, and how many have an unpublished ticket.
pub(super) async fn executions(pool: &PgPool) -> Result<(BTreeMap<String, i64>, i64)> {
    let states: Vec<(String, i64)> =
        sqlx::query_as("SELECT state, count(*) FROM sexton.executions GROUP BY state")
            .fetch_all(pool)
            .await?;
    let unpublished = sqlx::query_scalar(
        "SELECT count(*) FROM sexton.executions
         WHERE state IN ('pending', 'retrying', 'failed') AND ticket_published_at IS NULL",
    )
    .fetch_one(pool)
    .await?;
    Ok((states.into_iter().collect(), unpublished))
}

/// Looks at the queues.
pub(super) async fn queues(link: &Link, namespace: &Namespace) -> Result<BTreeMap<String, u64>> {
    let pool = PoolName::default_pool();
    let depth = async |queue: &str| link.depth(queue).await.map(|depth| u64::from(depth.ready));
    let mut delay_queues = 0;
    for step in DELAY_QUEUES_MS {
        delay_queues += depth(&retry_queue(namespace, &pool, step)).await?;
    }
    let main = depth(&main_queue(namespace, &pool)).await?;
    let failed = depth(&failed_queue(namespace)).await?;
    let named = [("main", main), ("delay", delay_queues), ("failed", failed)];
    Ok(named.map(|(name, depth)| (name.to_owned(), depth)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_be_sampled() {
        let own_process = process(std::process::id()).unwrap();
        assert!(
            own_process.rss_kib > 1_000 && own_process.descriptors >= 3 && own_process.threads >= 1,
            "{own_process:?}"
        );
        assert!(process(u32::MAX).is_err());
    }
}
