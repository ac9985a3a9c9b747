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
fn a_held_lock_costs_no_budget_and_skips_or_waits_but_not_for_ever() {
    assert_eq!(waits(AttemptEnd::Locked(OnLocked::Wait)), [Some(1), Some(1), None]);
    assert_eq!([0, 4, 8, 9, 999].map(|waits| lock_wait(waits, 0.5).as_secs()), [1, 5, 25, 30, 30]);
    let spent = Usage { retries: 2, timeouts: 3, crashes: 3, snoozes: 2 };
    let skip = AttemptEnd::Locked(OnLocked::Skip);
    assert_eq!(decide(skip, LOCKED, spent, &POLICY, 0.5), Decision::Skip);
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
    let job =
        RetryOverrides { max_retries: Some(1), max_crashes: Some(9), ..RetryOverrides::default() };
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
