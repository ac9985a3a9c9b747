//! The lock that a worker holds while a task of the job runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// Longest name of a lock row, in bytes, as in ShedLock's table.
pub const MAX_LOCK_ROW_BYTES: usize = 64;

/// The lock of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobLock {
    /// The advisory lock of this key, in the platform's database.
    Key(i64),
    /// A row of `sexton.lock_rows`.
    Row(RowLock),
}

impl std::fmt::Display for JobLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => write!(f, "lock {key}"),
            Self::Row(row) => write!(f, "lock {}", row.name),
        }
    }
}

/// A lock that is a row of a table, as ShedLock keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowLock {
    /// The row's name, 1 to [`MAX_LOCK_ROW_BYTES`] bytes. Jobs and services that use the same name exclude one another.
    pub name: String,
    /// How long the row stays locked after it was last extended; a worker extends it while the task runs.
    pub at_most: Duration,
    /// How long the row stays locked after the task began, however early it ends. Not above `at_most`.
    pub at_least: Duration,
}

impl RowLock {
    /// Returns the lock in a job's columns, times in milliseconds; `None`: it has none.
    pub fn from_columns(
        name: Option<&str>,
        at_most_ms: Option<i64>,
        at_least_ms: Option<i64>,
    ) -> Option<Self> {
        let millis = |ms: Option<i64>| Duration::from_millis(ms.unwrap_or(0).max(0).unsigned_abs());
        let name = name?.to_owned();
        Some(Self { name, at_most: millis(at_most_ms), at_least: millis(at_least_ms) })
    }
}

/// What becomes of an execution whose lock is held elsewhere when its task is to begin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLocked {
    /// It is skipped; the reason names the holder.
    #[default]
    Skip,
    /// It waits in a delay queue, and tries again.
    Wait,
}

text_enum!(OnLocked { Skip => "skip", Wait => "wait" });
