//! Decides what follows the end of an attempt, for settlements and lost attempts alike.
//!
//! Three budgets, so that none uses up another: *retries* for attempts that failed and reported it, *timeouts* for
//! attempts that were stopped because they took too long, *crashes* for attempts that ended without a report: their
//! worker vanished, or they ran out of memory. All are counted in the row and reset by a requeue; the attempt number
//! never is.
//!
//! An attempt that was *snoozed* (there was nothing to do yet) uses none of them. Its count is only a bound, so that
//! a task which is never ready is noticed some day.
//!
//! `max_retries` counts what follows the first attempt, as is usual. `max_timeouts` and `max_crashes` count all
//! timeouts and crashes: the attempt that reaches the limit parks the execution.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::job::RetryOverrides;

/// How often a task may be snoozed before it is parked.
pub const MAX_SNOOZES: u32 = 1_000;
/// The range of a snooze; a time outside becomes the nearest.
pub const SNOOZE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(7 * 24);
/// The class of an attempt that was [`AttemptEnd::Snoozed`].
pub const SNOOZED: &str = "snoozed";
/// The class of an execution that was parked after too many snoozes.
pub const SNOOZED_TOO_OFTEN: &str = "snoozed_too_often";

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
    /// Attempts that were snoozed.
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
        AttemptEnd::Snoozed { .. } if used.snoozes >= policy.max_snoozes => Decision::Fail { used },
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
        max_timeouts: 3,
        max_crashes: 3,
        max_snoozes: 2,
        permanent: Vec::new(),
    };

    fn chain(ending: AttemptEnd) -> Vec<Decision> {
        let mut used = Usage::default();
        let mut seen = Vec::new();
        loop {
            let verdict = decide(ending, "", used, &POLICY, 0.5);
            seen.push(verdict);
            match verdict {
                Decision::Retry { used: next, .. } => used = next,
                _ => return seen,
            }
        }
    }

    /// Returns the waits between the attempts that all end like this; `None`: parked.
    fn waits(ending: AttemptEnd) -> Vec<Option<u64>> {
        let wait = |verdict| match verdict {
            Decision::Retry { after, .. } => Some(after.as_secs()),
            _ => None,
        };
        chain(ending).into_iter().map(wait).collect()
    }

    #[test]
    fn a_failing_task_is_tried_once_and_then_as_often_as_the_budget_says() {
        assert_eq!(waits(AttemptEnd::Retryable { after: None }), [Some(10), Some(30), None]);
        let long = RetryPolicy { delay: Duration::from_hours(2), ..POLICY };
        assert_eq!(long.backoff(5, 0.5), Duration::from_hours(2));
    }

    #[test]
    fn a_poison_task_crashes_three_times_the_first_retry_at_once_and_is_parked() {
        for ending in [AttemptEnd::Lost, AttemptEnd::Crashed] {
            assert_eq!(waits(ending), [Some(0), Some(10), None]);
            let once = RetryPolicy { max_crashes: 1, ..POLICY };
            let verdict = decide(ending, "", Usage::default(), &once, 0.5);
            assert_eq!(verdict, Decision::Fail { used: Usage { crashes: 1, ..Usage::default() } });
        }
    }

    #[test]
    fn a_task_that_takes_too_long_does_so_as_often_as_its_own_budget_says() {
        assert_eq!(waits(AttemptEnd::TimedOut), [Some(10), Some(30), None]);
        let spent = Usage { retries: 2, timeouts: 2, crashes: 2, snoozes: 2 };
        let verdict = decide(AttemptEnd::TimedOut, "timeout", spent, &POLICY, 0.5);
        assert_eq!(verdict, Decision::Fail { used: Usage { timeouts: 3, ..spent } });
    }

    #[test]
    fn a_snooze_costs_no_budget_and_waits_as_long_as_it_says_but_not_for_ever() {
        let ten = AttemptEnd::Snoozed { after: Duration::from_secs(10) };
        assert_eq!(waits(ten), [Some(10), Some(10), None]);
        let spent = Usage { retries: 2, timeouts: 3, crashes: 3, snoozes: 0 };
        let policy = RetryPolicy { permanent: vec![SNOOZED.into()], ..POLICY };
        let verdict = |after| decide(AttemptEnd::Snoozed { after }, SNOOZED, spent, &policy, 0.9);
        let used = Usage { snoozes: 1, ..spent };
        let waits = |after| Decision::Retry { after, used };
        assert_eq!(verdict(Duration::ZERO), waits(Duration::from_secs(1)));
        assert_eq!(verdict(Duration::MAX), waits(Duration::from_hours(7 * 24)));
    }

    #[test]
    fn no_budget_eats_another() {
        let all = [
            (
                AttemptEnd::Retryable { after: None },
                Usage { retries: 0, timeouts: 3, crashes: 3, snoozes: 2 },
            ),
            (AttemptEnd::TimedOut, Usage { retries: 2, timeouts: 0, crashes: 3, snoozes: 2 }),
            (AttemptEnd::Crashed, Usage { retries: 2, timeouts: 3, crashes: 0, snoozes: 2 }),
            (AttemptEnd::Lost, Usage { retries: 2, timeouts: 3, crashes: 0, snoozes: 2 }),
        ];
        for (ending, used) in all {
            let verdict = decide(ending, "", used, &POLICY, 0.0);
            assert!(matches!(verdict, Decision::Retry { .. }), "{ending:?}");
        }
    }

    #[test]
    fn a_wait_grows_by_the_multiplier_up_to_the_cap() {
        let waits = [0, 1, 2, 3].map(|used| POLICY.backoff(used, 0.5).as_secs());
        assert_eq!(waits, [10, 30, 60, 60]);
        let wide = RetryPolicy { max_delay: Duration::from_hours(1), ..POLICY };
        assert_eq!(wide.backoff(4, 0.5), Duration::from_secs(810));
    }

    #[test]
    fn a_wait_varies_by_the_jitter_to_either_side_and_no_further() {
        let varied = RetryPolicy { jitter: 0.2, ..POLICY };
        let millis = |draw: f64| varied.backoff(0, draw).as_millis();
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(millis), [8_000, 9_000, 10_000, 11_000, 12_000]);
        // Beyond the cap as well: many executions with the longest wait do not come back all at once.
        assert_eq!(varied.backoff(9, 1.0), Duration::from_secs(72));
        assert_eq!(POLICY.backoff(0, 0.0), POLICY.backoff(0, 1.0));
    }

    #[test]
    fn of_the_tasks_own_wish_and_the_policy_the_longer_wait_is_taken() {
        let wait = |wish| {
            let ending = AttemptEnd::Retryable { after: Some(Duration::from_secs(wish)) };
            match decide(ending, "", Usage::default(), &POLICY, 0.5) {
                Decision::Retry { after, .. } => after.as_secs(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([0, 9, 11, 3_600].map(wait), [10, 10, 11, 3_600]);
    }

    #[test]
    fn a_class_that_is_called_permanent_parks_at_once_and_others_do_not() {
        let policy = RetryPolicy { permanent: vec!["exit_3".into(), "timeout".into()], ..POLICY };
        let used = Usage::default();
        let parks = |ending, class: &str| {
            matches!(decide(ending, class, used, &policy, 0.0), Decision::Fail { .. })
        };
        assert!(parks(AttemptEnd::Retryable { after: None }, "exit_3"));
        assert!(!parks(AttemptEnd::Retryable { after: None }, "exit_33"));
        assert!(parks(AttemptEnd::TimedOut, "timeout"));
        assert!(!parks(AttemptEnd::Crashed, "out_of_memory"));
        assert!(parks(AttemptEnd::Crashed, "exit_3"), "it is the class that counts");
        // A shutdown says nothing about the task, whatever its class is called.
        assert!(!parks(AttemptEnd::Interrupted, "exit_3"));
        assert!(!parks(AttemptEnd::Success, "exit_3"));
    }

    #[test]
    fn what_is_said_last_holds() {
        let catalogue = RetryOverrides {
            max_retries: Some(7),
            max_timeouts: Some(8),
            permanent: Some(vec!["exit_1".into()]),
            ..RetryOverrides::default()
        };
        let job = RetryOverrides {
            max_retries: Some(1),
            max_crashes: Some(9),
            ..RetryOverrides::default()
        };
        let both = RetryPolicy { max_retries: 5, ..POLICY }.with(&catalogue).with(&job);
        assert_eq!((both.max_retries, both.max_timeouts, both.max_crashes), (1, 8, 9));
        assert_eq!((both.delay, both.permanent), (POLICY.delay, vec!["exit_1".to_owned()]));
        let none = RetryOverrides { permanent: Some(vec![]), ..RetryOverrides::default() };
        assert_eq!(POLICY.with(&catalogue).with(&none).permanent, [""; 0]);
    }

    #[test]
    fn a_permanent_failure_parks_and_an_interruption_costs_nothing() {
        let used = Usage { retries: 1, timeouts: 1, crashes: 1, snoozes: 2 };
        assert_eq!(decide(AttemptEnd::Permanent, "", used, &POLICY, 0.0), Decision::Fail { used });
        let spent = Usage { retries: 2, timeouts: 3, crashes: 3, snoozes: 2 };
        assert_eq!(
            decide(AttemptEnd::Interrupted, "", spent, &POLICY, 0.0),
            Decision::Retry { after: Duration::ZERO, used: spent }
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
