//! The accepted fields, items and macros.

use super::{NAME, parse};
use crate::cron::{Dialect, Expression, MAX_EXPRESSION_BYTES};

fn assert_same(table: &[(&str, &str)]) {
    for (written, expected) in table {
        // The text decides whether an expression is a wildcard, so here they may differ.
        assert_eq!(parse(written).sets, parse(expected).sets, "{written:?} and {expected:?}");
    }
}

#[test]
fn five_fields_fire_at_second_zero_and_six_begin_with_the_second() {
    assert_same(&[("1 2 3 4 5", "0 1 2 3 4 5"), ("* * * * *", "0 * * * * *")]);
    assert_ne!(parse("1 2 3 4 5"), parse("1 1 2 3 4 5"));
}

#[test]
fn fields_are_split_on_runs_of_blanks_and_tabs_and_the_ends_are_trimmed() {
    assert_same(&[
        ("  \t1   2\t3 \t 4\t\t5  \t", "1 2 3 4 5"),
        ("\t0\t1\t2\t3\t4\t5\t", "0 1 2 3 4 5"),
    ]);
}

#[test]
fn each_dialect_takes_its_own_number_of_fields_and_every_macro() {
    use Dialect::{Any, Seconds6, Unix5};
    for (dialect, five, six) in [(Unix5, true, false), (Seconds6, false, true), (Any, true, true)] {
        assert_eq!(Expression::parse("* * * * *", dialect, NAME).is_ok(), five, "{dialect:?}");
        assert_eq!(Expression::parse("* * * * * *", dialect, NAME).is_ok(), six, "{dialect:?}");
        assert!(Expression::parse("@daily", dialect, NAME).is_ok(), "{dialect:?}");
    }
}

#[test]
fn an_expression_of_exactly_the_longest_length_is_read() {
    let longest = format!("* * * * {}", vec!["0"; (MAX_EXPRESSION_BYTES - 7) / 2].join(","));
    let longest = format!("{longest:<MAX_EXPRESSION_BYTES$}");
    assert_eq!(longest.len(), MAX_EXPRESSION_BYTES);
    assert_eq!(parse(&longest), parse("* * * * 0"));
}

#[test]
fn items_mean_the_numbers_they_stand_for() {
    assert_same(&[
        ("*/15 * * * *", "0,15,30,45 * * * *"),
        ("7 * * * *", "07 * * * *"),
        ("7 * * * *", "0000000000000007 * * * *"),
        ("5-8 * * * *", "5,6,7,8 * * * *"),
        ("5-5 * * * *", "5 * * * *"),
        ("5-12/3 * * * *", "5,8,11 * * * *"),
        ("50/3 * * * *", "50,53,56,59 * * * *"),
        ("59/1 * * * *", "59 * * * *"),
        ("3,1,2,1-3,1 * * * *", "1-3 * * * *"),
        ("0-59 0-23 * 1-12 *", "* * * * *"),
        ("0 */6 */10 */5 *", "0 0,6,12,18 1,11,21,31 1,6,11 *"),
        ("0 0 20/5 8/2 *", "0 0 20,25,30 8,10,12 *"),
        ("*,5 * * * *", "* * * * *"),
        ("*/30 * * * * *", "0,30 * * * * *"),
    ]);
}

#[test]
fn a_step_beyond_the_maximum_selects_the_start_alone() {
    assert_same(&[
        ("*/60 * * * *", "0 * * * *"),
        ("*/90 */24 */31 */12 *", "0 0 */40 1 *"),
        ("10-20/11 * * * *", "10 * * * *"),
        ("10-20/10 * * * *", "10,20 * * * *"),
        ("30/99999999999999999999 * * * *", "30 * * * *"),
    ]);
}

#[test]
fn months_and_weekdays_have_names_in_any_case() {
    assert_same(&[
        ("0 0 1 JAN *", "0 0 1 1 *"),
        ("0 0 1 jan,Feb,mAR *", "0 0 1 1-3 *"),
        ("0 0 1 APR-dec/4 *", "0 0 1 4,8,12 *"),
        ("0 0 1 oct/1 *", "0 0 1 10-12 *"),
        ("0 0 1 may-7 *", "0 0 1 5-7 *"),
        ("0 0 * * mon-FRI", "0 0 * * 1-5"),
        ("0 0 * * Tue,sat", "0 0 * * 2,6"),
        ("0 0 * * mon-5", "0 0 * * 1-5"),
    ]);
}

#[test]
fn sunday_is_0_and_7_and_ends_a_range_by_name() {
    assert_same(&[
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * SUN", "0 0 * * 0"),
        ("0 0 * * 6-7", "0 0 * * 0,6"),
        ("0 0 * * FRI-SUN", "0 0 * * 5,6,0"),
        ("0 0 * * fri-sun/2", "0 0 * * 5,0"),
        ("0 0 * * 5-SUN", "0 0 * * 5,6,0"),
        ("0 0 * * SUN-TUE", "0 0 * * 0-2"),
        ("0 0 * * SUN-SUN", "0 0 * * 0"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * 1/2", "0 0 * * 1,3,5,7"),
        ("0 0 * * 2/2", "0 0 * * 2,4,6"),
        ("0 0 * * 7/3", "0 0 * * 0"),
        ("0 0 * * */7", "0 0 * * */8"),
        ("0 0 * * */3", "0 0 * * */3,6"),
    ]);
}

#[test]
fn a_question_mark_is_a_star_in_the_day_fields() {
    assert_same(&[
        ("0 0 ? * MON", "0 0 * * MON"),
        ("0 0 1 * ?", "0 0 1 * *"),
        ("0 0 ?/2 * ?/3", "0 0 */2 * */3"),
        ("0 0 1,? * 2", "0 0 1,* * 2"),
    ]);
}

#[test]
fn macros_stand_for_five_fields() {
    assert_same(&[
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" \t@hourly\t ", "0 * * * *"),
    ]);
}

#[test]
fn a_wildcard_is_one_whose_minute_or_hour_begins_with_a_star() {
    for (text, wildcard) in [
        ("* * * * *", true),
        ("*/15 9 * * *", true),
        ("5 */2 * * *", true),
        ("*,5 9 * * *", true),
        ("@hourly", true),
        ("0 9 * * *", false),
        ("0-59 0-23 * * *", false),
        ("5,* 9 * * *", false),
        ("H/15 9 * * *", false),
        ("* 30 9 * * *", false),
        ("@daily", false),
    ] {
        assert_eq!(parse(text).wildcard, wildcard, "{text}");
    }
    assert_ne!(parse("*/30 9 * * *"), parse("0,30 9 * * *"));
}
