//! How the two day fields are combined. 2026-03-01 is a Sunday.

use chrono::{DateTime, Datelike, Days, Utc};
use proptest::prelude::*;

use super::naive::{daily, expressions_with_days};
use super::walk::{DSTS, changes, found, walk};
use super::{at, firings, next_in_utc, parse, parse_with_days};
use crate::cron::{DayRule, Dst, restricts_days_twice};
use crate::zone::Zone;

/// Returns the selected days of March 2026.
fn march(days: &str) -> Vec<u32> {
    march_with(days, None)
}

fn march_with(days: &str, rule: Option<DayRule>) -> Vec<u32> {
    let (day_of_month, day_of_week) = days.split_once(' ').unwrap();
    parse_with_days(&format!("0 0 {day_of_month} 3 {day_of_week}"), rule)
        .iter_after(at("2026-02-28T12:00:00Z"), Zone::UTC, Dst::Vixie)
        .take_while(|firing| firing.year() == 2026)
        .map(|firing| firing.day())
        .collect()
}

#[test]
fn two_plain_day_fields_select_a_day_that_either_selects() {
    assert_eq!(march("13 5"), [6, 13, 20, 27]);
    assert_eq!(march("1,15 WED"), [1, 4, 11, 15, 18, 25]);
    assert_eq!(march("31 SAT-7"), [1, 7, 8, 14, 15, 21, 22, 28, 29, 31]);
    assert_eq!(march("2/14 MON"), [2, 9, 16, 23, 30]);
}

#[test]
fn a_full_range_is_not_a_star_and_so_selects_every_day() {
    let every_day: Vec<u32> = (1..=31).collect();
    assert_eq!(march("13 0-6"), every_day);
    assert_eq!(march("13 1-7"), every_day);
    assert_eq!(march("1-31 5"), every_day);
    assert_eq!(march("13,* 5"), every_day);
    assert_eq!(march("13 5,*"), every_day);
}

#[test]
fn a_starred_day_field_narrows_the_other() {
    assert_eq!(march("13 *"), [13]);
    assert_eq!(march("13 ?"), [13]);
    assert_eq!(march("* 5"), [6, 13, 20, 27]);
    assert_eq!(march("? FRI"), [6, 13, 20, 27]);
    assert_eq!(march("* *").len(), 31);
    assert_eq!(march("*,13 5"), [6, 13, 20, 27]);
    assert_eq!(march("13 *,5"), [13]);
}

#[test]
fn a_starred_step_is_starred() {
    assert_eq!(march("*/2 5"), [13, 27]);
    assert_eq!(march("?/2 5"), [13, 27]);
    assert_eq!(march("13,20,21 */5"), [13, 20]);
    assert_eq!(march("*/10 */2"), [1, 21, 31]);
    assert_eq!(march("*/10,6 5"), [6]);
}

#[test]
fn the_month_narrows_both_day_fields_whatever_their_rule() {
    let days = firings("0 0 13 2,3 5", "2026-02-25T00:00:00Z", 6);
    let expected = ["02-27", "03-06", "03-13", "03-20", "03-27"];
    assert_eq!(days[..5], expected.map(|day| format!("2026-{day}T00:00:00Z")));
    assert_eq!(days[5], "2027-02-05T00:00:00Z");
}

#[test]
fn a_day_that_a_month_lacks_does_not_fire_in_it() {
    let days = firings("0 0 31 * *", "2026-01-31T00:00:00Z", 4);
    let expected = ["03-31", "05-31", "07-31", "08-31"];
    assert_eq!(days, expected.map(|day| format!("2026-{day}T00:00:00Z")));
    let days = firings("0 0 29,30 * *", "2026-01-30T00:00:00Z", 2);
    assert_eq!(days, ["2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"]);
}

#[test]
fn the_rule_is_part_of_what_makes_two_expressions_equal() {
    assert_ne!(parse("0 0 * * 5"), parse("0 0 1-31 * 5"));
    assert_eq!(parse("0 0 1-31 * 5"), parse("0 0 1-31 * FRI"));
}

#[test]
fn a_job_that_says_both_fires_on_days_that_both_fields_select() {
    let both = |days| march_with(days, Some(DayRule::Both));
    assert_eq!(both("13 5"), [13]);
    assert_eq!(both("1,15 WED"), [0; 0]);
    assert_eq!(both("1-7 MON"), [2]);
    assert_eq!(both("*/2 5"), [13, 27]);
    assert_eq!(both("1-31 5"), [6, 13, 20, 27]);
    assert_eq!(both("13,* 5"), [6, 13, 20, 27]);
    assert_eq!(both("L TUE"), [31]);
}

#[test]
fn a_job_that_says_either_fires_on_days_that_one_field_selects_also_if_it_begins_with_a_star() {
    let either = |days| march_with(days, Some(DayRule::Either));
    assert_eq!(either("13 5"), [6, 13, 20, 27]);
    assert_eq!(either("*/10 5"), [1, 6, 11, 13, 20, 21, 27, 31]);
    assert_eq!(either("*/31 */6"), [1, 7, 8, 14, 15, 21, 22, 28, 29]);
    assert_eq!(either("*/1 5").len(), 31);
    assert_eq!(either("L MON#1"), [2, 31]);
}

