//! Properties over arbitrary valid expressions, and over arbitrary text.

use chrono::{DateTime, Days, Duration, Months, Timelike, Utc};
use proptest::prelude::*;

use super::naive::expressions;
use super::{NAME, next_in_utc, parse};
use crate::cron::{CronError, Dialect, Dst, Expression, MAX_ECHO_BYTES};
use crate::zone::Zone;

/// 1970 to 2200, with and without a fraction of a second.
fn instants() -> impl Strategy<Value = DateTime<Utc>> {
    let nanos = prop_oneof![Just(0_u32), Just(1), Just(999_999_999), 0..1_000_000_000_u32];
    (0..7_258_118_400_i64, nanos)
        .prop_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos).unwrap())
}

/// Text from the characters of expressions, so that it passes the first check.
fn nearly_expressions() -> impl Strategy<Value = String> {
    const WORDS: [&str; 30] = [
        "*",
        "?",
        "/",
        "-",
        ",",
        " ",
        " ",
        " ",
        " ",
        "\t",
        "0",
        "1",
        "7",
        "31",
        "59",
        "60",
        "007",
        "4294967296",
        "MON",
        "fri",
        "SUN",
        "dec",
        "L",
        "W",
        "#",
        "H(",
        "@daily",
        "@",
        "\n",
        "é",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40).prop_map(|words| words.concat())
}

fn check_never_panics(text: &str, from: DateTime<Utc>) -> Result<(), TestCaseError> {
    for dialect in [Dialect::Unix5, Dialect::Seconds6, Dialect::Any] {
        match Expression::parse(text, dialect, NAME) {
            Ok(expression) => {
                let next = next_in_utc(&expression, from);
                prop_assert!(next.is_none_or(|next| next > from && next.nanosecond() == 0));
            }
            Err(error) => check_echo(&error)?,
        }
    }
    Ok(())
}

fn check_echo(error: &CronError) -> Result<(), TestCaseError> {
    prop_assert!(error.item().is_none_or(|item| item.len() <= MAX_ECHO_BYTES));
    prop_assert!(!error.to_string().chars().any(char::is_control));
    prop_assert!(error.to_string().len() < 300);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_answer_is_what_a_walk_by_the_second_finds(
        expression in expressions(), from in instants(),
    ) {
        let found = expression.walk_seconds(from, 2 * 3600);
        let next = next_in_utc(&parse(&expression.to_string()), from);
        match found {
            Some(found) => prop_assert_eq!(next, Some(found)),
            None => prop_assert!(
                next.is_none_or(|next| next > from + Duration::hours(2) - Duration::seconds(1))
            ),
        }
    }

    #[test]
    fn the_answer_is_what_a_walk_by_the_day_finds(
        expression in expressions(), from in instants(),
    ) {
        let days = 6 * 366_u64;
        let next = next_in_utc(&parse(&expression.to_string()), from);
        match expression.walk_days(from, days as usize) {
            Some(found) => prop_assert_eq!(next, Some(found)),
            None => prop_assert!(
                next.is_none_or(|next| next.date_naive() >= from.date_naive() + Days::new(days))
            ),
        }
    }

    #[test]
    fn every_instant_between_two_firings_has_the_same_next_firing(
        expression in expressions(), from in instants(),
        fraction in 0.0..1.0_f64, nanos in 0..1_000_000_000_i64,
    ) {
        let read = parse(&expression.to_string());
        let Some(previous) = next_in_utc(&read, from) else { return Ok(()) };
        let Some(next) = next_in_utc(&read, previous) else { return Ok(()) };
        let gap_s = (next - previous).num_seconds();
        let inside = previous + Duration::seconds((gap_s as f64 * fraction) as i64)
            + Duration::nanoseconds(nanos);
        prop_assert!(inside >= previous && inside < next);
        prop_assert_eq!(next_in_utc(&read, inside), Some(next));
        prop_assert_eq!(next_in_utc(&read, next - Duration::nanoseconds(1)), Some(next));
    }

    #[test]
    fn a_list_of_firings_is_what_asking_one_at_a_time_gives(
        expression in expressions(), from in instants(),
    ) {
        let read = parse(&expression.to_string());
        let list: Vec<_> = read.iter_after(from, Zone::UTC, Dst::Vixie).take(20).collect();
        let mut cursor = from;
        for firing in &list {
            prop_assert_eq!(next_in_utc(&read, cursor), Some(*firing));
            prop_assert!(*firing > cursor);
            prop_assert!(expression.selects(*firing));
            cursor = *firing;
        }
        prop_assert!(list.len() == 20 || next_in_utc(&read, cursor).is_none());
    }

    #[test]
    fn the_last_match_of_a_stretch_has_no_other_behind_it(
        expression in expressions(), from in instants(),
        length_s in prop_oneof![0..90_000_i64, 0..100_000_000_i64],
    ) {
        let sets = parse(&expression.to_string()).sets;
        let first = from.with_nanosecond(0).unwrap().naive_utc();
        let to = first + Duration::seconds(length_s);
        let found = sets.last_between(first, to);
        prop_assert_eq!(found.is_some(), sets.first_between(first, to).is_some());
        let Some(last) = found else { return Ok(()) };
        prop_assert!(first <= last && last <= to && expression.selects(last.and_utc()));
        prop_assert_eq!(sets.first_between(last + Duration::seconds(1), to), None);
    }

    #[test]
    fn an_expression_fires_within_forty_years_and_a_month_or_never(
        expression in expressions(), from in instants(),
    ) {
        if let Some(next) = next_in_utc(&parse(&expression.to_string()), from) {
            prop_assert!(next <= from + Months::new(40 * 12 + 1));
        }
    }

    #[test]
    fn upper_and_lower_case_names_mean_their_numbers(month in 1..=12_usize, day in 0..7_usize) {
        let months = [
            "JAN", "feb", "Mar", "aPR", "may", "JUN", "jul", "aug", "SEP", "oct", "nov", "DEC",
        ];
        let days = ["SUN", "mon", "Tue", "wED", "thu", "FRI", "sat"];
        let named = format!("0 0 * {} {}", months[month - 1], days[day]);
        prop_assert_eq!(parse(&named), parse(&format!("0 0 * {month} {day}")));
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), from in instants()) {
        check_never_panics(&text, from)?;
    }

    #[test]
    fn arbitrary_text_of_up_to_two_kilobytes_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..2048), from in instants(),
    ) {
        check_never_panics(&String::from_utf8_lossy(&bytes), from)?;
    }

    #[test]
    fn text_that_is_nearly_an_expression_never_panics(
        text in nearly_expressions(), from in instants(),
    ) {
        check_never_panics(&text, from)?;
    }

    #[test]
    fn five_arbitrary_fields_never_panic(
        fields in prop::collection::vec("[0-9*?/,A-Za-z#-]{1,12}", 5..=6), from in instants(),
    ) {
        check_never_panics(&fields.join(" "), from)?;
    }
}
