//! Processor time of the PostgreSQL processes that serve a platform's database.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use sqlx::PgPool;

use crate::processor::used_by;

/// The time of each process up to now.
pub(super) struct Backends(HashMap<u32, Duration>);

impl Backends {
    /// Reads all of them. The one that answers is included: read before and after by different connections, it would
    /// count with all its earlier work, such as creating the jobs.
    pub(super) async fn read(pool: &PgPool) -> Result<Self> {
        let pids: Vec<i32> = sqlx::query_scalar(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()",
        )
        .fetch_all(pool)
        .await?;
        // A process that has just ended is skipped.
        let used = pids.into_iter().map(i32::unsigned_abs);
        Ok(Self(used.filter_map(|pid| Some((pid, used_by(pid).ok()?))).collect()))
    }

    /// Returns the time of all of them since `before`. One that has ended meanwhile does not count.
    pub(super) fn since(&self, before: &Self) -> Duration {
        let more = |(pid, used): (&u32, &Duration)| {
            used.saturating_sub(before.0.get(pid).copied().unwrap_or_default())
        };
        self.0.iter().map(more).sum()
    }
}
