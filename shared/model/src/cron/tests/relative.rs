//! Days that have another date in every month. 2026-03-01 is a Sunday, 2026-08-31 a Monday.

use super::{firings, parse};

/// Returns the first `count` selected days from the beginning of 2026 on.
fn days(day_of_month: &str, day_of_week: &str, count: usize) -> Vec<String> {
    firings(&format!("0 0 {day_of_month} * {day_of_week}"), "2025-12-31T12:00:00Z", count)
        .iter()
        .map(|firing| firing[5..10].to_owned())
        .collect()
}

#[test]
fn l_is_the_last_day_whatever_the_length_of_the_month() {
    assert_eq!(days("L", "*", 6), ["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]);
    assert_eq!(firings("0 0 L 2 *", "2026-03-01T00:00:00Z", 2)[1], "2028-02-29T00:00:00Z");
    assert_eq!(days("l", "?", 1), ["01-31"]);
}

#[test]
fn l_less_n_is_so_many_days_before_the_last() {
    assert_eq!(days("L-3", "*", 4), ["01-28", "02-25", "03-28", "04-27"]);
    assert_eq!(days("L-0", "*", 2), ["01-31", "02-28"]);
    // Only months of 31 days have one that is thirty days before the last.
    assert_eq!(days("L-30", "*", 4), ["01-01", "03-01", "05-01", "07-01"]);
    assert_eq!(firings("0 0 L-28 2 *", "2026-01-01T00:00:00Z", 1), ["2028-02-01T00:00:00Z"]);
    assert_eq!(firings("0 0 L-29 2 *", "2026-01-01T00:00:00Z", 1).len(), 0);
}

#[test]
fn lw_is_the_last_workday() {
    let expected = ["01-30", "02-27", "03-31", "04-30", "05-29", "06-30"];
    assert_eq!(days("LW", "*", 6), expected);
    assert_eq!(days("lw", "*", 1), ["01-30"]);
}

#[test]
fn n_w_is_the_workday_nearest_to_a_day_without_leaving_the_month() {
    // A Thursday, and then Sunday the 15th twice: the Monday after it.
    assert_eq!(days("15W", "*", 4), ["01-15", "02-16", "03-16", "04-15"]);
    // Saturday the 14th: the Friday before it.
    assert_eq!(days("14W", "*", 3), ["01-14", "02-13", "03-13"]);
    // Sunday the 1st of February and March: the Monday. Saturday the 1st of August: Monday the 3rd.
    assert_eq!(days("1W", "*", 3), ["01-01", "02-02", "03-02"]);
    assert_eq!(firings("0 0 1W 8 *", "2026-01-01T00:00:00Z", 1), ["2026-08-03T00:00:00Z"]);
    // Saturday the 31st: Friday the 30th. Sunday the 31st of May: Friday the 29th.
    assert_eq!(days("31W", "*", 3), ["01-30", "03-31", "05-29"]);
    assert_eq!(firings("0 0 30W 2 *", "2026-01-01T00:00:00Z", 1).len(), 0);
}

#[test]
fn n_l_is_the_last_such_weekday() {
    assert_eq!(days("*", "5L", 3), ["01-30", "02-27", "03-27"]);
    assert_eq!(firings("0 0 * 7 5L", "2026-01-01T00:00:00Z", 1), ["2026-07-31T00:00:00Z"]);
    assert_eq!(parse("0 0 * * 5L"), parse("0 0 * * FRIL"));
    assert_eq!(parse("0 0 * * 5l"), parse("0 0 * * fril"));
    assert_eq!(parse("0 0 * * 0L"), parse("0 0 * * 7L"));
    assert_eq!(parse("0 0 * * 0L"), parse("0 0 * * SUNL"));
    assert_eq!(days("?", "SUNL", 3), ["01-25", "02-22", "03-29"]);
}

#[test]
fn n_hash_k_is_the_kth_such_weekday() {
    assert_eq!(days("*", "1#1", 3), ["01-05", "02-02", "03-02"]);
    assert_eq!(days("*", "TUE#2", 3), ["01-13", "02-10", "03-10"]);
    assert_eq!(days("*", "7#4", 2), ["01-25", "02-22"]);
    // Months with a fifth Friday only.
    assert_eq!(days("*", "5#5", 3), ["01-30", "05-29", "07-31"]);
}

#[test]
fn they_stand_in_lists_with_numbers_and_with_each_other() {
    assert_eq!(days("1,15,L", "*", 6), ["01-01", "01-15", "01-31", "02-01", "02-15", "02-28"]);
    assert_eq!(days("L,L-1,LW", "*", 4), ["01-30", "01-31", "02-27", "02-28"]);
    assert_eq!(days("*", "MON,5L", 5), ["01-05", "01-12", "01-19", "01-26", "01-30"]);
    assert_eq!(days("*", "1#1,3#3,FRIL", 3), ["01-05", "01-21", "01-30"]);
    assert_eq!(parse("0 0 L,1 * *"), parse("0 0 1,L,L * *"));
}

#[test]
fn they_count_as_unstarred() {
    // Either: the last day, and every Friday.
    assert_eq!(days("L", "FRI", 6), ["01-02", "01-09", "01-16", "01-23", "01-30", "01-31"]);
    assert_eq!(days("15", "5L", 4), ["01-15", "01-30", "02-15", "02-27"]);
    // Both: the last day if it is a Sunday or Friday; the last Friday if its date is odd.
    assert_eq!(days("L", "*/5", 2), ["05-31", "07-31"]);
    assert_eq!(days("*/2", "5L", 2), ["02-27", "03-27"]);
}

#[test]
fn a_day_that_no_month_has_never_fires() {
    for text in ["0 0 31W 2,4,6,9,11 *", "0 0 L-30 4 *", "0 0 */32 2 1#5", "0 0 L-29 2 *"] {
        assert_eq!(firings(text, "2026-01-01T00:00:00Z", 1).len(), 0, "{text}");
    }
}
