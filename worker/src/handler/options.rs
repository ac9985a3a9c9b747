//! Options that the deployer of a handler may set.

use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_model::job::{RetryOverrides, check_class};
use sexton_model::jobs_file::limits;
use sexton_model::retry::RetryPolicy;

/// How long a stopped handler may clear up, unless its options set another grace.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// The longest grace.
pub const GRACE_MAX: Duration = Duration::from_mins(10);

/// Options that the deployer of a handler may set, as a catalogue does for its tasks. The worker refuses to
/// start with values outside a catalogue's limits.
///
/// ```
/// use std::time::Duration;
/// use sexton_worker::handler::HandlerOptions;
///
/// let options = HandlerOptions { grace: Duration::from_secs(30), ..HandlerOptions::default() };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerOptions {
    /// The longest run of one attempt; a job may set less. 1 s to 30 days, none by default.
    pub timeout: Option<Duration>,
    /// Time from the stop until the handler is dropped. At most 10 minutes, 5 s by default.
    pub grace: Duration,
    /// Retry settings for jobs without their own.
    pub retry: RetryOverrides,
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self { timeout: None, grace: GRACE_DEFAULT, retry: RetryOverrides::default() }
    }
}

impl HandlerOptions {
    /// Returns all invalid options, each with the allowed values.
    pub(crate) fn problems(&self) -> Vec<String> {
        let retry = &self.retry;
        let count = |name, value: Option<u32>, allowed: &RangeInclusive<i64>| {
            check_range(name, value.map(i64::from), allowed)
        };
        let delay =
            (limits::RETRY_DELAY, retry.max_delay.unwrap_or(RetryPolicy::default().max_delay));
        let longer = retry.delay.is_some_and(|it| delay.0.contains(&it) && it > delay.1);
        let classes = retry.permanent.iter().flatten();
        let mut problems: Vec<String> = [
            check_range("timeout", self.timeout, &limits::TIMEOUT),
            check_range("grace", Some(self.grace), &(Duration::ZERO..=GRACE_MAX)),
            count("retry.max_retries", retry.max_retries, &limits::MAX_RETRIES),
            count("retry.max_timeouts", retry.max_timeouts, &limits::MAX_TIMEOUTS),
            count("retry.max_crashes", retry.max_crashes, &limits::MAX_CRASHES),
            check_range("retry.delay", retry.delay, &limits::RETRY_DELAY),
            longer
                .then(|| "`retry.delay` is longer than `retry.max_delay`, 1 h unless given".into()),
            check_range("retry.multiplier", retry.multiplier, &limits::RETRY_MULTIPLIER),
            check_range("retry.max_delay", retry.max_delay, &limits::RETRY_MAX_DELAY),
            check_range("retry.jitter", retry.jitter, &limits::RETRY_JITTER),
            count(
                "the number of classes in retry.permanent",
                retry.permanent.as_ref().map(|it| u32::try_from(it.len()).unwrap_or(u32::MAX)),
                &(0..=limits::MAX_PERMANENT as i64),
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        problems.extend(classes.filter_map(|class| {
            let error = check_class(class).err()?;
            Some(format!("a class in `retry.permanent` {error}"))
        }));
        problems
    }
}

fn check_range<T: PartialOrd + std::fmt::Debug>(
    name: &str,
    value: Option<T>,
    allowed: &RangeInclusive<T>,
) -> Option<String> {
    let value = value.filter(|value| !allowed.contains(value))?;
    Some(format!("`{name}` is {value:?}, allowed: {:?} to {:?}", allowed.start(), allowed.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_no_row_could_hold_is_refused_and_what_a_catalogue_allows_is_not() {
        assert_eq!(HandlerOptions::default().problems(), Vec::<String>::new());
        let retry = RetryOverrides {
            max_retries: Some(u32::MAX),
            max_timeouts: Some(0),
            max_crashes: Some(0),
            delay: Some(Duration::MAX),
            multiplier: Some(f64::NAN),
            max_delay: Some(Duration::ZERO),
            jitter: Some(1.5),
            permanent: Some(vec!["not a class".to_owned()]),
        };
        let wrong = HandlerOptions { timeout: Some(Duration::ZERO), grace: Duration::MAX, retry };
        let problems = wrong.problems();
        for name in [
            "timeout",
            "grace",
            "max_retries",
            "max_timeouts",
            "max_crashes",
            "retry.delay",
            "multiplier",
            "max_delay",
            "jitter",
            "permanent",
        ] {
            assert!(problems.iter().any(|problem| problem.contains(name)), "{name}: {problems:?}");
        }
        let retry =
            RetryOverrides { delay: Some(Duration::from_hours(2)), ..RetryOverrides::default() };
        let longer = HandlerOptions { retry, ..HandlerOptions::default() };
        assert_eq!(longer.problems().len(), 1, "{:?}", longer.problems());
    }
}
