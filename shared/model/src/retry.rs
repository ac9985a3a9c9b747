//! What follows the end of an attempt: the one decision of settle and of lost.
//!
//! Two budgets, so that neither eats the other: *retries* for attempts that ended badly and said so,
//! *crashes* for attempts whose worker was never heard of again. Both are counted in the row and set
//! back by a requeue; the attempt number never is.

use std::time::Duration;

use crate::job::RetryOverrides;

/// A job's retry settings with every gap filled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Retries after the first attempt; 0: the first failure parks.
    pub max_retries: u32,
    /// Before the first retry.
    pub delay: Duration,
    /// Factor from one delay to the next, at least 1.
    pub multiplier: f64,
    /// The longest delay, before jitter; a longer `delay` stands.
    pub max_delay: Duration,
    /// A delay varies by up to this fraction to either side, 0 to 1.
    pub jitter: f64,
    /// Crashes that are retried; the one after them parks.
    pub max_crashes: u32,
}

impl Default for RetryPolicy {
    /// 30 s, doubling, at most 1 h, three retries, ± 10 %, three crashes.
    fn default() -> Self {
        Self {
            max_retries: 3,
            delay: Duration::from_secs(30),
            multiplier: 2.0,
            max_delay: Duration::from_hours(1),
            jitter: 0.1,
            max_crashes: 3,
        }
    }
}

impl RetryPolicy {
    /// These settings where the job has none of its own.
    #[must_use]
    pub fn with(self, own: &RetryOverrides) -> Self {
        Self {
            max_retries: own.max_retries.unwrap_or(self.max_retries),
            delay: own.delay.unwrap_or(self.delay),
            multiplier: own.multiplier.unwrap_or(self.multiplier),
            max_delay: own.max_delay.unwrap_or(self.max_delay),
            jitter: own.jitter.unwrap_or(self.jitter),
            max_crashes: self.max_crashes,
        }
    }

    /// The wait before retry number `retries_used` (from 0): `delay × multiplier^n`, capped at
    /// `max_delay`, varied by `jitter`. `draw` is uniform in [0, 1).
    pub fn backoff(&self, retries_used: u32, draw: f64) -> Duration {
        let exponent = i32::try_from(retries_used.min(1_000)).unwrap_or(1_000);
        let plain = self.delay.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        // A first wait beyond the cap was asked for as it is. `min` also turns an overflow to
        // infinity into the cap.
        let cap = self.max_delay.max(self.delay);
        let capped = plain.min(cap.as_secs_f64());
        let jitter = self.jitter.clamp(0.0, 1.0);
        let varied = capped * (1.0 + jitter * (2.0 * draw.clamp(0.0, 1.0) - 1.0));
        Duration::try_from_secs_f64(varied).unwrap_or(cap)
    }
}

/// What an execution has used up since its claim or its last requeue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Used {
    /// Attempts that ended badly and were retried.
    pub retries: u32,
    /// Attempts whose lease ran out.
    pub crashes: u32,
}

/// How an attempt ended, as far as the decision needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// Well.
    Success,
    /// Badly, and another try may help.
    Retryable {
        /// The task's own wish for the wait; the larger of it and the policy's is taken.
        after: Option<Duration>,
    },
    /// Badly, and no other try will help.
    Permanent,
    /// The worker was told to stop before the task was done. Costs nothing.
    Interrupted,
    /// The lease ran out: killed worker, out of memory, cut network.
    Lost,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The execution succeeded.
    Succeed,
    /// Another attempt, after a wait.
    Retry {
        /// From now; zero means at once.
        after: Duration,
        /// What is used up then.
        used: Used,
    },
    /// The failed queue.
    Fail {
        /// What is used up then.
        used: Used,
    },
}

