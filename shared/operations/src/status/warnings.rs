//! Warnings: conditions that need an operator.

use std::fmt;

use serde::Serialize;
use sexton_service::settings::FailedLimits;
use sexton_store::catch_up::Hold;
use sexton_store::status::{Overview, PoolCounts};
use sexton_store::unknown_messages::Overflow;

use crate::text::{duration, instant, line};
use crate::unknown_messages::describe_overflow;

/// A condition that needs attention.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// A pool with jobs or work, and without workers.
    PoolWithoutWorkers {
        /// The pool's name.
        pool: String,
        /// Number of active jobs in it.
        jobs: i64,
        /// Number of executions that wait in it, due or not.
        waiting: i64,
        /// Milliseconds for which the oldest waiting execution has been due; `None`: nothing is due.
        oldest_due_ms: Option<i64>,
    },
    /// The database's time jumped, and late firings wait for an operator.
    CatchUpHeld(Hold),
    /// More executions are failed than the configured limit.
    TooManyFailed {
        /// Their number.
        failed: i64,
        /// `FAILED_WARN_COUNT`.
        limit: u32,
    },
    /// A failed execution has waited for longer than the configured limit.
    FailedForLong {
        /// Milliseconds for which the oldest has waited.
        oldest_ms: i64,
        /// `FAILED_WARN_AGE_MS`.
        limit_ms: i64,
    },
    /// More executions failed lately than the configured limit.
    FailingFast {
        /// Number of the last hour's failures that are still failed.
        last_hour: i64,
        /// `FAILED_WARN_PER_HOUR`.
        limit: u32,
    },
    /// Unknown messages exceed the record's limit.
    RawMessagesOverflow(Overflow),
}

impl Warning {
    /// Makes the warning for a hold.
    pub fn held(hold: Hold) -> Self {
        Self::CatchUpHeld(hold)
    }

    /// Returns the warnings about failed executions; `last_hour` counts those of the last hour.
    pub fn of_failed(overview: &Overview, last_hour: i64, limits: FailedLimits) -> Vec<Self> {
        let mut warnings = Vec::new();
        if overview.failed > i64::from(limits.count) {
            warnings.push(Self::TooManyFailed { failed: overview.failed, limit: limits.count });
        }
        let limit_ms = limits.age.as_millis() as i64;
        let oldest = overview.oldest_failed_at;
        let oldest_ms = oldest.map(|at| (overview.now - at).num_milliseconds());
        if let Some(oldest_ms) = oldest_ms.filter(|ms| *ms > limit_ms) {
            warnings.push(Self::FailedForLong { oldest_ms, limit_ms });
        }
        if last_hour > i64::from(limits.per_hour) {
            warnings.push(Self::FailingFast { last_hour, limit: limits.per_hour });
        }
        warnings
    }

    /// Returns the warning about a pool.
    pub fn of(counts: &PoolCounts) -> Option<Self> {
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
        let (pool, jobs, waiting, oldest_due_ms) = match self {
            Self::PoolWithoutWorkers { pool, jobs, waiting, oldest_due_ms } => {
                (pool, jobs, waiting, oldest_due_ms)
            }
            Self::CatchUpHeld(hold) => return write_held(hold, f),
            Self::RawMessagesOverflow(overflow) => {
                return f.write_str(&describe_overflow(overflow));
            }
            Self::TooManyFailed { failed, limit } => {
                return write!(
                    f,
                    "{failed} executions are failed, more than {limit} (FAILED_WARN_COUNT); `sexton failed \
                     list` shows them"
                );
            }
            Self::FailedForLong { oldest_ms, limit_ms } => {
                return write!(
                    f,
                    "the oldest failed execution waits for {}, longer than {} (FAILED_WARN_AGE_MS)",
                    duration(*oldest_ms),
                    duration(*limit_ms)
                );
            }
            Self::FailingFast { last_hour, limit } => {
                return write!(
                    f,
                    "{last_hour} executions failed within the last hour, more than {limit} \
                     (FAILED_WARN_PER_HOUR)"
                );
            }
        };
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

fn write_held(hold: &Hold, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "catch-up is held since {}, when the database's time had gone {} from {}: {} late firings of {} \
         jobs are set aside; `sexton jobs catch-up --dry-run` shows them, --release or --discard ends it",
        instant(hold.noticed_at),
        if hold.reason == "backward" { "back" } else { "ahead" },
        instant(hold.last_seen),
        hold.firings,
        hold.jobs
    )
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
        let text = Warning::of(&counts(0, 2, 4, Some(61_000))).unwrap().to_string();
        assert!(text.contains("pool reports: 5 wait there, the oldest for 1 m 1 s"), "{text}");
        let text = Warning::of(&counts(0, 1, -1, None)).unwrap().to_string();
        assert!(text.contains("nothing waits there yet"), "{text}");
        assert_eq!(Warning::of(&counts(1, 2, 4, Some(61_000))), None);
        assert_eq!(Warning::of(&counts(0, 0, -1, None)), None);
    }
}
