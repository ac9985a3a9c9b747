//! Goal: the dialect's rules one by one as tables, and the search against a walk that knows nothing
//! of masks. Method: `naive` builds expressions from parts that it can match by arithmetic.

mod answers;
mod days;
mod errors;
mod grammar;
mod naive;
mod properties;

use chrono::{DateTime, Utc};

use super::{Dialect, Expression};

fn parse(text: &str) -> Expression {
    match Expression::parse(text, Dialect::Any) {
        Ok(expression) => expression,
        Err(error) => panic!("{text:?}: {error}"),
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// The next `count` firings after `from`, as text.
fn firings(text: &str, from: &str, count: usize) -> Vec<String> {
    parse(text)
        .iter_after(at(from))
        .take(count)
        .map(|firing| firing.format("%FT%TZ").to_string())
        .collect()
}
