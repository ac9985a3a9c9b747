//! Parses the field `retry`.

use super::fields::{Fields, kind};
use super::limits::{
    MAX_CRASHES, MAX_PERMANENT, MAX_RETRIES, MAX_TIMEOUTS, RETRY_DELAY, RETRY_JITTER,
    RETRY_MAX_DELAY, RETRY_MULTIPLIER,
};
use crate::job::{RetryOverrides, check_class};
use crate::quoting::quoted;
use crate::retry::RetryPolicy;

/// The fields of a `retry` table; the catalogue's has the same.
pub const RETRY_FIELDS: [&str; 8] = [
    "max_retries",
    "max_timeouts",
    "max_crashes",
    "delay",
    "multiplier",
    "max_delay",
    "jitter",
    "permanent",
];

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> RetryOverrides {
    let Some(mut inside) = fields.inside("retry", "retry.") else {
        return RetryOverrides::default();
    };
    let mut count = |name, range| inside.integer(name, range).map(|number| number as u32);
    let max_retries = count("max_retries", MAX_RETRIES);
    let max_timeouts = count("max_timeouts", MAX_TIMEOUTS);
    let max_crashes = count("max_crashes", MAX_CRASHES);
    let retry = RetryOverrides {
        max_retries,
        max_timeouts,
        max_crashes,
        delay: inside.duration("delay", RETRY_DELAY),
        multiplier: inside.number("multiplier", RETRY_MULTIPLIER),
        max_delay: inside.duration("max_delay", RETRY_MAX_DELAY),
        jitter: inside.number("jitter", RETRY_JITTER),
        permanent: permanent(&mut inside),
    };
    // A first delay over the cap would be cut silently.
    let default_cap = RetryPolicy::default().max_delay;
    if let Some(delay) = retry.delay
        && delay > retry.max_delay.unwrap_or(default_cap)
    {
        let cap = if inside.has("max_delay") { "max_delay" } else { "the default max_delay of 1h" };
        inside.problem("delay", format!("is longer than {cap}; set a larger max_delay"));
    }
    inside.report_unknown_fields(&RETRY_FIELDS, &[], &[]);
    retry
}

/// Parses the classes of error that are never retried.
fn permanent(fields: &mut Fields<'_, '_, '_>) -> Option<Vec<String>> {
    const FIELD: &str = "permanent";
    let value = fields.raw(FIELD)?;
    let Some(list) = value.get_ref().as_array() else {
        let found = kind(value.get_ref());
        fields.problem(FIELD, format!("must be a list such as [\"exit_3\"], not {found}"));
        return None;
    };
    if list.len() > MAX_PERMANENT {
        let number = list.len();
        fields.problem(FIELD, format!("holds {number} classes; {MAX_PERMANENT} at most"));
        return None;
    }
    let mut classes = Vec::with_capacity(list.len());
    for one in list {
        let at = one.span().start;
        let Some(class) = one.get_ref().as_str() else {
            let found = kind(one.get_ref());
            fields.problem_at(at, FIELD, format!("a class must be text in quotes, not {found}"));
            continue;
        };
        match check_class(class) {
            Err(error) => fields.problem_at(at, FIELD, format!("{} {error}", quoted(class))),
            Ok(()) if classes.iter().any(|known| known == class) => {
                fields.problem_at(at, FIELD, format!("{} stands there twice", quoted(class)));
            }
            Ok(()) => classes.push(class.to_owned()),
        }
    }
    Some(classes)
}
