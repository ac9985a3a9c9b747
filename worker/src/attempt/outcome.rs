//! Translates a task's end into the record of its attempt.

use std::time::Duration;

use sexton_model::duration;
use sexton_model::job::OnLocked;
use sexton_model::retry::{
    AttemptEnd, Decision, LOCKED, LOCKED_TOO_LONG, SNOOZE, SNOOZED, SNOOZED_TOO_OFTEN, Usage,
};
use sexton_model::ticket::{MAX_REASON_BYTES, truncate};

use crate::executor::Outcome;

/// The meaning of a task's end for its attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AttemptOutcome {
    /// The end, for the decision.
    pub(crate) ending: AttemptEnd,
    /// The outcome's name, for the record.
    pub(crate) outcome: &'static str,
    /// Class and message, unless the task succeeded.
    pub(crate) error: Option<(String, String)>,
}

impl AttemptOutcome {
    /// Masks class and message.
    pub(crate) fn masked(mut self, mask: impl Fn(&str) -> String) -> Self {
        self.error = self.error.map(|(class, message)| (mask(&class), sanitise(&mask(&message))));
        self
    }

    pub(crate) const fn is_snooze(&self) -> bool {
        matches!(self.ending, AttemptEnd::Snoozed { .. })
    }

    /// Returns whether it did not begin, and waits for the job's lock.
    pub(crate) const fn waits_for_lock(&self) -> bool {
        matches!(self.ending, AttemptEnd::Locked(OnLocked::Wait))
    }

    /// Returns class and message after the decision: one snooze, or one held lock, too many has its own error class.
    pub(crate) fn error_for(&self, verdict: &Decision) -> Option<(String, String)> {
        match verdict {
            Decision::Fail { used: Usage { snoozes, .. } } if self.is_snooze() => {
                let message =
                    format!("it was put off {snoozes} times, and not once more is allowed");
                Some((SNOOZED_TOO_OFTEN.to_owned(), message))
            }
            Decision::Fail { used: Usage { snoozes, .. } } if self.waits_for_lock() => {
                let last = self.error.as_ref().map_or("", |error| &error.1);
                let message = format!(
                    "it found its lock held, or was put off, {snoozes} times; at last, {last}"
                );
                Some((LOCKED_TOO_LONG.to_owned(), sanitise(&message)))
            }
            _ => self.error.clone(),
        }
    }

    /// Returns the end of an attempt that this worker has lost: what its record says is decided elsewhere.
    pub(crate) fn lost(why: &'static str) -> Self {
        let error = Some((why.to_owned(), String::new()));
        Self { ending: AttemptEnd::Crashed, outcome: why, error }
    }

    /// Returns a success, which has no error.
    pub(crate) const fn success() -> Self {
        Self { ending: AttemptEnd::Success, outcome: "succeeded", error: None }
    }
}

/// Translates a task's outcome; `None` if this worker has lost the attempt, so that there is nothing to record.
pub(crate) fn attempt_outcome(outcome: &Outcome) -> Option<AttemptOutcome> {
    let retry = AttemptEnd::Retryable { after: None };
    let meaning = |ending, outcome, class: &str, message: &str| AttemptOutcome {
        ending,
        outcome,
        error: Some((class.to_owned(), sanitise(message))),
    };
    Some(match outcome {
        Outcome::Succeeded => AttemptOutcome::success(),
        Outcome::Retry { class, message, after } => {
            meaning(AttemptEnd::Retryable { after: *after }, "error", class, message)
        }
        Outcome::Failed { class, message } => meaning(retry, "error", class, message),
        Outcome::Snoozed { after } => {
            let after = snooze(*after);
            let message = format!("the task asked to be run again in {}", duration::format(after));
            meaning(AttemptEnd::Snoozed { after }, "snoozed", SNOOZED, &message)
        }
        Outcome::Permanent { class, message } => {
            meaning(AttemptEnd::Permanent, "permanent", class, message)
        }
        Outcome::Signalled { signal, message } => {
            meaning(retry, "signal", &format!("signal_{signal}"), message)
        }
        // It counts as a crash: a task that takes its host down must not run as often as one that fails.
        Outcome::OutOfMemory { message } => {
            meaning(AttemptEnd::Crashed, "out_of_memory", "out_of_memory", message)
        }
        Outcome::TimedOut => meaning(
            AttemptEnd::TimedOut,
            "timeout",
            "timeout",
            "it ran for longer than its timeout",
        ),
        // The row has the request to cancel; if the request was withdrawn, the run was interrupted.
        Outcome::Cancelled => {
            meaning(AttemptEnd::Interrupted, "cancelled", "cancelled", "an operator cancelled it")
        }
        Outcome::Interrupted => {
            let message = "the worker was stopped before the task had ended";
            meaning(AttemptEnd::Interrupted, "interrupted", "interrupted", message)
        }
        Outcome::CouldNotStart { message, retryable } => {
            let ending = if *retryable { retry } else { AttemptEnd::Permanent };
            let outcome = if *retryable { "error" } else { "permanent" };
            meaning(ending, outcome, "could_not_start", message)
        }
        Outcome::Locked { message, on_locked } => {
            meaning(AttemptEnd::Locked(*on_locked), "locked", LOCKED, message)
        }
        Outcome::LockLost { message } => meaning(AttemptEnd::Lost, "lost", "lock_lost", message),
        Outcome::GuardLost { message } => meaning(AttemptEnd::Lost, "lost", "guard_lost", message),
        Outcome::LeaseLost => return None,
    })
}

