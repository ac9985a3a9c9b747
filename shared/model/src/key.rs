//! Execution keys: the deterministic half of `UNIQUE (job_id, execution_key)`.
//!
//! Two schedulers that notice the same firing compute the same key, so at most one of their inserts
//! becomes a row.

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};

use crate::job::{MAX_KEY_BYTES, Schedule};

/// Returns the key of `firing` under `schedule`: `cron-2025-12-12T08:00:00Z`, `every-…`, `once-…`; `None` for a job
/// without a schedule, whose callers bring their own key.
pub fn of_firing(schedule: &Schedule, firing: DateTime<Utc>) -> Option<String> {
    let kind = match schedule {
        Schedule::None => return None,
        other => other.kind(),
    };
    Some(of_kind(kind, firing))
}

/// The kinds of schedules whose firings have keys.
const KINDS: [&str; 3] = ["cron", "every", "once"];
/// The first instant whose key has a year of four digits; keys of one kind from here to [`LATEST`] sort by their
/// instants.
pub const EARLIEST: DateTime<Utc> = instant(0, 1, 1);
/// The beginning of the last day for which that holds.
pub const LATEST: DateTime<Utc> = instant(9_999, 12, 31);

/// Returns the possible keys of a firing at this instant, by kind of schedule.
pub fn of_kinds(firing: DateTime<Utc>) -> [String; 3] {
    KINDS.map(|kind| of_kind(kind, firing))
}

fn of_kind(kind: &str, firing: DateTime<Utc>) -> String {
    format!("{kind}-{}", firing.to_rfc3339_opts(SecondsFormat::Secs, true))
}

const fn instant(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(day) => day.and_time(NaiveTime::MIN).and_utc(),
        None => DateTime::<Utc>::MIN_UTC,
    }
}

/// Why a caller's own key is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// The key is empty or blank.
    #[error("the execution key is empty")]
    Empty,
    /// The key exceeds [`MAX_KEY_BYTES`].
    #[error("the execution key has {0} bytes, more than {MAX_KEY_BYTES}")]
    TooLong(usize),
    /// The key has a character that no log line or header can carry.
    #[error("the execution key holds a control character")]
    Control,
}

/// Checks a caller's own key.
///
/// # Errors
///
/// [`KeyError`] says what to change; all other keys are accepted.
pub fn check(key: &str) -> Result<(), KeyError> {
    if key.trim().is_empty() {
        return Err(KeyError::Empty);
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong(key.len()));
    }
    if key.chars().any(char::is_control) {
        return Err(KeyError::Control);
    }
    Ok(())
}

/// Returns the idempotency key of an execution: the job's template with `{job}` and `{execution_key}` replaced, by
/// default `<job>:<execution_key>`. The same over retries and requeues.
pub fn idempotency(template: Option<&str>, job: &str, execution_key: &str) -> String {
    match template {
        None => format!("{job}:{execution_key}"),
        // A single pass over the template, so that a job named `{execution_key}` is not replaced again.
        Some(template) => {
            let mut out = String::with_capacity(template.len() + job.len() + execution_key.len());
            let mut remaining = template;
            while let Some(at) = remaining.find('{') {
                out.push_str(&remaining[..at]);
                remaining = &remaining[at..];
                if let Some(after) = remaining.strip_prefix("{job}") {
                    out.push_str(job);
                    remaining = after;
                } else if let Some(after) = remaining.strip_prefix("{execution_key}") {
                    out.push_str(execution_key);
                    remaining = after;
                } else {
                    out.push('{');
                    remaining = &remaining[1..];
                }
            }
            out.push_str(remaining);
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_computes_the_same_key_for_a_firing() {
        let at = "2025-12-12T08:00:00Z".parse().unwrap();
        let cron = Schedule::Cron { expression: "0 8 * * *".into() };
        assert_eq!(of_firing(&cron, at).as_deref(), Some("cron-2025-12-12T08:00:00Z"));
        assert_eq!(of_firing(&Schedule::None, at), None);
        assert!(of_kinds(at).contains(&"cron-2025-12-12T08:00:00Z".to_owned()));
    }

    #[test]
    fn every_kind_of_schedule_has_its_keys_among_those_of_an_instant() {
        let at: DateTime<Utc> = "2025-12-12T08:00:00Z".parse().unwrap();
        let every = Schedule::every(std::time::Duration::from_mins(1));
        for schedule in [Schedule::At { at: at.into() }, every] {
            assert!(of_kinds(at).contains(&of_firing(&schedule, at).unwrap()), "{schedule:?}");
        }
    }

    #[test]
    fn keys_of_a_kind_have_one_length_and_the_order_of_their_instants_between_the_bounds() {
        let middle: DateTime<Utc> = "2025-12-12T08:00:00Z".parse().unwrap();
        let keys = [EARLIEST, middle, LATEST].map(|at| of_kinds(at)[0].clone());
        assert!(keys.iter().all(|key| key.len() == keys[0].len()), "{keys:?}");
        assert!(keys.is_sorted(), "{keys:?}");
    }

    #[test]
    fn a_template_is_filled_once() {
        assert_eq!(idempotency(None, "a.b", "k"), "a.b:k");
        assert_eq!(
            idempotency(Some("x-{job}-{execution_key}-{z}"), "{execution_key}", "k"),
            "x-{execution_key}-k-{z}"
        );
    }

    #[test]
    fn a_callers_key_is_checked() {
        assert_eq!(check(" "), Err(KeyError::Empty));
        assert_eq!(check("a\nb"), Err(KeyError::Control));
        assert_eq!(check(&"x".repeat(257)), Err(KeyError::TooLong(257)));
        assert_eq!(check("customer-4891"), Ok(()));
    }
}
