//! C8, C9 and C10 by hand, at real clock changes.

use super::{at, parse};
use crate::cron::Dst;
use crate::zone::Zone;

/// Returns the next firings after `from`, as text.
fn fired(text: &str, zone: &str, dst: Dst, from: &str, count: usize) -> Vec<String> {
    let zone = Zone::parse(zone).unwrap();
    let firings = parse(text).iter_after(at(from), zone, dst);
    firings.take(count).map(|firing| firing.format("%FT%TZ").to_string()).collect()
}

fn assert_fired(zone: &str, table: &[(&str, Dst, &str, &[&str])]) {
    for (text, dst, from, expected) in table {
        let firings = fired(text, zone, *dst, from, expected.len());
        assert_eq!(firings, *expected, "{text:?} in {zone}, {dst:?}, from {from}");
    }
}

use Dst::{Skip, Vixie, Wall};

/// 2026-03-29: 02:00 becomes 03:00 at 01:00Z.
const GAP: &str = "2026-03-28T12:00:00Z";
/// 2026-10-25: 03:00 becomes 02:00 at 01:00Z.
const OVERLAP: &str = "2026-10-24T12:00:00Z";

#[test]
fn without_a_change_wall_time_is_utc_and_the_offset() {
    assert_fired(
        "Europe/Vienna",
        &[
            ("0 8 * * *", Vixie, "2026-01-01T00:00:00Z", &["2026-01-01T07:00:00Z"]),
            ("0 8 * * *", Vixie, "2026-07-01T00:00:00Z", &["2026-07-01T06:00:00Z"]),
            ("30 0 1 1 *", Skip, "2026-07-01T00:00:00Z", &["2026-12-31T23:30:00Z"]),
        ],
    );
    assert_fired(
        "Asia/Kathmandu",
        &[("0 0 * * *", Vixie, "2026-01-01T00:00:00Z", &["2026-01-01T18:15:00Z"])],
    );
}

#[test]
fn a_fixed_time_in_a_gap_fires_once_at_the_first_instant_after_it() {
    let (seam, next_day) = ("2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z");
    assert_fired(
        "Europe/Vienna",
        &[
            ("30 2 * * *", Vixie, GAP, &[seam, next_day]),
            ("30 2 * * *", Wall, GAP, &[seam, next_day]),
            ("30 2 * * *", Skip, GAP, &[next_day]),
            // Several in one gap, one firing.
            ("0,15,30,45 2 * * *", Vixie, GAP, &[seam, "2026-03-30T00:00:00Z"]),
            ("* 30 2 * * *", Vixie, GAP, &[seam, next_day]),
            // Merged with the regular firing at 03:00.
            ("0 2,3 * * *", Vixie, GAP, &[seam, "2026-03-30T00:00:00Z"]),
            ("0 3 * * *", Vixie, GAP, &[seam, "2026-03-30T01:00:00Z"]),
            ("0 2,3 * * *", Skip, GAP, &[seam, "2026-03-30T00:00:00Z"]),
            // The ends of the gap.
            ("0 2 * * *", Vixie, GAP, &[seam, "2026-03-30T00:00:00Z"]),
            ("59 59 1 * * *", Vixie, GAP, &["2026-03-29T00:59:59Z", "2026-03-29T23:59:59Z"]),
            ("59 59 2 * * *", Vixie, GAP, &[seam, "2026-03-30T00:59:59Z"]),
            ("59 59 2 * * *", Skip, GAP, &["2026-03-30T00:59:59Z"]),
        ],
    );
}

#[test]
fn a_wildcard_fires_at_real_instants_only() {
    assert_fired(
        "Europe/Vienna",
        &[
            (
                "*/30 * * * *",
                Vixie,
                "2026-03-29T00:00:00Z",
                &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
            ),
            // The hour from 2 to 3 does not exist.
            ("*/30 2 * * *", Vixie, GAP, &["2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z"]),
            ("30 */2 * * *", Wall, GAP, &["2026-03-28T13:30:00Z", "2026-03-28T15:30:00Z"]),
            (
                "30 */2 * * *",
                Vixie,
                "2026-03-28T23:00:00Z",
                &["2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z"],
            ),
        ],
    );
}

