//! Each rule finds its cases, and ignores similar valid ones.

use proptest::prelude::*;

use super::super::expression::findings_of;
use super::super::{Code, Severity};
use crate::cron::tests::naive::expressions;
use crate::cron::tests::{NAME, at, parse};
use crate::cron::{AnomalyKind, DayRule, Dst};
use crate::zone::Zone;

fn found(text: &str, zone: &str, dst: Dst) -> Vec<(Code, Severity)> {
    let zone = Zone::parse(zone).unwrap();
    let found = findings_of(text, NAME, zone, dst, None, at("2026-01-01T00:00:00Z")).unwrap();
    found.iter().map(|finding| (finding.code, finding.severity)).collect()
}

#[test]
fn each_rule_about_an_expression_finds_what_it_is_there_for() {
    use Code::{
        ClockChange, DayFields, EveryMinute, MissingDay, NeverFires, StepTooLarge, UnevenStep,
    };
    use Severity::{Error, Note, Warning};
    for (text, zone, dst, expected) in [
        ("0 0 30 2 *", "UTC", Dst::Vixie, (NeverFires, Error)),
        ("0 0 13 * FRI", "UTC", Dst::Vixie, (DayFields, Warning)),
        ("0 0 */2 * MON", "UTC", Dst::Vixie, (DayFields, Warning)),
        ("0 0 1-31 * MON", "UTC", Dst::Vixie, (DayFields, Warning)),
        ("0 0 L * 1#1", "UTC", Dst::Vixie, (DayFields, Warning)),
        ("* 2 * * *", "UTC", Dst::Vixie, (EveryMinute, Warning)),
        ("*/25 * * * *", "UTC", Dst::Vixie, (UnevenStep, Warning)),
        ("*/90 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("*/4294967296 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("0 */24 * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("*/60 0 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("50/10 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("30,0-10/11 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("H/60 * * * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("0 0 */31 * *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("0 0 1 */12 *", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("0 0 * * */7", "UTC", Dst::Vixie, (StepTooLarge, Warning)),
        ("0 */5 * * *", "UTC", Dst::Vixie, (UnevenStep, Warning)),
        ("*/7 * * * * *", "UTC", Dst::Vixie, (UnevenStep, Warning)),
        ("30 2 31 * *", "UTC", Dst::Vixie, (MissingDay, Warning)),
        ("0 0 29 2 *", "UTC", Dst::Vixie, (MissingDay, Warning)),
        ("30 2 * * *", "Europe/Vienna", Dst::Vixie, (ClockChange, Warning)),
        ("30 2 * * *", "Europe/Vienna", Dst::Skip, (ClockChange, Warning)),
        ("*/30 2 * * *", "Europe/Vienna", Dst::Vixie, (ClockChange, Warning)),
        // Back at 0:00, to 23:00, and forward at midnight to 1:00.
        ("30 23 * * *", "Africa/Cairo", Dst::Wall, (ClockChange, Warning)),
        ("30 23 * * *", "Africa/Cairo", Dst::Vixie, (ClockChange, Note)),
    ] {
        assert_eq!(found(text, zone, dst), [expected], "{text} in {zone}");
    }
}

#[test]
fn what_is_like_a_finding_and_sound_is_left_alone() {
    for text in [
        "0 8 * * MON-FRI",
        "0 0 13 * *",
        "0 0 ? * SAT",
        "* * * * *",
        "* */2 * * *",
        "*/15 * * * *",
        "0 */6 * * *",
        "5/25 * * * *",
        "*/30 * * * *",
        "5-5/1 * * * *",
        "0-30/30 * * * *",
        "0 0 */30 * *",
        "0 0 1 */6 *",
        "0 0 * * */6",
        "H/30 * * * *",
        "0 0 1,31 * *",
        "0 0 31 1,12 *",
        "0 0 L * *",
        "@daily",
        "H 3 * * *",
    ] {
        assert_eq!(found(text, "UTC", Dst::Vixie), [], "{text}");
    }
    // Every quarter of an hour is unaffected; noon exists every day.
    for text in ["*/15 * * * *", "0 12 * * *", "30 * * * *"] {
        assert_eq!(found(text, "Europe/Vienna", Dst::Wall), [], "{text}");
    }
}

#[test]
fn a_finding_says_what_is_so_and_what_to_write_instead() {
    let zone = Zone::parse("Europe/Vienna").unwrap();
    let now = at("2026-01-01T00:00:00Z");
    let message = |text: &str| {
        let found = findings_of(text, NAME, zone, Dst::Vixie, None, now).unwrap();
        format!("{} | {}", found[0].message, found[0].instead)
    };
    for (text, part) in [
        (
            "30 2 * * *",
            "2026-03-29 02:30:00 is not there on the clocks of Europe/Vienna: fires at 2026-03-29T01:00:00Z instead; 3 more changes within two years",
        ),
        ("*/25 * * * *", "the last step is 10m in place of 25m | every = \"25m\""),
        (
            "*/90 * * * *",
            "*/90 in the minute selects 0 alone: the step leads past the end of the range | 0, or another schedule: every = \"90m\"",
        ),
        (
            "0 4 5 */13 *",
            "*/13 in the month selects 1 alone: the step leads past the end of the range | 1, or a smaller step",
        ),
        ("0 4 * * 5/3", "5/3 in the day-of-week selects 5 alone"),
        // Longer than any period.
        ("*/4294967296 * * * *", "| 0, or a smaller step"),
        ("30 4 31 * *", "it does not fire in February, April, June, September, November"),
        (
            "0 4 13 * FRI",
            "a day fires that either selects (Fri 2026-01-02 04:00:00, Fri 2026-01-09 04:00:00, \
             Tue 2026-01-13 04:00:00), not only one that both select (Fri 2026-02-13 04:00:00, \
             Fri 2026-03-13 04:00:00, Fri 2026-11-13 04:00:00) | days = \"either\" to keep this, or \
             days = \"both\"",
        ),
        (
            "0 4 */2 * MON",
            "only a day fires that both select (Mon 2026-01-05 04:00:00, Mon 2026-01-19 04:00:00, \
             Mon 2026-02-09 04:00:00), since one begins with *, not each that either selects \
             (Thu 2026-01-01 04:00:00, Sat 2026-01-03 04:00:00, Mon 2026-01-05 04:00:00) | \
             days = \"both\" to keep this, or days = \"either\"",
        ),
        ("0 4 30 2 MON", "not only one that both select (never)"),
        ("0 0 29 2 *", "it fires in leap years alone"),
        ("* 4 * * *", "0 4 …"),
    ] {
        assert!(message(text).contains(part), "{text}: {}", message(text));
    }
}

/// Steps of any length parse: in the parser, in lint and in the search for the next firing.
#[test]
fn a_step_that_no_integer_holds_selects_the_first_number_and_is_found_in_each_field() {
    let zone = Zone::parse("Europe/Vienna").unwrap();
    let now = at("2026-01-01T00:00:00Z");
    for step in [
        "60",
        "255",
        "256",
        "65536",
        "4294967295",
        "4294967296",
        "99999999999999999999",
        &"9".repeat(900),
    ] {
        for field in 0..6 {
            for start in ["*", "H", "1", "1-5"] {
                let mut fields = ["0", "0", "0", "*", "*", "*"].map(str::to_owned);
                fields[field] = format!("{start}/{step}");
                let text = fields.join(" ");
                let found = findings_of(&text, NAME, zone, Dst::Vixie, None, now).unwrap();
                let finding = found.iter().find(|finding| finding.code == Code::StepTooLarge);
                let finding = finding.unwrap_or_else(|| panic!("{text}"));
                assert!(finding.message.len() < 200 && finding.instead.len() < 100, "{finding:?}");
                assert!(parse(&text).next_after(now, zone, Dst::Vixie).is_some(), "{text}");
            }
        }
    }
}

#[test]
fn two_restricting_day_fields_are_a_finding_until_the_job_says_days() {
    let now = at("2026-01-01T00:00:00Z");
    for text in ["0 0 13 * FRI", "0 0 */2 * MON", "0 0 1-31 * MON", "0 0 L * 1#1", "0 0 H * */2"] {
        let found = |days| {
            findings_of(text, NAME, Zone::UTC, Dst::Vixie, days, now)
                .unwrap()
                .iter()
                .any(|finding| finding.code == Code::DayFields)
        };
        assert!(found(None), "{text}");
        assert!(!found(Some(DayRule::Both)) && !found(Some(DayRule::Either)), "{text}");
    }
    // The field decides whether it ever fires.
    let found = |days| findings_of("0 0 30 2 MON", NAME, Zone::UTC, Dst::Vixie, days, now).unwrap();
    assert_eq!(found(Some(DayRule::Both))[0].code, Code::NeverFires);
    assert_eq!(found(Some(DayRule::Either)), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Findings are true: a clock change has one exactly where an anomaly is more than a second pass, a day exactly
    /// where a month lacks it.
    #[test]
    fn a_finding_about_the_clocks_is_there_where_an_anomaly_is(naive in expressions(), forward in any::<bool>()) {
        let text = naive.to_string();
        let zone = Zone::parse(if forward { "Europe/Vienna" } else { "Australia/Lord_Howe" }).unwrap();
        let now = at("2026-01-01T00:00:00Z");
        let expression = parse(&text);
        let found = findings_of(&text, NAME, zone, Dst::Vixie, None, now).unwrap();
        let finding = found.iter().find(|finding| finding.code == Code::ClockChange);
        let anomalies = expression.anomalies(now, at("2028-01-01T00:00:00Z"), zone, Dst::Vixie);
        let worse = anomalies.iter().any(|anomaly| anomaly.kind != AnomalyKind::FirstPass);
        if let Some(finding) = finding {
            prop_assert_eq!(finding.severity == Severity::Warning, worse, "{}", text);
        } else if !expression.is_wildcard() {
            let never = expression.next_after(now, zone, Dst::Vixie).is_none();
            prop_assert!(anomalies.is_empty() || never, "{}", text);
        }
        for finding in &found {
            prop_assert!(finding.message.len() < 1_500 && !finding.message.contains(char::is_control));
        }
    }
}
