//! The limits of a job's fields, where their types allow more. The documents list these, and a test compares them.

use std::ops::RangeInclusive;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

/// Longest `description`, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 2_000;
/// Longest `target`, in bytes.
pub const MAX_TARGET_BYTES: usize = 200;
/// Longest `idempotency_key`, in bytes, as a template.
pub const MAX_TEMPLATE_BYTES: usize = 300;
/// Most `labels`.
pub const MAX_LABELS: usize = 50;
/// Longest name of a label, in bytes.
pub(super) const MAX_LABEL_NAME_BYTES: usize = 100;
/// Longest text of a label, in bytes.
pub(super) const MAX_LABEL_BYTES: usize = 500;
/// `jitter`.
pub const JITTER: RangeInclusive<Duration> = SECOND..=DAY;
/// `max_runs`.
pub const MAX_RUNS: RangeInclusive<i64> = 1..=100_000;
/// `timeout`.
pub const TIMEOUT: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(30);
/// `lease`.
pub const LEASE: RangeInclusive<Duration> = SECOND..=Duration::from_hours(1);
/// `lock.at_most`. A worker extends the row every third of it.
pub const LOCK_AT_MOST: RangeInclusive<Duration> = Duration::from_secs(10)..=DAY.saturating_mul(30);
/// `lock.at_least`.
pub const LOCK_AT_LEAST: RangeInclusive<Duration> = Duration::ZERO..=DAY.saturating_mul(30);
/// `misfire.window`.
pub const MISFIRE_WINDOW: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(366);
/// `expect_within`.
pub const EXPECT_WITHIN: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(366);
/// `start_within`.
pub const START_WITHIN: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(366);
/// `max_runtime`.
pub const MAX_RUNTIME: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(30);
/// `remind_every`.
pub const REMIND_EVERY: RangeInclusive<Duration> = Duration::from_mins(1)..=DAY.saturating_mul(30);
/// Longest `heartbeat.url`, in bytes.
pub const MAX_HEARTBEAT_URL_BYTES: usize = 2_000;
/// `stale_after`.
pub const STALE_AFTER: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(366);
/// `retry.max_retries`.
pub const MAX_RETRIES: RangeInclusive<i64> = 0..=1_000;
/// `retry.max_timeouts`.
pub const MAX_TIMEOUTS: RangeInclusive<i64> = 1..=1_000;
/// `retry.max_crashes`.
pub const MAX_CRASHES: RangeInclusive<i64> = 1..=1_000;
/// Most `retry.permanent`.
pub const MAX_PERMANENT: usize = 50;
/// `retry.delay`.
pub const RETRY_DELAY: RangeInclusive<Duration> = Duration::ZERO..=DAY.saturating_mul(7);
/// `retry.multiplier`.
pub const RETRY_MULTIPLIER: RangeInclusive<f64> = 1.0..=100.0;
/// `retry.max_delay`.
pub const RETRY_MAX_DELAY: RangeInclusive<Duration> = SECOND..=DAY.saturating_mul(7);
/// `retry.jitter`.
pub const RETRY_JITTER: RangeInclusive<f64> = 0.0..=1.0;
