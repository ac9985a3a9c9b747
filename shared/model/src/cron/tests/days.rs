//! How the two day fields are combined. 2026-03-01 is a Sunday.

use super::{firings, parse};

/// Returns the selected days of March 2026.
fn march(days: &str) -> Vec<u32> {
    let (day_of_month, day_of_week) = days.split_once(' ').unwrap();
    firings(&format!("0 0 {day_of_month} 3 {day_of_week}"), "2026-02-28T12:00:00Z", 31)
        .iter()
        .filter_map(|firing| firing.strip_prefix("2026-03-"))
        .map(|rest| rest[..2].parse().unwrap())
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
