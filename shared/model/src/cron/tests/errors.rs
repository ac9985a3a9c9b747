//! Every refusal names the field, the item and a valid form, and echoes little.

use super::NAME;
use crate::cron::{
    CronError, Dialect, Expression, Field, MAX_ECHO_BYTES, MAX_EXPRESSION_BYTES, Reason,
};

fn refusal(text: &str, dialect: Dialect) -> CronError {
    match Expression::parse(text, dialect, NAME) {
        Err(error) => error,
        Ok(expression) => panic!("{text:?} was read as {expression:?}"),
    }
}

fn assert_refused(table: &[(&str, &str)]) {
    for (text, message) in table {
        assert_eq!(refusal(text, Dialect::Any).to_string(), *message, "{text:?}");
    }
}

const EMPTY: &str = "the item is empty; remove the extra comma";
const MALFORMED: &str = "expected `*`, a number, a range such as `1-5` or a step such as `*/15`";
const TRAILING: &str = "there is something after the item that does not belong to it; remove it";
const REVERSED: &str = "the range runs backwards; write it as two ranges";
const NAMELESS: &str = "names are allowed in month and day-of-week only; use a number";
const ELSEWHERE: &str = "`L`, `L-3`, `LW` and `15W` belong into day-of-month, `5L` and `1#2` into \
                         day-of-week; write a number";
const BESIDE: &str =
    "`L`, `W` and `#` cannot stand in one list with `*` or `?`; remove one of them";
const SPREAD: &str = "expected `H`, a step such as `H/15` or a range such as `H(0-29)`";
const ASCII: &str =
    "only ASCII characters are allowed; retype it with plain blanks, dashes and commas";

fn assert_items_refused(table: &[(&str, &str, &str, &str)]) {
    for (text, field, item, reason) in table {
        let error = refusal(text, Dialect::Any).to_string();
        assert_eq!(error, format!("{field}, item \"{item}\": {reason}"), "{text:?}");
    }
}

#[test]
fn an_empty_item_is_refused_wherever_the_comma_is() {
    assert_items_refused(&[
        (", * * * *", "minute", "", EMPTY),
        (",1 * * * *", "minute", "", EMPTY),
        ("* 1, * * *", "hour", "", EMPTY),
        ("* * 1,,2 * *", "day-of-month", "", EMPTY),
        ("* * * * MON,", "day-of-week", "", EMPTY),
        ("1,,2 * * * * *", "second", "", EMPTY),
    ]);
}

#[test]
fn a_step_of_zero_is_refused() {
    let reason = "a step of 0 selects nothing; use a step of 1 or more";
    assert_items_refused(&[
        ("*/0 * * * *", "minute", "*/0", reason),
        ("* 1-5/0 * * *", "hour", "1-5/0", reason),
        ("* * 3/00 * *", "day-of-month", "3/00", reason),
        ("* * * * ?/0", "day-of-week", "?/0", reason),
    ]);
}

#[test]
fn a_number_outside_its_field_is_refused_with_the_bounds() {
    assert_items_refused(&[
        ("60 * * * * *", "second", "60", "the number is outside 0-59"),
        ("60 * * * *", "minute", "60", "the number is outside 0-59"),
        ("* 24 * * *", "hour", "24", "the number is outside 0-23"),
        ("* * 0 * *", "day-of-month", "0", "the number is outside 1-31"),
        ("* * 32 * *", "day-of-month", "32", "the number is outside 1-31"),
        ("* * * 0 *", "month", "0", "the number is outside 1-12"),
        ("* * * 13 *", "month", "13", "the number is outside 1-12"),
        ("* * * * 8", "day-of-week", "8", "the number is outside 0-7"),
        ("1,2,1-70 * * * *", "minute", "1-70", "the number is outside 0-59"),
        ("256 * * * *", "minute", "256", "the number is outside 0-59"),
        ("4294967296 * * * *", "minute", "4294967296", "the number is outside 0-59"),
        (
            "10000000000000000000000000000000000000000 * * * *",
            "minute",
            "10000000000000000000000000000000000000000",
            "the number is outside 0-59",
        ),
        ("* 70/2 * * *", "hour", "70/2", "the number is outside 0-23"),
    ]);
}

#[test]
fn a_range_that_runs_backwards_is_refused() {
    assert_items_refused(&[
        ("5-1 * * * *", "minute", "5-1", REVERSED),
        ("* 22-6/2 * * *", "hour", "22-6/2", REVERSED),
        ("* * * NOV-FEB *", "month", "NOV-FEB", REVERSED),
        ("* * * * SAT-MON", "day-of-week", "SAT-MON", REVERSED),
        ("* * * * FRI-MON", "day-of-week", "FRI-MON", REVERSED),
        ("* * * * 5-0", "day-of-week", "5-0", REVERSED),
        ("* * * * 7-1", "day-of-week", "7-1", REVERSED),
    ]);
}

