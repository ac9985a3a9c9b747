//! Decides what follows the end of an attempt, for settlements and lost attempts alike.
//!
//! Three budgets, so that none uses up another: *retries* for attempts that failed and reported it, *timeouts* for
//! attempts that were stopped because they took too long, *crashes* for attempts that ended without a report: their
//! worker vanished, or they ran out of memory. All are counted in the row and reset by a requeue; the attempt number
//! never is.
//!
//! An attempt that was *snoozed* (there was nothing to do yet), or whose lock was held elsewhere, uses none of them. Their
//! count is only a bound, so that a task which is never ready is noticed some day.
//!
//! `max_retries` counts what follows the first attempt, as is usual. `max_timeouts` and `max_crashes` count all
//! timeouts and crashes: the attempt that reaches the limit parks the execution.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::job::{OnLocked, RetryOverrides};

/// How often a task may be snoozed before it is parked.
pub const MAX_SNOOZES: u32 = 1_000;
/// The range of a snooze; a time outside becomes the nearest.
pub const SNOOZE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(7 * 24);
/// The class of an attempt that was [`AttemptEnd::Snoozed`].
pub const SNOOZED: &str = "snoozed";
/// The class of an execution that was parked after too many snoozes.
pub const SNOOZED_TOO_OFTEN: &str = "snoozed_too_often";

/// The class of an attempt whose lock was held elsewhere.
pub const LOCKED: &str = "locked";
/// The class of an execution that was parked because its lock was held elsewhere once too often.
pub const LOCKED_TOO_LONG: &str = "locked_too_long";
/// The waits for a lock: the first, and the longest, which the tenth reaches.
const LOCK_WAITS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// Complete retry settings.
#[derive(Clone, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Retries after the first attempt; 0: the first failure parks.
    pub max_retries: u32,
    /// The delay before the first retry.
    pub delay: Duration,
    /// Factor from one delay to the next, at least 1.
    pub multiplier: f64,
    /// The longest delay, before jitter; a longer `delay` is not cut.
    pub max_delay: Duration,
    /// A delay varies by up to this fraction to either side, 0 to 1.
    pub jitter: f64,
    /// Number of timeouts at which the execution is parked; at least 1.
    pub max_timeouts: u32,
    /// Number of crashes at which the execution is parked; at least 1.
    pub max_crashes: u32,
    /// Number of attempts that may be snoozed; the next one parks. Not configurable: [`MAX_SNOOZES`] everywhere.
    pub max_snoozes: u32,
    /// Classes of error that are never retried.
    pub permanent: Vec<String>,
}

impl Default for RetryPolicy {
    /// 30 s, doubling, at most 1 h, ± 10 %; three retries, at most three timeouts and three crashes; no permanent
    /// class of error.
    fn default() -> Self {
        Self {
            max_retries: 3,
            delay: Duration::from_secs(30),
            multiplier: 2.0,
            max_delay: Duration::from_hours(1),
            jitter: 0.1,
            max_timeouts: 3,
            max_crashes: 3,
            max_snoozes: MAX_SNOOZES,
            permanent: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// Returns these settings with `overrides` applied. The last call wins, so
    /// `defaults.with(catalogue's).with(job's)`.
    #[must_use]
    pub fn with(&self, overrides: &RetryOverrides) -> Self {
        Self {
            max_retries: overrides.max_retries.unwrap_or(self.max_retries),
            delay: overrides.delay.unwrap_or(self.delay),
            multiplier: overrides.multiplier.unwrap_or(self.multiplier),
            max_delay: overrides.max_delay.unwrap_or(self.max_delay),
            jitter: overrides.jitter.unwrap_or(self.jitter),
            max_timeouts: overrides.max_timeouts.unwrap_or(self.max_timeouts),
            max_crashes: overrides.max_crashes.unwrap_or(self.max_crashes),
            max_snoozes: self.max_snoozes,
            permanent: overrides.permanent.as_ref().unwrap_or(&self.permanent).clone(),
        }
    }

    /// Returns the wait before retry number `retries_used` (from 0): `delay × multiplier^n`, capped at `max_delay`,
    /// varied by `jitter`. `draw` is uniform in [0, 1).
    pub fn backoff(&self, retries_used: u32, draw: f64) -> Duration {
        let exponent = i32::try_from(retries_used.min(1_000)).unwrap_or(1_000);
        let plain = self.delay.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        // A first wait beyond the cap is deliberate. `min` also turns an overflow to
        // infinity into the cap.
        let cap = self.max_delay.max(self.delay);
        let capped = plain.min(cap.as_secs_f64());
        let jitter = self.jitter.clamp(0.0, 1.0);
        let varied = capped * (1.0 + jitter * (2.0 * draw.clamp(0.0, 1.0) - 1.0));
        Duration::try_from_secs_f64(varied).unwrap_or(cap)
    }
}

/// The budgets that an execution has used since its claim or its last requeue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Usage {
    /// Attempts that failed and were retried.
    pub retries: u32,
    /// Attempts that ran into their timeout.
    pub timeouts: u32,
    /// Attempts that were lost, or ran out of memory.
    pub crashes: u32,
    /// Attempts that were snoozed, or found their lock held.
    pub snoozes: u32,
}

/// How an attempt ended, as far as the decision needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttemptEnd {
    /// It succeeded.
    Success,
    /// It failed, and another try may help.
    Retryable {
        /// The task's own wish for the wait; the larger of it and the policy's counts.
        after: Option<Duration>,
    },
    /// It failed, and no other try will help.
    Permanent,
    /// It took longer than its timeout and was stopped.
    TimedOut,
    /// The worker stopped before the task was done. Costs nothing.
    Interrupted,
    /// The task reports that it is too early. Costs nothing.
    Snoozed {
        /// When to try again, from now; kept within [`SNOOZE`].
        after: Duration,
    },
    /// The task did not begin, since somebody else holds the job's lock. Costs nothing.
    Locked(OnLocked),
    /// The task was killed from outside before it could report, as for lack of memory.
    Crashed,
    /// The lease ran out: killed worker, dead host, cut network.
    Lost,
}

