//! Goal: the dialect's rules one by one as tables, and the search against a walk without masks. Method: `naive`
//! builds expressions from parts that it can match by arithmetic.

mod anomalies;
mod answers;
mod clock_changes;
mod count;
mod days;
mod errors;
mod grammar;
pub(crate) mod naive;
mod properties;
mod relative;
mod spread;
mod walk;
mod words;

use chrono::{DateTime, Utc};

use super::{DayRule, Dialect, Dst, Expression};
use crate::zone::Zone;

/// The job whose expressions these are.
pub(crate) const NAME: &str = "billing.run";

pub(crate) fn parse(text: &str) -> Expression {
    parse_with_days(text, None)
}

fn parse_with_days(text: &str, days: Option<DayRule>) -> Expression {
    match Expression::parse_with_days(text, Dialect::Any, NAME, days) {
        Ok(expression) => expression,
        Err(error) => panic!("{text:?}: {error}"),
    }
}

pub(crate) fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Returns the firing after `from` in UTC.
fn next_in_utc(expression: &Expression, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
    expression.next_after(from, Zone::UTC, Dst::Vixie)
}

/// Returns the next `count` firings after `from` in UTC, as text.
fn firings(text: &str, from: &str, count: usize) -> Vec<String> {
    parse(text)
        .iter_after(at(from), Zone::UTC, Dst::Vixie)
        .take(count)
        .map(|firing| firing.format("%FT%TZ").to_string())
        .collect()
}