/// Returns the outcome as it would be recorded: texts masked, a wait within its limits.
pub(crate) fn masked_outcome(mut outcome: Outcome, mask: impl Fn(&str) -> String) -> Outcome {
    let masked = |message: &str| sanitise(&mask(&sanitise(message)));
    match &mut outcome {
        Outcome::Retry { class, message, .. }
        | Outcome::Permanent { class, message }
        | Outcome::Failed { class, message } => {
            (*class, *message) = (mask(class), masked(message));
        }
        Outcome::Signalled { message, .. }
        | Outcome::OutOfMemory { message }
        | Outcome::CouldNotStart { message, .. }
        | Outcome::Locked { message, .. }
        | Outcome::LockLost { message }
        | Outcome::GuardLost { message } => *message = masked(message),
        Outcome::Snoozed { after } => *after = snooze(*after),
        Outcome::Succeeded
        | Outcome::TimedOut
        | Outcome::Cancelled
        | Outcome::LeaseLost
        | Outcome::Interrupted => {}
    }
    outcome
}

/// Limits the wait of a snooze.
fn snooze(wait: Duration) -> Duration {
    wait.clamp(*SNOOZE.start(), *SNOOZE.end())
}

/// Returns a text that the database can store: bounded, without U+0000.
pub(crate) fn sanitise(text: &str) -> String {
    truncate(text, MAX_REASON_BYTES).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_lease_leaves_nothing_to_record() {
        assert_eq!(attempt_outcome(&Outcome::LeaseLost), None);
        assert_eq!(attempt_outcome(&Outcome::Succeeded).map(|m| m.error), Some(None));
        assert_eq!(attempt_outcome(&Outcome::TimedOut).map(|m| m.outcome), Some("timeout"));
    }

    #[test]
    fn what_an_operator_must_mend_is_not_tried_again() {
        let permanent = Outcome::Permanent { class: "exit_65".into(), message: String::new() };
        let missing = Outcome::CouldNotStart { message: "no such file".into(), retryable: false };
        for outcome in [permanent, missing] {
            assert_eq!(attempt_outcome(&outcome).map(|m| m.ending), Some(AttemptEnd::Permanent));
        }
    }

    #[test]
    fn want_of_memory_counts_as_a_crash() {
        let message = "it used more than 64MiB of memory".to_owned();
        let outcome = attempt_outcome(&Outcome::OutOfMemory { message }).unwrap();
        assert_eq!((outcome.ending, outcome.outcome), (AttemptEnd::Crashed, "out_of_memory"));
        assert_eq!(outcome.error.map(|error| error.0).as_deref(), Some("out_of_memory"));
    }

    #[test]
    fn the_wait_that_a_task_requests_reaches_the_decision() {
        let after = Some(Duration::from_secs(7));
        let retry = Outcome::Retry { class: "http_503".into(), message: String::new(), after };
        assert_eq!(
            attempt_outcome(&retry).map(|m| m.ending),
            Some(AttemptEnd::Retryable { after })
        );
    }

    #[test]
    fn a_snooze_says_how_long_and_one_too_many_is_a_failure_of_its_own() {
        let snoozed = attempt_outcome(&Outcome::Snoozed { after: Duration::ZERO }).unwrap();
        assert_eq!(
            (snoozed.ending, snoozed.outcome),
            (AttemptEnd::Snoozed { after: *SNOOZE.start() }, "snoozed")
        );
        let used = Usage { snoozes: 1_000, ..Usage::default() };
        let error_for = |verdict| snoozed.error_for(&verdict).unwrap();
        let again = error_for(Decision::Retry { after: *SNOOZE.start(), used });
        assert_eq!((&*again.0, &*again.1), (SNOOZED, "the task asked to be run again in 1s"));
        let parked = error_for(Decision::Fail { used });
        assert_eq!((&*parked.0, parked.1.contains("1000 times")), (SNOOZED_TOO_OFTEN, true));
    }

    #[test]
    fn what_is_said_of_a_failure_is_masked() {
        let failed = Outcome::Failed { class: "exit_1".into(), message: "key s3cret".into() };
        let masked =
            attempt_outcome(&failed).map(|m| m.masked(|text| text.replace("s3cret", "***")));
        let error = masked.and_then(|m| m.error);
        assert_eq!(error, Some(("exit_1".to_owned(), "key ***".to_owned())));
    }

    #[test]
    fn an_error_text_can_be_stored() {
        assert_eq!(sanitise("a\0b"), "a\u{fffd}b");
        assert!(sanitise(&"x".repeat(10_000)).len() <= MAX_REASON_BYTES);
    }
}