/// The class of an attempt that was [`AttemptEnd::Lost`].
pub const LOST: &str = "lost";

/// The decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The execution succeeded.
    Succeed,
    /// Another attempt, after a wait.
    Retry {
        /// From now; zero means at once.
        after: Duration,
        /// The budgets used by then.
        used: Usage,
    },
    /// The execution is skipped; the error's message is the reason.
    Skip,
    /// The failed queue.
    Fail {
        /// The budgets used by then.
        used: Usage,
    },
}

/// Decides what follows. `class` is the error's class, for the policy's permanent classes; empty without an error.
/// `draw` is uniform in [0, 1) and only varies the wait.
///
/// The first crash is retried at once, because a killed worker says nothing about the task. A second one waits like
/// any retry, so that a task that kills its workers cannot do so in a loop.
pub fn decide(
    ending: AttemptEnd,
    class: &str,
    used: Usage,
    policy: &RetryPolicy,
    draw: f64,
) -> Decision {
    let permanent = policy.permanent.iter().any(|one| one == class);
    match ending {
        AttemptEnd::Success => Decision::Succeed,
        AttemptEnd::Permanent => Decision::Fail { used },
        AttemptEnd::Interrupted => Decision::Retry { after: Duration::ZERO, used },
        AttemptEnd::Locked(OnLocked::Skip) => Decision::Skip,
        AttemptEnd::Snoozed { .. } | AttemptEnd::Locked(OnLocked::Wait)
            if used.snoozes >= policy.max_snoozes =>
        {
            Decision::Fail { used }
        }
        AttemptEnd::Locked(OnLocked::Wait) => Decision::Retry {
            after: lock_wait(used.snoozes, draw),
            used: Usage { snoozes: used.snoozes + 1, ..used },
        },
        AttemptEnd::Snoozed { after } => Decision::Retry {
            after: after.clamp(*SNOOZE.start(), *SNOOZE.end()),
            used: Usage { snoozes: used.snoozes + 1, ..used },
        },
        AttemptEnd::Retryable { .. } if permanent => Decision::Fail { used },
        AttemptEnd::Retryable { .. } if used.retries >= policy.max_retries => {
            Decision::Fail { used }
        }
        AttemptEnd::Retryable { after } => {
            let wait = policy.backoff(used.retries, draw).max(after.unwrap_or_default());
            Decision::Retry { after: wait, used: Usage { retries: used.retries + 1, ..used } }
        }
        AttemptEnd::TimedOut => {
            let used = Usage { timeouts: used.timeouts + 1, ..used };
            if permanent || used.timeouts >= policy.max_timeouts {
                Decision::Fail { used }
            } else {
                Decision::Retry { after: policy.backoff(used.timeouts - 1, draw), used }
            }
        }
        AttemptEnd::Crashed | AttemptEnd::Lost => {
            let used = Usage { crashes: used.crashes + 1, ..used };
            if permanent || used.crashes >= policy.max_crashes {
                Decision::Fail { used }
            } else if used.crashes == 1 {
                Decision::Retry { after: Duration::ZERO, used }
            } else {
                Decision::Retry { after: policy.backoff(used.crashes - 2, draw), used }
            }
        }
    }
}

/// Returns the wait before the next try for a lock: 1 s, half as much again each time, at most 30 s, varied by a tenth so
/// that many executions do not come back all at once.
fn lock_wait(waits: u32, draw: f64) -> Duration {
    let policy = RetryPolicy {
        delay: *LOCK_WAITS.start(),
        multiplier: 1.5,
        max_delay: *LOCK_WAITS.end(),
        jitter: 0.1,
        ..RetryPolicy::default()
    };
    policy.backoff(waits, draw)
}

#[cfg(test)]
mod tests;
