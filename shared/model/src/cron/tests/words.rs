//! Expressions in words.

use crate::cron::{DayRule, describe};

#[test]
fn an_expression_is_read_as_a_person_would_say_it() {
    for (text, words) in [
        ("* * * * *", "every minute"),
        ("*/2 * * * *", "every second minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0-59/15 * * * *", "every 15 minutes"),
        ("*/10 9-17 * * MON-FRI", "every 10 minutes between 09:00 and 17:59 from Monday to Friday"),
        ("* 3 * * *", "every minute between 03:00 and 03:59"),
        ("0 * * * *", "every hour at :00"),
        ("5,35 * * * *", "every hour at :05 and :35"),
        ("15 */6 * * *", "every 6 hours at :15"),
        ("30 8-18 * * *", "every hour at :30, from 08:30 to 18:30"),
        ("0 1 * * *", "every day at 01:00"),
        ("0 1,13 * * *", "every day at 01:00 and 13:00"),
        ("@daily", "every day at 00:00"),
        ("30 7 * * MON-FRI", "at 07:30 from Monday to Friday"),
        ("30 7 * * 0", "at 07:30 on Sundays"),
        ("30 7 * * SAT,SUN", "at 07:30 on Saturdays and Sundays"),
        ("0 22 * * FRI-SUN", "at 22:00 from Friday to Sunday"),
        ("0 1 1 * *", "at 01:00 on day 1 of the month"),
        ("0 1 1,15 * *", "at 01:00 on days 1 and 15 of the month"),
        ("0 1 1-7 * *", "at 01:00 on days 1 to 7 of the month"),
        ("0 0 1 1 *", "at 00:00 on day 1 of January"),
        ("0 0 1 */3 *", "at 00:00 on day 1 of the month in January, April, July and October"),
        ("0 6 * MAR-MAY *", "at 06:00 every day in March to May"),
        ("0 6 * * 1#2", "at 06:00 on the second Monday of the month"),
        ("0 6 * * FRIL", "at 06:00 on the last Friday of the month"),
        ("0 6 L * *", "at 06:00 on the last day of the month"),
        ("0 6 L-3 2 *", "at 06:00 3 days before the last day of February"),
        ("0 6 LW * *", "at 06:00 on the last Monday to Friday of the month"),
        ("0 6 15W * *", "at 06:00 on the Monday to Friday nearest to day 15 of the month"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("30 * * * * *", "every minute at second 30"),
        ("30 5 7 * * *", "every day at 07:05:30"),
    ] {
        assert_eq!(describe(text, "job", None).as_deref(), Some(words), "{text}");
    }
}

#[test]
fn the_rule_of_two_day_fields_is_in_the_words() {
    let words = |days| describe("0 6 13 * FRI", "job", days).unwrap();
    assert_eq!(words(Some(DayRule::Both)), "at 06:00 on day 13 of the month, but only on Fridays");
    let either = "at 06:00 on day 13 of the month, and also on Fridays";
    assert_eq!(words(Some(DayRule::Either)), either);
    assert_eq!(words(None), either, "as in Vixie's cron");
    for (text, expected) in [
        ("0 6 13 6 FRI", "at 06:00 on day 13 of June, and also on Fridays in June"),
        (
            "0 6 13 JUN,JUL FRIL",
            "at 06:00 on day 13 of the month in June and July, and also on the last Friday of the month in June and July",
        ),
    ] {
        assert_eq!(describe(text, "job", Some(DayRule::Either)).as_deref(), Some(expected));
    }
}

#[test]
fn the_numbers_of_h_are_those_of_the_job() {
    let words = |name| describe("H H * * *", name, None).unwrap();
    assert_eq!(words("a"), words("a"));
    assert_ne!(words("billing"), words("catalogue"));
    assert!(words("a").starts_with("every day at "));
}

#[test]
fn what_would_take_too_many_words_keeps_its_text() {
    for text in [
        "1,2,4,8,16 * * * *",
        "*/7 * * * *",
        "0 1,3,9,17,21 * * *",
        "0 1 1,L * *",
        "0 1 */2 * *",
        "*/5 1,9 * * *",
        "5/20 * * * * *",
        "0 1 * * MON,WED,THU,SAT,SUN",
        "not cron",
        "@reboot",
        "61 * * * *",
    ] {
        assert_eq!(describe(text, "job", None), None, "{text}");
    }
}