#[test]
fn a_wildcard_fires_in_both_passes_of_an_overlap() {
    let passes = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"];
    for dst in [Vixie, Skip, Wall] {
        assert_fired(
            "Europe/Vienna",
            &[(
                "*/60,30 2 * * *",
                dst,
                "2026-10-25T00:00:00Z",
                &[passes[0], "2026-10-25T01:00:00Z"],
            )],
        );
        assert_fired(
            "Europe/Vienna",
            &[("30 */2 * * *", dst, "2026-10-25T00:00:00Z", &passes[..2])],
        );
    }
    assert_fired(
        "Europe/Vienna",
        &[(
            "0 * * * *",
            Vixie,
            "2026-10-24T23:00:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        )],
    );
}

#[test]
fn a_fixed_time_in_an_overlap_fires_in_the_first_pass_only() {
    let (first, second, next_day) =
        ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z");
    assert_fired(
        "Europe/Vienna",
        &[
            ("30 2 * * *", Vixie, OVERLAP, &[first, next_day]),
            ("30 2 * * *", Skip, OVERLAP, &[first, next_day]),
            ("30 2 * * *", Wall, OVERLAP, &[first, second, next_day]),
            // From an instant within the second pass.
            ("30 2 * * *", Vixie, "2026-10-25T01:10:00Z", &[next_day]),
            ("30 2 * * *", Wall, "2026-10-25T01:10:00Z", &[second, next_day]),
            // The ends of the overlap.
            ("0 2 * * *", Vixie, OVERLAP, &["2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"]),
            ("0 3 * * *", Vixie, OVERLAP, &["2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"]),
            ("59 59 2 * * *", Vixie, OVERLAP, &["2026-10-25T00:59:59Z", "2026-10-26T01:59:59Z"]),
            ("0 2,3 * * *", Vixie, OVERLAP, &["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"]),
        ],
    );
}

#[test]
fn half_an_hour_is_a_gap_and_an_overlap_too() {
    // 2026-10-04: 02:00 becomes 02:30 at 15:30Z the day before; 2026-04-05: 02:00 becomes 01:30.
    assert_fired(
        "Australia/Lord_Howe",
        &[
            (
                "15 2 * * *",
                Vixie,
                "2026-10-03T00:00:00Z",
                &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
            ),
            ("15 2 * * *", Skip, "2026-10-03T00:00:00Z", &["2026-10-04T15:15:00Z"]),
            (
                "45 1 * * *",
                Vixie,
                "2026-04-04T00:00:00Z",
                &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
            ),
            (
                "*/15 1 * * *",
                Vixie,
                "2026-04-04T14:20:00Z",
                &[
                    "2026-04-04T14:30:00Z",
                    "2026-04-04T14:45:00Z",
                    "2026-04-04T15:00:00Z",
                    "2026-04-04T15:15:00Z",
                    "2026-04-05T14:30:00Z",
                ],
            ),
        ],
    );
}

#[test]
fn two_hours_at_once_are_one_gap() {
    // 2026-03-29 01:00Z: 01:00 becomes 03:00; 2026-10-25 01:00Z: 03:00 becomes 01:00.
    assert_fired(
        "Antarctica/Troll",
        &[
            (
                "30 1,2 * * *",
                Vixie,
                GAP,
                &["2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z", "2026-03-30T00:30:00Z"],
            ),
            (
                "30 1,2 * * *",
                Vixie,
                OVERLAP,
                &["2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
            ),
        ],
    );
}

#[test]
fn a_day_that_was_skipped_is_a_gap() {
    // Samoa had no 2011-12-30: at 10:00Z the 31st began.
    let seam = "2011-12-30T10:00:00Z";
    assert_fired(
        "Pacific/Apia",
        &[
            (
                "0 9 * * *",
                Vixie,
                "2011-12-29T12:00:00Z",
                &["2011-12-29T19:00:00Z", seam, "2011-12-30T19:00:00Z"],
            ),
            (
                "0 9 * * *",
                Skip,
                "2011-12-29T12:00:00Z",
                &["2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z"],
            ),
            ("0 0 * * *", Vixie, "2011-12-29T12:00:00Z", &[seam, "2011-12-31T10:00:00Z"]),
            ("0 12 30 12 *", Vixie, "2011-01-01T00:00:00Z", &[seam, "2012-12-29T22:00:00Z"]),
            ("0 12 30 12 *", Skip, "2011-01-01T00:00:00Z", &["2012-12-29T22:00:00Z"]),
            ("0 12 * * FRI#5", Vixie, "2011-12-01T00:00:00Z", &[seam]),
            ("*/30 12 30 12 *", Vixie, "2011-01-01T00:00:00Z", &["2012-12-29T22:00:00Z"]),
        ],
    );
}

#[test]
fn a_day_that_came_twice_is_an_overlap() {
    // Kwajalein went over the date line at the end of September 1969: the 30th came twice.
    let zone = Zone::parse("Pacific/Kwajalein").unwrap();
    let change = zone.first_change_s(at("1969-09-01T00:00:00Z").timestamp(), 0).unwrap();
    assert_eq!(change, at("1969-09-30T13:00:00Z").timestamp());
    let (first, second) = ("1969-09-30T01:00:00Z", "1969-10-01T00:00:00Z");
    assert_fired(
        "Pacific/Kwajalein",
        &[
            ("0 12 30 9 *", Vixie, "1969-01-01T00:00:00Z", &[first, "1970-10-01T00:00:00Z"]),
            ("0 12 30 9 *", Wall, "1969-01-01T00:00:00Z", &[first, second]),
            ("*/60 12 30 9 *", Vixie, "1969-01-01T00:00:00Z", &[first, second]),
        ],
    );
}

#[test]
fn midnight_can_be_missing() {
    for (zone, from, seam, next_day) in [
        ("Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"),
        ("Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"),
        (
            "America/Sao_Paulo",
            "2018-11-03T12:00:00Z",
            "2018-11-04T03:00:00Z",
            "2018-11-05T02:00:00Z",
        ),
        ("America/Havana", "2026-03-07T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
    ] {
        assert_fired(zone, &[("0 0 * * *", Vixie, from, &[seam, next_day])]);
        assert_fired(zone, &[("@daily", Skip, from, &[next_day])]);
        assert_fired(zone, &[("@daily", Wall, from, &[seam, next_day])]);
    }
}

#[test]
fn clocks_that_go_back_for_a_month_are_followed() {
    // Morocco leaves summer time for Ramadan: 2026-02-15 03:00 becomes 02:00, 2026-03-22 back.
    assert_fired(
        "Africa/Casablanca",
        &[
            (
                "30 2 * * *",
                Vixie,
                "2026-02-14T12:00:00Z",
                &["2026-02-15T01:30:00Z", "2026-02-16T02:30:00Z"],
            ),
            (
                "30 2 * * *",
                Vixie,
                "2026-03-21T12:00:00Z",
                &["2026-03-22T02:00:00Z", "2026-03-23T01:30:00Z"],
            ),
        ],
    );
}

#[test]
fn a_time_that_is_always_in_a_gap_is_looked_for_until_the_data_has_none() {
    // 02:30 on the second Sunday of March: New York's clocks never show it.
    let firings = fired("30 2 * 3 SUN#2", "America/New_York", Skip, "2026-01-01T00:00:00Z", 1);
    assert_eq!(firings, ["2100-03-14T07:30:00Z"], "the data ends with 2099");
    let firings = fired("30 2 * 3 SUN#2", "America/New_York", Vixie, "2026-01-01T00:00:00Z", 2);
    assert_eq!(firings, ["2026-03-08T07:00:00Z", "2027-03-14T07:00:00Z"]);
}
