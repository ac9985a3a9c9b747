//! Locks of jobs and services, for people: who holds or waits for which, and how a row is freed by hand.
//!
//! Two kinds keep the instances of a service and the platform's workers apart: advisory locks, which PostgreSQL frees with
//! the session that holds them, and rows of `lock_rows`, which stay locked until an instant. The lists read the server's
//! view of its sessions beside the platform's rows. They lock nothing, and nothing of the protocol rests on them.

mod advisory;
mod break_row;
mod key;
mod purpose;
mod rows;

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

pub use advisory::{AdvisoryLock, LockSession, Since, SinceBasis, list_advisory};
pub use break_row::{BreakError, BrokenRow, RowBreak, break_row};
pub use key::{InvalidLockKey, LockKey};
pub use rows::{LockRow, RowState, find_row, list_rows};

/// Which locks to list; every given condition must hold.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LockFilter {
    /// Also Sexton's own advisory locks, and rows that are free.
    pub all: bool,
    /// Only this advisory lock.
    pub key: Option<LockKey>,
    /// Only the row of this name.
    pub row: Option<String>,
    /// Only locks of jobs, sessions, rows and holders whose name begins with this.
    pub service: Option<String>,
    /// Only advisory locks that a session waits for, with their holders.
    pub waiting: bool,
    /// Only locks of existing jobs.
    pub of_jobs: bool,
}

/// Locks that match a filter.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Found<T> {
    /// At most as many as the caller has room for.
    pub items: Vec<T>,
    /// Number of further ones.
    pub more: i64,
}

/// The existing jobs that have a lock. Several may share one.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockJobs {
    /// Their names, sorted; the first ten.
    pub names: Vec<String>,
    /// Their number.
    pub count: i64,
    /// The longest of their timeouts, in milliseconds; `None`: no job has the lock.
    pub timeout_ms: Option<i64>,
}

/// The attempt of an execution that took a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LockAttempt {
    /// The execution.
    pub execution_id: Uuid,
    /// The attempt's number.
    pub attempt: i32,
    /// The execution's job.
    pub job: String,
    /// The job's timeout, in milliseconds.
    pub timeout_ms: i64,
    /// The name of the worker that opened it.
    pub worker: String,
    /// Milliseconds since that worker's last heartbeat, by the database's clock.
    pub silent_ms: i64,
    /// When it was opened, shortly before it took the lock.
    pub opened_at: DateTime<Utc>,
    /// When its lease ends unless the worker renews it; `None`: it has ended.
    pub lease_until: Option<DateTime<Utc>>,
    /// When it ended; `None`: it runs.
    pub finished_at: Option<DateTime<Utc>>,
    /// How it ended.
    pub outcome: Option<String>,
}

impl LockAttempt {
    /// Whether it has not ended.
    pub const fn is_running(&self) -> bool {
        self.finished_at.is_none()
    }
}
