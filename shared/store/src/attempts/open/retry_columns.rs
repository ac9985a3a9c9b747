//! A job's retry settings, as its row has them.

use std::time::Duration;

use sexton_model::job::RetryOverrides;

/// The job's retry columns, as several queries return them.
#[derive(Clone, Debug)]
pub(crate) struct RetryColumns {
    pub(crate) max_retries: Option<i32>,
    pub(crate) max_timeouts: Option<i32>,
    pub(crate) max_crashes: Option<i32>,
    pub(crate) retry_delay_ms: Option<i64>,
    pub(crate) retry_multiplier: Option<f64>,
    pub(crate) retry_max_delay_ms: Option<i64>,
    pub(crate) retry_jitter: Option<f64>,
    pub(crate) permanent_classes: Option<Vec<String>>,
}

impl From<RetryColumns> for RetryOverrides {
    fn from(columns: RetryColumns) -> Self {
        let millis = |ms: i64| Duration::from_millis(ms.max(0) as u64);
        Self {
            max_retries: columns.max_retries.map(|n| n.max(0) as u32),
            max_timeouts: columns.max_timeouts.map(|n| n.max(0) as u32),
            max_crashes: columns.max_crashes.map(|n| n.max(0) as u32),
            delay: columns.retry_delay_ms.map(millis),
            multiplier: columns.retry_multiplier,
            max_delay: columns.retry_max_delay_ms.map(millis),
            jitter: columns.retry_jitter,
            permanent: columns.permanent_classes,
        }
    }
}
