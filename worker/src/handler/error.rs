//! The error with which a handler reports a failure or a snooze.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use sexton_model::job::MAX_CLASS_BYTES;
use sexton_model::ticket::{MAX_REASON_BYTES, truncate};

use crate::executor::Outcome;
use crate::executor::http::RETRY_AFTER_MAX;

/// The most links of a chain of errors that a reason includes.
const MAX_SOURCES: usize = 16;

/// What happens to an attempt that did not succeed.
///
/// With `?`, any error (also a text, or an `anyhow::Error`) becomes [`HandlerError::Retry`] with all its causes
/// in the reason. That is why this type does not implement [`std::error::Error`].
///
/// ```
/// use std::time::Duration;
/// use sexton_worker::HandlerError;
///
/// fn cents(text: &str) -> Result<i64, HandlerError> {
///     let cents: i64 = text.parse().map_err(HandlerError::permanent)?;
///     match cents {
///         0 => Err(HandlerError::Snooze(Duration::from_secs(60))),
///         1..=100 => Err("too little, ask again")?,
///         _ => Ok(cents),
///     }
/// }
/// # assert!(matches!(cents("x"), Err(HandlerError::Permanent(_))));
/// # assert!(matches!(cents("0"), Err(HandlerError::Snooze(_))));
/// # assert!(matches!(cents("5"), Err(HandlerError::Retry(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// Retry as the retry policy says.
    Retry(Reason),
    /// Retry, but not before this time has passed; a longer wait of the retry policy takes precedence. At most
    /// one day.
    RetryAfter(Duration, Reason),
    /// A retry cannot help: the execution is parked at once.
    Permanent(Reason),
    /// It is too early: the worker runs the task again after this time, of 1 s to 7 days. That costs no retry. After
    /// 1,000 snoozes the execution is parked, so that operators notice one that is never ready.
    Snooze(Duration),
}

/// Why an attempt did not succeed: a message for people, and a class.
///
/// A text and any error convert with `into`; an error with its causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    class: String,
    message: String,
}

impl HandlerError {
    /// Creates a [`HandlerError::Retry`], as `?` does.
    pub fn retry(reason: impl Into<Reason>) -> Self {
        Self::Retry(reason.into())
    }

    /// Creates a [`HandlerError::RetryAfter`].
    pub fn retry_after(after: Duration, reason: impl Into<Reason>) -> Self {
        Self::RetryAfter(after, reason.into())
    }

    /// Creates a [`HandlerError::Permanent`]: `map_err(HandlerError::permanent)`.
    pub fn permanent(reason: impl Into<Reason>) -> Self {
        Self::Permanent(reason.into())
    }

    /// Translates the error into the attempt's outcome.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Retry(Reason { class, message }) => Outcome::Failed { class, message },
            Self::RetryAfter(after, Reason { class, message }) => {
                let after = Some(after.min(RETRY_AFTER_MAX));
                Outcome::Retry { class, message, after }
            }
            Self::Permanent(Reason { class, message }) => Outcome::Permanent { class, message },
            Self::Snooze(after) => Outcome::Snoozed { after },
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::Retry(Reason::from(error))
    }
}

impl From<Reason> for HandlerError {
    fn from(reason: Reason) -> Self {
        Self::Retry(reason)
    }
}

impl Reason {
    /// Creates a reason of the class `error`. The message is cut at 2,000 bytes.
    pub fn new(message: impl fmt::Display) -> Self {
        let message = truncate(&message.to_string(), MAX_REASON_BYTES).to_owned();
        Self { class: "error".to_owned(), message }
    }

    /// Replaces the class: the kind of failure, which people count and which `retry.permanent` of jobs matches.
    /// At most 100 characters of `A-Z a-z 0-9 . _ -`; others become `_`.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        let fits = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        let fitting = class.chars().map(|one| if fits(one) { one } else { '_' });
        self.class = fitting.take(MAX_CLASS_BYTES).collect();
        if self.class.is_empty() {
            "error".clone_into(&mut self.class);
        }
        self
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Reason {
    fn from(error: E) -> Self {
        Self::new(chain(&*error.into()))
    }
}

/// Joins the error and its causes. Some errors repeat their cause in their own text.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    for _ in 0..MAX_SOURCES {
        let Some(source) = next.filter(|_| text.len() <= MAX_REASON_BYTES) else { break };
        let cause = source.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the price list")]
    struct Outer(#[source] std::num::ParseIntError);

    fn failing() -> Result<(), HandlerError> {
        "x".parse::<i32>().map_err(Outer)?;
        Ok(())
    }

    #[test]
    fn any_error_is_a_retry_with_its_causes_in_the_reason() {
        let Err(HandlerError::Retry(reason)) = failing() else { panic!("not a retry") };
        assert_eq!(reason.message(), "cannot read the price list: invalid digit found in string");
        let error = HandlerError::from(anyhow::anyhow!("inner").context("outer"));
        assert_eq!(error, HandlerError::retry("outer: inner"));
        let repeating = std::io::Error::other("disk full");
        assert_eq!(Reason::from(repeating).message(), "disk full");
    }

    #[test]
    fn a_reason_is_bounded_however_long_its_errors_are() {
        let long = HandlerError::permanent("x".repeat(1_000_000));
        let Outcome::Permanent { message, .. } = long.outcome() else { panic!("not permanent") };
        assert!(message.len() <= MAX_REASON_BYTES);
    }

    #[test]
    fn a_class_is_a_word_that_a_job_can_name() {
        let class = |text: &str| Reason::new("").class(text).class;
        assert_eq!(class("card_declined"), "card_declined");
        assert_eq!(class("card declined: Ä"), "card_declined___");
        assert_eq!(class(""), "error");
        assert_eq!(class(&"x".repeat(1_000)).len(), MAX_CLASS_BYTES);
    }

    #[test]
    fn a_wish_for_a_wait_has_a_limit() {
        let wished = HandlerError::retry_after(Duration::MAX, "busy").outcome();
        let Outcome::Retry { after, .. } = wished else { panic!("not a retry") };
        assert_eq!(after, Some(RETRY_AFTER_MAX));
    }
}
