//! `H`: numbers that depend on the job's name, and never change.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{at, parse};
use crate::cron::{Dialect, Dst, Expression, depends_on_name};
use crate::zone::Zone;

fn of(name: &str, text: &str) -> Expression {
    Expression::parse(text, Dialect::Any, name).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the firings of a day as minutes.
fn minutes(expression: &Expression, count: usize) -> Vec<i64> {
    let from = at("2025-12-31T23:59:59Z");
    let minute = |at: chrono::DateTime<chrono::Utc>| (at - from).num_minutes();
    expression.iter_after(from, Zone::UTC, Dst::Vixie).take(count).map(minute).collect()
}

/// A promise: if this test fails, every job with an `H` would move.
#[test]
fn a_name_keeps_its_numbers_in_every_release() {
    for (name, written, expected) in [
        ("billing.run", "H H * * *", "5 3 * * *"),
        ("billing.run", "H H H H H", "5 3 22 7 2"),
        ("billing.run", "H H H H H H", "8 5 3 22 7 2"),
        ("billing.run", "H(0-9) H(22-23) * * H(MON-FRI)", "0 22 * * 2"),
        ("billing.run", "H/20 * * * *", "1-59/20 * * * *"),
        ("reports.daily", "H H * * *", "46 12 * * *"),
        ("", "H H * * *", "9 7 * * *"),
    ] {
        assert_eq!(of(name, written).sets, of(name, expected).sets, "{name}: {written}");
    }
}

#[test]
fn names_spread_evenly_over_a_field() {
    let mut by_minute = [0_u32; 60];
    for number in 0..6_000 {
        let expression = of(&format!("service{}.job{number}", number % 7), "H * * * *");
        by_minute[minutes(&expression, 1)[0] as usize] += 1;
    }
    // A hundred each; 50 is five standard deviations away.
    assert!(by_minute.iter().all(|jobs| (50..=150).contains(jobs)), "{by_minute:?}");
}

#[test]
fn the_fields_of_one_name_differ_from_one_another() {
    let both = |name: &str| minutes(&of(name, "H H * * *"), 1)[0];
    let days: HashSet<i64> = (0..2_000).map(|number| both(&format!("job{number}"))).collect();
    // Of 1,440 minutes of the day 2,000 draws miss a quarter; were hour and minute alike, there
    // would be 60 at most.
    assert!(days.len() > 900, "{}", days.len());
}

#[test]
fn a_step_begins_within_its_first_period_and_goes_on_to_the_end() {
    for number in 0..50 {
        let name = format!("job{number}");
        let fired = minutes(&of(&name, "H/15 0 * * *"), 4);
        assert!((0..15).contains(&fired[0]), "{fired:?}");
        assert!(fired.windows(2).all(|pair| pair[1] - pair[0] == 15), "{fired:?}");
        // Longer than the field: one number of it.
        let fired = minutes(&of(&name, "H/70 0 * * *"), 2);
        assert!((0..60).contains(&fired[0]) && fired[1] == fired[0] + 1_440, "{fired:?}");
    }
}

#[test]
fn a_day_of_the_month_is_one_that_every_month_has() {
    for number in 0..200 {
        let expression = of(&format!("job{number}"), "0 0 H * *");
        let from = at("2025-12-31T23:59:59Z");
        let firings = expression.iter_after(from, Zone::UTC, Dst::Vixie);
        let in_a_year = firings.take_while(|firing| *firing < at("2027-01-01T00:00:00Z")).count();
        assert_eq!(in_a_year, 12);
    }
}

#[test]
fn an_h_stands_in_lists_and_counts_as_unstarred() {
    assert_eq!(parse("H,5 0 * * *"), parse("5,H,H 0 * * *"));
    assert_eq!(parse("h 0 * * *"), parse("H 0 * * *"));
    let fired = minutes(&of("a", "0 0 13 * H"), 31);
    assert!(fired.contains(&(12 * 1_440)), "either of the two: {fired:?}");
}

#[test]
fn what_depends_on_the_name_is_told_by_the_text() {
    for text in ["H * * * *", "0 1,h/2 * * *", "0\t0\tH(1-7) * *", "0 0 * * 1,H"] {
        assert!(depends_on_name(text), "{text}");
    }
    for text in ["0 0 * MAR THU", "@monthly", "@hourly", "0 0 * * *"] {
        assert!(!depends_on_name(text), "{text}");
    }
}

proptest! {
    #[test]
    fn a_spread_stays_in_its_range(
        name in ".{0,40}", a in 0..60_u8, b in 0..60_u8,
    ) {
        let (a, b) = (a.min(b), a.max(b));
        let fired = minutes(&of(&name, &format!("H({a}-{b}) 0 * * *")), 1)[0];
        prop_assert!((i64::from(a)..=i64::from(b)).contains(&fired));
    }
}
