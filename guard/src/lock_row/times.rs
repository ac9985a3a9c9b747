//! The name and the times of a lock row, and what is refused.

use std::time::Duration;

use crate::error::LockError;

/// The least `at_most`: the keep-alive needs a few statements within it.
pub(super) const MIN_AT_MOST: Duration = Duration::from_secs(1);
/// The greatest.
pub(super) const MAX_AT_MOST: Duration = Duration::from_hours(24 * 400);
/// Characters of a name, by the table's column.
const MAX_NAME_CHARS: usize = 64;
/// Characters of a refused text that an error repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// How long the row is valid after a statement that sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    pub(super) at_most: Duration,
    pub(super) at_least: Duration,
}

impl Times {
    pub(super) fn new(at_most: Duration, at_least: Duration) -> Result<Self, LockError> {
        let refuse = |text: String| Err(LockError::Invalid(text));
        if at_most < MIN_AT_MOST || at_most > MAX_AT_MOST {
            return refuse(format!("at_most is {at_most:?} and must be between 1 s and 400 days"));
        }
        if at_least > at_most {
            return refuse(format!(
                "at_least is {at_least:?} and must not be longer than at_most, {at_most:?}"
            ));
        }
        Ok(Self { at_most, at_least })
    }

    /// How long before its end by the database's clock the lock counts as lost: a tenth, from 0.1 s to 2 s.
    pub(super) fn margin(self) -> Duration {
        (self.at_most / 10).clamp(Duration::from_millis(100), Duration::from_secs(2))
    }

    /// From one extension to the next.
    pub(super) fn extend_interval(self) -> Duration {
        self.at_most / 3
    }

    /// From an extension that failed to the next try.
    pub(super) fn retry_interval(self) -> Duration {
        self.at_most / 12
    }
}

/// Checks a name.
pub(super) fn check_name(name: &str) -> Result<(), LockError> {
    let count = name.chars().count();
    if name.is_empty() || count > MAX_NAME_CHARS || name.contains('\0') {
        let shown: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        return Err(LockError::Invalid(format!(
            "the lock's name {shown:?} has {count} characters; it must have 1 to {MAX_NAME_CHARS}, and none of them zero"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_names_that_make_no_sense_are_refused_with_the_reason() {
        let (second, zero) = (Duration::from_secs(1), Duration::ZERO);
        for (at_most, at_least, words) in [
            (zero, zero, "at_most is 0ns"),
            (second / 2, zero, "at_most is 500ms"),
            (Duration::MAX, zero, "400 days"),
            (second, 2 * second, "at_least is 2s and must not be longer than at_most, 1s"),
        ] {
            let error = Times::new(at_most, at_least).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        Times::new(second, second).unwrap();
        for name in [String::new(), "é".repeat(65), "x".repeat(10_000), "a\0".to_owned()] {
            let error = check_name(&name).unwrap_err().to_string();
            assert!(error.contains("1 to 64") && error.len() < 400, "{error}");
        }
        check_name(&"é".repeat(64)).unwrap();
    }

    #[test]
    fn several_extensions_fit_into_the_time_before_the_loss() {
        for seconds in [1, 30, 3_600, 24 * 3_600 * 400] {
            let times = Times::new(Duration::from_secs(seconds), Duration::ZERO).unwrap();
            let certain = times.at_most.saturating_sub(times.margin());
            assert!(times.extend_interval() + 3 * times.retry_interval() < certain, "{seconds}");
        }
    }
}