#[test]
fn names_are_refused_outside_their_own_field() {
    let (weekdays, months) = (
        "the name is not known here; use a number or one of SUN-SAT",
        "the name is not known here; use a number or one of JAN-DEC",
    );
    assert_items_refused(&[
        ("MON * * * *", "minute", "MON", NAMELESS),
        ("* 1-FEB * * *", "hour", "1-FEB", NAMELESS),
        ("* * JAN * *", "day-of-month", "JAN", NAMELESS),
        ("* * * MON *", "month", "MON", months),
        ("* * * JANUARY *", "month", "JANUARY", months),
        ("* * * * JUL", "day-of-week", "JUL", weekdays),
        ("* * * * MO", "day-of-week", "MO", weekdays),
        ("* * * * MON1", "day-of-week", "MON1", weekdays),
    ]);
}

#[test]
fn anything_after_an_item_is_refused() {
    assert_items_refused(&[
        ("*5 * * * *", "minute", "*5", TRAILING),
        ("** * * * *", "minute", "**", TRAILING),
        ("*-5 * * * *", "minute", "*-5", TRAILING),
        ("1-2-3 * * * *", "minute", "1-2-3", TRAILING),
        ("*/2/3 * * * *", "minute", "*/2/3", TRAILING),
        ("1/5-9 * * * *", "minute", "1/5-9", TRAILING),
        ("5x * * * *", "minute", "5x", TRAILING),
        ("5; * * * *", "minute", "5;", TRAILING),
        ("* * ?5 * *", "day-of-month", "?5", TRAILING),
        ("* * * * *\n", "day-of-week", "*\\n", TRAILING),
    ]);
}

#[test]
fn an_item_that_lacks_a_number_is_refused() {
    assert_items_refused(&[
        ("-9 * * * *", "minute", "-9", MALFORMED),
        ("5- * * * *", "minute", "5-", MALFORMED),
        ("- * * * *", "minute", "-", MALFORMED),
        ("*/ * * * *", "minute", "*/", MALFORMED),
        ("/5 * * * *", "minute", "/5", MALFORMED),
        ("*/-5 * * * *", "minute", "*/-5", MALFORMED),
        ("+5 * * * *", "minute", "+5", MALFORMED),
        ("$ * * * *", "minute", "$", MALFORMED),
        ("*/MON * * * *", "minute", "*/MON", MALFORMED),
    ]);
}

#[test]
fn blanks_never_join_what_they_separate() {
    assert_items_refused(&[("0 -9 * * * *", "minute", "-9", MALFORMED)]);
    for fused in ["*****", "0-9* * * *", "1 ,2 * * *"] {
        let reason = refusal(fused, Dialect::Unix5).reason().clone();
        assert!(
            matches!(reason, Reason::FieldCount { .. } | Reason::EmptyItem),
            "{fused:?}: {reason}"
        );
    }
}

#[test]
fn a_question_mark_is_refused_outside_the_day_fields() {
    let reason = "`?` stands for `*` in day-of-month and day-of-week only; write `*`";
    assert_items_refused(&[
        ("? * * * *", "minute", "?", reason),
        ("* ?/2 * * *", "hour", "?/2", reason),
        ("* * * ? *", "month", "?", reason),
        ("? * * * * *", "second", "?", reason),
    ]);
}

#[test]
fn relative_days_are_refused_outside_their_own_field() {
    assert_items_refused(&[
        ("L * * * *", "minute", "L", ELSEWHERE),
        ("* lw * * *", "hour", "lw", ELSEWHERE),
        ("* 15W * * *", "hour", "15W", ELSEWHERE),
        ("* * * L-3 *", "month", "L-3", ELSEWHERE),
        ("* * 5L * *", "day-of-month", "5L", ELSEWHERE),
        ("* * FRIL * *", "day-of-month", "FRIL", ELSEWHERE),
        ("* * 1#2 * *", "day-of-month", "1#2", ELSEWHERE),
        ("* * * * LW", "day-of-week", "LW", ELSEWHERE),
        ("* * * * l-3", "day-of-week", "l-3", ELSEWHERE),
        ("* * * * 5W", "day-of-week", "5W", ELSEWHERE),
        ("L * * * * *", "second", "L", ELSEWHERE),
    ]);
    let alone = "the last of which weekday? write it in front, as in `5L` or `FRIL`";
    assert_items_refused(&[("* * * * L", "day-of-week", "L", alone)]);
}

