//! What is not well by itself, in words.

use std::fmt;

use serde::Serialize;
use sexton_store::status::PoolCounts;

use crate::show::{duration, line};

/// Something that somebody should look at.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Warning {
    /// A pool that somebody chose, and that no worker takes tasks from.
    PoolWithoutWorkers {
        /// The pool's name.
        pool: String,
        /// Active jobs that choose it.
        jobs: i64,
        /// Executions that wait in it, due or not.
        waiting: i64,
        /// Milliseconds for which the one that waits longest has been due; `None`: nothing is due.
        oldest_due_ms: Option<i64>,
    },
}

impl Warning {
    /// What is to be said of a pool.
    pub(super) fn of(counts: &PoolCounts) -> Option<Self> {
        let PoolCounts { pool, jobs, workers, oldest_due_ms, .. } = counts;
        let waiting = counts.pending + counts.retrying;
        (*workers == 0 && (*jobs > 0 || waiting > 0)).then(|| Self::PoolWithoutWorkers {
            pool: pool.clone(),
            jobs: *jobs,
            waiting,
            oldest_due_ms: *oldest_due_ms,
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::PoolWithoutWorkers { pool, jobs, waiting, oldest_due_ms } = self;
        let pool = line(pool, 100);
        write!(f, "no worker takes tasks from pool {pool}: ")?;
        match (waiting, oldest_due_ms) {
            (0, _) => write!(f, "nothing waits there yet")?,
            (_, None) => write!(f, "{waiting} wait there, none is due")?,
            (_, Some(ms)) => write!(f, "{waiting} wait there, the oldest for {}", duration(*ms))?,
        }
        write!(f, ", and {jobs} active jobs choose it; start a worker with it in WORKER_POOLS")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(workers: i64, jobs: i64, pending: i64, oldest_due_ms: Option<i64>) -> PoolCounts {
        PoolCounts {
            pool: "reports".to_owned(),
            pending,
            waiting: 0,
            running: 0,
            retrying: 1,
            oldest_due_ms,
            slots: 0,
            workers,
            jobs,
        }
    }

    #[test]
    fn a_pool_that_is_chosen_and_not_served_is_told_with_what_waits_there() {
        let told = Warning::of(&counts(0, 2, 4, Some(61_000))).unwrap().to_string();
        assert!(told.contains("pool reports: 5 wait there, the oldest for 1 m 1 s"), "{told}");
        let told = Warning::of(&counts(0, 1, -1, None)).unwrap().to_string();
        assert!(told.contains("nothing waits there yet"), "{told}");
        assert_eq!(Warning::of(&counts(1, 2, 4, Some(61_000))), None);
        assert_eq!(Warning::of(&counts(0, 0, -1, None)), None);
    }
}