/// Decides. `draw` is uniform in [0, 1) and only varies the wait.
///
/// The first crash is retried at once: a worker that was killed says nothing about the task. A
/// second one waits like any retry, so that a task that kills its workers cannot do so in a loop.
pub fn decide(ending: Ending, used: Used, policy: &RetryPolicy, draw: f64) -> Verdict {
    match ending {
        Ending::Success => Verdict::Succeed,
        Ending::Permanent => Verdict::Fail { used },
        Ending::Interrupted => Verdict::Retry { after: Duration::ZERO, used },
        Ending::Retryable { .. } if used.retries >= policy.max_retries => Verdict::Fail { used },
        Ending::Retryable { after } => {
            let wait = policy.backoff(used.retries, draw).max(after.unwrap_or_default());
            Verdict::Retry { after: wait, used: Used { retries: used.retries + 1, ..used } }
        }
        Ending::Lost => {
            let used = Used { crashes: used.crashes + 1, ..used };
            if used.crashes > policy.max_crashes {
                Verdict::Fail { used }
            } else if used.crashes == 1 {
                Verdict::Retry { after: Duration::ZERO, used }
            } else {
                Verdict::Retry { after: policy.backoff(used.crashes - 2, draw), used }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 2,
        delay: Duration::from_secs(10),
        multiplier: 3.0,
        max_delay: Duration::from_mins(1),
        jitter: 0.0,
        max_crashes: 2,
    };

    fn chain(ending: Ending) -> Vec<Verdict> {
        let mut used = Used::default();
        let mut seen = Vec::new();
        loop {
            let verdict = decide(ending, used, &POLICY, 0.5);
            seen.push(verdict);
            match verdict {
                Verdict::Retry { used: next, .. } => used = next,
                _ => return seen,
            }
        }
    }

    #[test]
    fn a_failing_task_is_tried_once_and_then_as_often_as_the_budget_says() {
        let waits: Vec<_> = chain(Ending::Retryable { after: None })
            .into_iter()
            .map(|verdict| match verdict {
                Verdict::Retry { after, .. } => Some(after.as_secs()),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [Some(10), Some(30), None]);
        let long = RetryPolicy { delay: Duration::from_hours(2), ..POLICY };
        assert_eq!(long.backoff(5, 0.5), Duration::from_hours(2));
    }

    #[test]
    fn a_first_crash_is_retried_at_once_and_one_over_the_budget_parks() {
        let waits: Vec<_> = chain(Ending::Lost)
            .into_iter()
            .map(|verdict| match verdict {
                Verdict::Retry { after, .. } => Some(after.as_secs()),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [Some(0), Some(10), None]);
    }

    #[test]
    fn a_crash_costs_no_retry_and_a_retry_no_crash() {
        let used = Used { retries: 2, crashes: 0 };
        assert!(matches!(decide(Ending::Lost, used, &POLICY, 0.0), Verdict::Retry { .. }));
        let used = Used { retries: 0, crashes: 2 };
        let ending = Ending::Retryable { after: None };
        assert!(matches!(decide(ending, used, &POLICY, 0.0), Verdict::Retry { .. }));
    }

    #[test]
    fn a_permanent_failure_parks_and_an_interruption_costs_nothing() {
        let used = Used { retries: 1, crashes: 1 };
        assert_eq!(decide(Ending::Permanent, used, &POLICY, 0.0), Verdict::Fail { used });
        let spent = Used { retries: 2, crashes: 2 };
        assert_eq!(
            decide(Ending::Interrupted, spent, &POLICY, 0.0),
            Verdict::Retry { after: Duration::ZERO, used: spent }
        );
    }

    proptest! {
        #[test]
        fn a_wait_is_bounded_and_without_jitter_never_shrinks(
            n in 0_u32..100_000, draw in 0.0..1.0_f64, jitter in 0.0..=1.0_f64,
        ) {
            let policy = RetryPolicy { jitter, ..POLICY };
            prop_assert!(policy.backoff(n, draw) <= policy.max_delay * 2);
            prop_assert!(POLICY.backoff(n, draw) <= POLICY.backoff(n + 1, draw));
        }
    }
}