#[test]
fn relative_days_that_no_month_has_are_refused() {
    assert_items_refused(&[
        ("* * L-31 * *", "day-of-month", "L-31", "the number is outside 0-30"),
        ("* * 0W * *", "day-of-month", "0W", "the number is outside 1-31"),
        ("* * 32W * *", "day-of-month", "32W", "the number is outside 1-31"),
        ("* * * * 8L", "day-of-week", "8L", "the number is outside 0-7"),
        ("* * * * 8#1", "day-of-week", "8#1", "the number is outside 0-7"),
        ("* * * * 1#0", "day-of-week", "1#0", "the number is outside 1-5"),
        ("* * * * 1#6", "day-of-week", "1#6", "the number is outside 1-5"),
        ("* * L- * *", "day-of-month", "L-", MALFORMED),
        ("* * L-W * *", "day-of-month", "L-W", MALFORMED),
        ("* * L-3W * *", "day-of-month", "L-3W", TRAILING),
        ("* * 1-5W * *", "day-of-month", "1-5W", ELSEWHERE),
        ("* * * * #1", "day-of-week", "#1", MALFORMED),
        ("* * * * 1#", "day-of-week", "1#", MALFORMED),
        ("* * * * 1#2#3", "day-of-week", "1#2#3", TRAILING),
        ("* * * * 1-5#2", "day-of-week", "1-5#2", TRAILING),
        ("* * * * 5#2/2", "day-of-week", "5#2/2", TRAILING),
        ("* * * * 1-5L", "day-of-week", "1-5L", ELSEWHERE),
        ("* * L/2 * *", "day-of-month", "L/2", NAMELESS),
        ("* * LL * *", "day-of-month", "LL", NAMELESS),
        ("* * W * *", "day-of-month", "W", NAMELESS),
    ]);
}

#[test]
fn relative_days_are_refused_beside_a_star() {
    assert_items_refused(&[
        ("* * *,L * *", "day-of-month", "L", BESIDE),
        ("* * L,* * *", "day-of-month", "*", BESIDE),
        ("* * 15W,1,?/2 * *", "day-of-month", "?/2", BESIDE),
        ("* * * * */2,5L", "day-of-week", "5L", BESIDE),
        ("* * * * ?,1#1", "day-of-week", "1#1", BESIDE),
    ]);
}

#[test]
fn malformed_spreads_are_refused() {
    assert_items_refused(&[
        ("H- * * * *", "minute", "H-", SPREAD),
        ("H-5 * * * *", "minute", "H-5", SPREAD),
        ("H() * * * *", "minute", "H()", SPREAD),
        ("H(5) * * * *", "minute", "H(5)", SPREAD),
        ("H(0-29 * * * *", "minute", "H(0-29", SPREAD),
        ("H(0-29)/5 * * * *", "minute", "H(0-29)/5", SPREAD),
        ("h* * * * *", "minute", "h*", SPREAD),
        ("H(29-0) * * * *", "minute", "H(29-0)", REVERSED),
        ("H(0-60) * * * *", "minute", "H(0-60)", "the number is outside 0-59"),
        ("* * * * H(0-8)", "day-of-week", "H(0-8)", "the number is outside 0-7"),
        ("H(0-5-9) * * * *", "minute", "H(0-5-9)", TRAILING),
        ("H(-) * * * *", "minute", "H(-)", MALFORMED),
        ("H/ * * * *", "minute", "H/", MALFORMED),
        ("H/5/5 * * * *", "minute", "H/5/5", TRAILING),
        ("H/0 * * * *", "minute", "H/0", "a step of 0 selects nothing; use a step of 1 or more"),
        ("HH * * * *", "minute", "HH", NAMELESS),
        ("H5 * * * *", "minute", "H5", NAMELESS),
        ("1-H * * * *", "minute", "1-H", NAMELESS),
    ]);
}