#[test]
fn a_star_alone_leaves_the_days_to_the_other_field_whatever_a_job_says() {
    for rule in [None, Some(DayRule::Both), Some(DayRule::Either)] {
        for (days, expected) in
            [("13 *", &[13][..]), ("13 ?", &[13]), ("* 5", &[6, 13, 20, 27]), ("? 7#5", &[29])]
        {
            assert_eq!(march_with(days, rule), expected, "{days} {rule:?}");
        }
        assert_eq!(march_with("* ?", rule).len(), 31);
        assert_eq!(parse_with_days("@weekly", rule), parse("@weekly"));
    }
    for (text, twice) in [
        ("0 0 13 * FRI", true),
        ("0 0 0 */2 * MON", true),
        ("0 0 1-31 * 0-6", true),
        ("0 0 L * ?/2", true),
        ("0 0 13 * *", false),
        ("0 0 ? * FRI", false),
        ("0 0 0 * * *", false),
        ("@monthly", false),
        ("13 FRI", false),
    ] {
        assert_eq!(restricts_days_twice(text), twice, "{text}");
    }
}

/// Computed by croniter 7.0.0 for Python, with `day_or=False` and `day_or=True`, after 2026-01-01T00:00:00.
#[test]
fn the_two_rules_are_those_of_croniter() {
    use DayRule::{Both, Either};
    for (text, rule, expected) in [
        ("0 0 13 * FRI", Both, "2026-02-13T00 2026-03-13T00 2026-11-13T00 2027-08-13T00"),
        ("0 0 13 * FRI", Either, "2026-01-02T00 2026-01-09T00 2026-01-13T00 2026-01-16T00"),
        ("0 6 1,15 * WED", Both, "2026-04-01T06 2026-04-15T06 2026-07-01T06 2026-07-15T06"),
        ("0 6 1,15 * WED", Either, "2026-01-01T06 2026-01-07T06 2026-01-14T06 2026-01-15T06"),
        ("0 12 1-7 * MON", Both, "2026-01-05T12 2026-02-02T12 2026-03-02T12 2026-04-06T12"),
        ("0 12 1-7 * MON", Either, "2026-01-01T12 2026-01-02T12 2026-01-03T12 2026-01-04T12"),
        ("0 0 */10 * SUN", Both, "2026-01-11T00 2026-02-01T00 2026-03-01T00 2026-05-31T00"),
        ("0 0 */10 * SUN", Either, "2026-01-04T00 2026-01-11T00 2026-01-18T00 2026-01-21T00"),
        ("0 0 31 * 1-5", Both, "2026-03-31T00 2026-07-31T00 2026-08-31T00 2026-12-31T00"),
        ("0 0 31 * 1-5", Either, "2026-01-02T00 2026-01-05T00 2026-01-06T00 2026-01-07T00"),
        ("0 9 29 2 MON,TUE", Both, "2028-02-29T09 2044-02-29T09 2056-02-29T09 2072-02-29T09"),
        ("0 9 29 2 MON,TUE", Either, "2026-02-02T09 2026-02-03T09 2026-02-09T09 2026-02-10T09"),
        ("0 0 1-31 * TUE", Both, "2026-01-06T00 2026-01-13T00 2026-01-20T00 2026-01-27T00"),
        ("0 0 1-31 * TUE", Either, "2026-01-02T00 2026-01-03T00 2026-01-04T00 2026-01-05T00"),
        ("0 3 20-25/5 6 */3", Both, "2026-06-20T03 2027-06-20T03 2028-06-25T03 2029-06-20T03"),
        ("0 3 20-25/5 6 */3", Either, "2026-06-03T03 2026-06-06T03 2026-06-07T03 2026-06-10T03"),
        ("0 0 L * MON", Both, "2026-08-31T00 2026-11-30T00 2027-05-31T00 2028-01-31T00"),
        ("0 0 L * MON", Either, "2026-01-05T00 2026-01-12T00 2026-01-19T00 2026-01-26T00"),
        ("0 0 * * FRI", Either, "2026-01-02T00 2026-01-09T00 2026-01-16T00 2026-01-23T00"),
        ("0 0 13 * ?", Either, "2026-01-13T00 2026-02-13T00 2026-03-13T00 2026-04-13T00"),
    ] {
        let firings = parse_with_days(text, Some(rule))
            .iter_after(at("2026-01-01T00:00:00Z"), Zone::UTC, Dst::Vixie)
            .take(4)
            .map(|firing| firing.format("%FT%H").to_string());
        assert_eq!(firings.collect::<Vec<_>>().join(" "), expected, "{text} {rule:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_a_job_says_about_its_day_fields_the_answer_is_what_a_walk_by_the_day_finds(
        naive in expressions_with_days(), at_s in 0..7_258_118_400_i64,
    ) {
        let (from, days) = (DateTime::<Utc>::from_timestamp(at_s, 0).unwrap(), 6 * 366_u64);
        let next = next_in_utc(&parse_with_days(&naive.to_string(), naive.days()), from);
        match naive.walk_days(from, days as usize) {
            Some(found) => prop_assert_eq!(next, Some(found)),
            None => prop_assert!(
                next.is_none_or(|next| next.date_naive() >= from.date_naive() + Days::new(days))
            ),
        }
    }

    #[test]
    fn around_a_change_of_the_clocks_a_job_with_days_fires_as_a_walk_by_the_minute_does(
        naive in (daily(false), expressions_with_days()).prop_map(|(time, days)| time.on_days_of(days)),
        (tz, change_s) in changes(),
        dst in prop::sample::select(&DSTS[..]),
        before_s in 0..172_800_i64,
    ) {
        let (from_s, to_s) = (change_s - before_s, change_s + 172_800);
        // The walk goes by whole minutes.
        let from_s = from_s - from_s % 60;
        let expected = walk(&naive, tz, dst, from_s, to_s, 60);
        let expression = parse_with_days(&naive.to_string(), naive.days());
        prop_assert_eq!(found(&expression, tz, dst, from_s, to_s), expected, "{} in {}", naive, tz);
    }
}
