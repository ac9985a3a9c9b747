//! The key `retry` of a task type: the deployer's retry settings for jobs without their own.

use std::ops::RangeInclusive;

use sexton_model::job::{RetryOverrides, check_class};
use sexton_model::jobs_file::{RETRY_FIELDS, limits};
use sexton_model::quoting::quoted;
use sexton_model::retry::RetryPolicy;
use toml::de::{DeFloat, DeInteger};

use super::fields::{Fields, Notes};

/// Reads the table `retry`, if there is one. It has the fields and limits of a job's.
pub(super) fn read(fields: Fields<'_>, notes: &mut Notes<'_>) -> RetryOverrides {
    let Some(value) = fields.get("retry") else { return RetryOverrides::default() };
    let Some(table) = value.get_ref().as_table() else {
        fields.report("retry", "must be a table such as { max_retries = 5 }", notes);
        return RetryOverrides::default();
    };
    let inside = Fields::new(table, "retry.");
    let retry = RetryOverrides {
        max_retries: count(inside, "max_retries", &limits::MAX_RETRIES, notes),
        max_timeouts: count(inside, "max_timeouts", &limits::MAX_TIMEOUTS, notes),
        max_crashes: count(inside, "max_crashes", &limits::MAX_CRASHES, notes),
        delay: inside.span("delay", limits::RETRY_DELAY, notes),
        multiplier: number(inside, "multiplier", &limits::RETRY_MULTIPLIER, notes),
        max_delay: inside.span("max_delay", limits::RETRY_MAX_DELAY, notes),
        jitter: number(inside, "jitter", &limits::RETRY_JITTER, notes),
        permanent: permanent(inside, notes),
    };
    inside.check_keys(&RETRY_FIELDS, notes);
    if let Some(delay) = retry.delay
        && delay > retry.max_delay.unwrap_or(RetryPolicy::default().max_delay)
    {
        inside.report("delay", "is longer than `max_delay`, which is 1h unless given", notes);
    }
    retry
}

fn count(
    fields: Fields<'_>,
    key: &str,
    allowed: &RangeInclusive<i64>,
    notes: &mut Notes<'_>,
) -> Option<u32> {
    let digits = fields.get(key)?.get_ref().as_integer();
    let number = digits.and_then(|it| i64::from_str_radix(it.as_str(), it.radix()).ok());
    let Some(number) = number.filter(|number| allowed.contains(number)) else {
        let message =
            format!("must be a whole number from {} to {}", allowed.start(), allowed.end());
        fields.report(key, message, notes);
        return None;
    };
    u32::try_from(number).ok()
}

fn number(
    fields: Fields<'_>,
    key: &str,
    allowed: &RangeInclusive<f64>,
    notes: &mut Notes<'_>,
) -> Option<f64> {
    let value = fields.get(key)?.get_ref();
    let whole = value.as_integer().filter(|integer| integer.radix() == 10).map(DeInteger::as_str);
    let text = value.as_float().map(DeFloat::as_str).or(whole);
    let number = text.and_then(|text| text.parse().ok());
    let number = number.filter(|number: &f64| allowed.contains(number));
    if number.is_none() {
        let message = format!("must be a number from {} to {}", allowed.start(), allowed.end());
        fields.report(key, message, notes);
    }
    number
}

fn permanent(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<Vec<String>> {
    const KEY: &str = "permanent";
    let list = fields.get(KEY)?.get_ref().as_array();
    let Some(list) = list.filter(|list| list.len() <= limits::MAX_PERMANENT) else {
        let max_classes = limits::MAX_PERMANENT;
        let message =
            format!("must be a list of at most {max_classes} classes, such as [\"exit_3\"]");
        fields.report(KEY, message, notes);
        return None;
    };
    let mut classes = Vec::with_capacity(list.len());
    for class_value in list {
        let message = match class_value.get_ref().as_str().map(|class| (class, check_class(class)))
        {
            Some((class, Ok(()))) => {
                classes.push(class.to_owned());
                continue;
            }
            Some((class, Err(error))) => format!("{} {error}", quoted(class)),
            None => "every class must be a string".to_owned(),
        };
        notes.problem(Some(class_value.span()), Some(&fields.name(KEY)), message);
    }
    Some(classes)
}