#[test]
fn a_wrong_number_of_fields_is_refused_with_the_fields_that_are_meant() {
    let cases = [
        ("", 0),
        (" \t ", 0),
        ("*", 1),
        ("* * * *", 4),
        ("* * * * * * *", 7),
        ("* * * * * # nightly", 7),
        ("0 0 1 1 * * 2030", 7),
    ];
    for (text, found) in cases {
        for dialect in [Dialect::Unix5, Dialect::Seconds6, Dialect::Any] {
            let error = refusal(text, dialect);
            assert!(error.to_string().ends_with(&format!(", found {found}")), "{error}");
            assert_eq!((error.field(), error.item()), (None, None));
        }
    }
    let message = refusal("* * * * * *", Dialect::Unix5).to_string();
    assert_eq!(message, "expected 5 fields (minute hour day-of-month month day-of-week), found 6");
    let message = refusal("* * * * *", Dialect::Seconds6).to_string();
    assert_eq!(
        message,
        "expected 6 fields (second minute hour day-of-month month day-of-week), found 5"
    );
}

#[test]
fn characters_outside_ascii_are_refused_where_they_are() {
    assert_items_refused(&[
        ("0 0 1–5 * *", "day-of-month", "1–5", ASCII),
        ("0 0 * * LUN,MIÉ", "day-of-week", "MIÉ", ASCII),
        ("０ * * * * *", "second", "０", ASCII),
    ]);
    let joined = refusal("0\u{a0}0 1 1 *", Dialect::Unix5);
    assert_eq!(joined.to_string(), format!("\"0\\u{{a0}}0\": {ASCII}"));
}

#[test]
fn macros_that_cannot_be_are_refused_with_what_to_use_instead() {
    let unknown = "the macro is not known; use @yearly, @annually, @monthly, @weekly, @daily, \
                   @midnight or @hourly";
    let after = "nothing may follow a macro; remove the rest";
    let reboot = "\"@reboot\": `@reboot` is not supported because jobs belong to no machine; leave \
                  the schedule out and trigger the job when it should run";
    let every = "\"@every\": `@every` is not a cron expression; use `every = \"15m\"` in place of \
                 the schedule";
    assert_refused(&[
        ("@reboot", reboot),
        ("@every 5m", every),
        ("@every", every),
        ("@fortnightly", &format!("\"@fortnightly\": {unknown}")),
        ("@DAILY", &format!("\"@DAILY\": {unknown}")),
        ("@", &format!("\"@\": {unknown}")),
        ("@daily 5", &format!("\"5\": {after}")),
        ("@daily @daily", &format!("\"@daily\": {after}")),
        ("@daily * * * *", &format!("\"*\": {after}")),
    ]);
}

#[test]
fn the_first_wrong_item_from_the_left_is_the_one_reported() {
    let error = refusal("1,99,98 * 77 * X", Dialect::Any);
    assert_eq!((error.field(), error.item()), (Some(Field::Minute), Some("99")));
    assert_eq!(*error.reason(), Reason::OutOfRange { min: 0, max: 59 });
}

#[test]
fn a_text_beyond_the_limit_is_refused_unread() {
    let text = format!("{:width$}", "* * * * *", width = MAX_EXPRESSION_BYTES + 1);
    let message = refusal(&text, Dialect::Any).to_string();
    assert_eq!(message, "the expression is 1025 bytes long; at most 1024 are allowed");
}

#[test]
fn an_error_echoes_at_most_eighty_bytes_without_control_characters() {
    let exact = "9".repeat(MAX_ECHO_BYTES);
    let error = refusal(&format!("{exact} * * * *"), Dialect::Any);
    assert_eq!(error.item(), Some(exact.as_str()));

    let error = refusal(&format!("{exact}9 * * * *"), Dialect::Any);
    assert_eq!(error.item(), Some(format!("{}...", "9".repeat(MAX_ECHO_BYTES - 3)).as_str()));

    let error = refusal(&format!("\u{1b}[31m{} * * * *", "\u{7}".repeat(900)), Dialect::Any);
    let item = error.item().unwrap();
    assert!(item.starts_with("\\u{1b}[31m\\u{7}") && item.ends_with("..."), "{item}");
    assert!(item.len() <= MAX_ECHO_BYTES);

    let error = refusal(&format!("{} * * * *", "é".repeat(300)), Dialect::Any);
    assert!(error.item().unwrap().len() <= MAX_ECHO_BYTES);
    assert_eq!(*error.reason(), Reason::NotAscii);
}

#[test]
fn an_error_is_a_std_error_and_its_parts_can_be_asked_for() {
    let error = refusal("0 0 * * FRI-MON", Dialect::Unix5);
    let as_std: &dyn std::error::Error = &error;
    assert_eq!(
        as_std.to_string(),
        "day-of-week, item \"FRI-MON\": the range runs backwards; write it as two ranges"
    );
    assert_eq!(error.field(), Some(Field::DayOfWeek));
    assert_eq!(error.item(), Some("FRI-MON"));
    assert_eq!(*error.reason(), Reason::Reversed);
}
