//! Mistyped names, and the assumptions of the search, checked over all the data.

use super::*;

fn seconds(text: &str) -> i64 {
    text.parse::<DateTime<Utc>>().unwrap().timestamp()
}

#[test]
fn a_zone_is_known_by_its_name_as_iana_writes_it() {
    for name in ["UTC", "Etc/UTC", "Europe/Vienna", "America/Argentina/Ushuaia", "US/Eastern"] {
        assert_eq!(Zone::parse(name).unwrap().name(), name);
    }
    assert_eq!(Zone::parse("UTC"), Ok(Zone::UTC));
    assert_eq!(Zone::all().count(), TZ_VARIANTS.len());
}

#[test]
fn an_unknown_name_is_refused_with_the_near_ones() {
    for (name, message) in [
        ("Europe/Viena", "\"Europe/Viena\" is not a time zone; did you mean Europe/Vienna?"),
        ("europe/vienna", "\"europe/vienna\" is not a time zone; did you mean Europe/Vienna?"),
        ("Vienna", "\"Vienna\" is not a time zone; did you mean Europe/Vienna?"),
        ("New York", "\"New York\" is not a time zone; did you mean America/New_York?"),
        ("utc", "\"utc\" is not a time zone; did you mean UTC or Etc/UTC?"),
        (
            "Mars/Olympus_Mons",
            "\"Mars/Olympus_Mons\" is not a time zone; write a name of the IANA database such as \
             Europe/Vienna, or UTC",
        ),
        (
            "",
            "\"\" is not a time zone; write a name of the IANA database such as Europe/Vienna, or UTC",
        ),
    ] {
        assert_eq!(Zone::parse(name).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_suggestion_is_never_on_the_other_side_of_utc() {
    for name in ["GMT+1", "UTC+2", "Etc/GMT+15", "gmt-1"] {
        let near = Zone::parse(name).unwrap_err().near;
        assert!(!near.iter().any(|known| known.contains(['+', '-'])), "{near:?}");
    }
}

#[test]
fn what_is_said_about_a_long_name_is_short() {
    let odd = ["\u{fffd}".repeat(100), "\u{10ffff}".repeat(100), "\u{1f600}".repeat(100)];
    for name in ["x".repeat(100_000), "\u{1b}[2J".repeat(1_000), "ä".repeat(50)].iter().chain(&odd)
    {
        let message = Zone::parse(name).unwrap_err().to_string();
        assert!(message.len() <= 300 && !message.contains('\u{1b}'), "{message}");
    }
}

#[test]
fn a_change_is_found_to_the_second() {
    let vienna = Zone::parse("Europe/Vienna").unwrap();
    let (winter, change) = (seconds("2026-01-01T00:00:00Z"), seconds("2026-03-29T01:00:00Z"));
    assert_eq!((vienna.offset_s(change - 1), vienna.offset_s(change)), (3600, 7200));
    assert_eq!(vienna.first_change_s(winter, change + 86_400), Some(change));
    assert_eq!(vienna.first_change_s(change - 1, change), Some(change));
    assert_eq!(vienna.first_change_s(change, change + 86_400), None);
    assert_eq!(vienna.first_change_s(winter, change - 1), None);
    assert_eq!(vienna.first_change_s(change, winter), None);
    assert_eq!(Zone::UTC.first_change_s(winter, change), None);
}

/// Recife had summer time for a week, the shortest known span.
#[test]
fn a_change_that_was_soon_taken_back_is_found_too() {
    let recife = Zone::parse("America/Recife").unwrap();
    let (there, back) = (seconds("2000-10-08T03:00:00Z"), seconds("2000-10-15T02:00:00Z"));
    for days in 1..40 {
        let from = there - days * 86_400;
        assert_eq!(recife.first_change_s(from, back + 40 * 86_400), Some(there), "{days} days");
    }
    assert_eq!(recife.first_change_s(there, back + 86_400), Some(back));
}

#[test]
fn the_ends_of_time_have_an_offset() {
    for zone in Zone::all() {
        for at_s in [i64::MIN, i64::MAX, -8_334_601_228_800, 8_210_266_876_799] {
            assert!(zone.offset_s(at_s).abs() <= FARTHEST_OFFSET_S, "{zone}");
        }
    }
}

/// The assumptions of the search: if data broke them, firings could be lost.
#[test]
fn no_zone_changes_sooner_farther_or_further_than_is_relied_on() {
    // From the first to the last known change, in steps no longer than the shortest span; one of two steps is
    // refused.
    let (first, last) = (seconds("1840-01-01T00:00:00Z"), seconds("2102-01-01T00:00:00Z"));
    for zone in Zone::all() {
        let (mut offset_s, mut since_s) = (zone.offset_s(first), first);
        for at_s in (first..last).step_by(PROBE_STEP_S as usize) {
            let now_s = zone.offset_s(at_s);
            assert!(now_s.abs() <= FARTHEST_OFFSET_S, "{zone}");
            if now_s == offset_s {
                continue;
            }
            let change_s = zone.bisect(offset_s, at_s - PROBE_STEP_S, at_s);
            assert!(change_s - since_s >= MIN_OFFSET_SPAN_S, "{zone} at {change_s}");
            assert!(offset_s - now_s <= LONGEST_REPETITION_S, "{zone} at {change_s}");
            (offset_s, since_s) = (now_s, change_s);
        }
    }
}

#[test]
fn the_release_of_the_data_is_a_year_and_a_letter() {
    let (year, letter) = tz_data_version().split_at(4);
    assert!(year.parse::<u16>().unwrap() >= 2025, "{year}");
    assert!(letter.chars().all(|c| c.is_ascii_lowercase()) && letter.len() == 1, "{letter}");
}
