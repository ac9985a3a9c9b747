//! The columns of an open attempt.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::id::{ExecutionId, OpenToken};
use sexton_model::job::{JobLock, OnLocked, RowLock};
use uuid::Uuid;

use super::{Opened, RetryColumns, parse_attempt_number, parse_used};
use crate::StoreError;
use crate::error::parse_column;

/// The columns of an open attempt, as both queries return them.
pub(super) struct OpenedRow {
    pub(super) id: Uuid,
    pub(super) stale: bool,
    pub(super) attempt: i32,
    pub(super) token: Uuid,
    pub(super) job_name: String,
    pub(super) pool: String,
    pub(super) due_at: Option<DateTime<Utc>>,
    pub(super) task_type: String,
    pub(super) target: Option<String>,
    pub(super) params: Value,
    pub(super) execution_key: String,
    pub(super) idempotency_key: String,
    pub(super) scheduled_for: DateTime<Utc>,
    pub(super) started_at: DateTime<Utc>,
    pub(super) timeout_ms: i64,
    pub(super) lease_ms: i64,
    pub(super) retries_used: i32,
    pub(super) timeouts_used: i32,
    pub(super) crashes_used: i32,
    pub(super) snoozes_used: i32,
    pub(super) max_retries: Option<i32>,
    pub(super) max_timeouts: Option<i32>,
    pub(super) max_crashes: Option<i32>,
    pub(super) retry_delay_ms: Option<i64>,
    pub(super) retry_multiplier: Option<f64>,
    pub(super) retry_max_delay_ms: Option<i64>,
    pub(super) retry_jitter: Option<f64>,
    pub(super) permanent_classes: Option<Vec<String>>,
    pub(super) lock_key: Option<i64>,
    pub(super) lock_row: Option<String>,
    pub(super) lock_at_most_ms: Option<i64>,
    pub(super) lock_at_least_ms: Option<i64>,
    pub(super) on_locked: String,
}

impl OpenedRow {
    fn lock(&self) -> Option<JobLock> {
        let row = RowLock::from_columns(
            self.lock_row.as_deref(),
            self.lock_at_most_ms,
            self.lock_at_least_ms,
        );
        self.lock_key.map(JobLock::Key).or(row.map(JobLock::Row))
    }

    pub(super) fn opened(self) -> Result<Opened, StoreError> {
        Ok(Opened {
            lock: self.lock(),
            on_locked: parse_column("jobs.on_locked", &self.on_locked, OnLocked::parse)?,
            execution_id: ExecutionId::new(self.id),
            attempt: parse_attempt_number(self.attempt)?,
            token: OpenToken::new(self.token),
            job: self.job_name,
            pool: self.pool,
            due_at: self.due_at,
            task_type: self.task_type,
            target: self.target,
            params: self.params,
            execution_key: self.execution_key,
            idempotency_key: self.idempotency_key,
            scheduled_for: self.scheduled_for,
            started_at: self.started_at,
            timeout: Duration::from_millis(self.timeout_ms.max(0) as u64),
            lease: Duration::from_millis(self.lease_ms.max(0) as u64),
            used: parse_used([
                self.retries_used,
                self.timeouts_used,
                self.crashes_used,
                self.snoozes_used,
            ]),
            retry: RetryColumns {
                max_retries: self.max_retries,
                max_timeouts: self.max_timeouts,
                max_crashes: self.max_crashes,
                retry_delay_ms: self.retry_delay_ms,
                retry_multiplier: self.retry_multiplier,
                retry_max_delay_ms: self.retry_max_delay_ms,
                retry_jitter: self.retry_jitter,
                permanent_classes: self.permanent_classes,
            }
            .into(),
        })
    }
}
