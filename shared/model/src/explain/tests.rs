use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::cron::Dst;
use crate::job::{Exclusions, Schedule, ScheduleConstraints};
use crate::plan::Timetable;
use crate::zone::Zone;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn seconds(after: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + after, 0).unwrap()
}

fn timetable(schedule: &Schedule) -> Timetable {
    Timetable::new("a.b", schedule, Zone::UTC, Dst::default(), None).unwrap()
}

fn every(number: i32, from: DateTime<Utc>, period: u64) -> Revision {
    let schedule = Schedule::every(Duration::from_secs(period));
    Revision { number, from, timetable: timetable(&schedule) }
}

fn cron(number: i32, from: &str, expression: &str) -> Revision {
    let schedule = Schedule::Cron { expression: expression.to_owned() };
    Revision { number, from: at(from), timetable: timetable(&schedule) }
}

fn instants(stretch: &FiringPage) -> Vec<DateTime<Utc>> {
    stretch.firings.iter().map(|nominal| nominal.at).collect()
}

#[test]
fn a_change_of_the_schedule_belongs_to_the_old_one_and_the_new_one_begins_after_it() {
    let history = ScheduleHistory::new(
        vec![
            cron(2, "2026-01-02T08:00:00Z", "0 9 * * *"),
            cron(1, "2026-01-01T00:00:00Z", "0 8 * * *"),
        ],
        Some(at("2026-01-03T09:00:00Z")),
    );
    let all = history.firings(at("2025-12-01T00:00:00Z"), at("2027-01-01T00:00:00Z"), 100);
    let expected = [
        ("2026-01-01T08:00:00Z", 1),
        ("2026-01-02T08:00:00Z", 1),
        ("2026-01-02T09:00:00Z", 2),
        ("2026-01-03T09:00:00Z", 2),
    ];
    let found: Vec<_> = all.firings.iter().map(|n| (n.at, n.revision)).collect();
    assert_eq!(found, expected.map(|(text, number)| (at(text), Some(number))));
    assert_eq!(all.firings[0].key, "cron-2026-01-01T08:00:00Z");
    assert_eq!(history.before(at("2026-01-02T09:00:00Z")), Some(at("2026-01-02T08:00:00Z")));
    assert_eq!(history.before(at("2027-01-01T00:00:00Z")), Some(at("2026-01-03T09:00:00Z")));
    assert_eq!(history.after(at("2026-01-02T08:00:00Z")), Some(at("2026-01-02T09:00:00Z")));
    assert_eq!(history.after(at("2026-01-03T09:00:00Z")), None);
    assert_eq!(history.before(at("2026-01-01T08:00:00Z")), None, "the job was not there yet");
}

#[test]
fn a_job_that_fires_once_has_its_instant_even_if_that_was_past_and_only_once() {
    let once = |number, from| Revision {
        number,
        from,
        timetable: timetable(&Schedule::At { at: seconds(10).into() }),
    };
    let history = ScheduleHistory::new(vec![once(1, seconds(20)), once(2, seconds(30))], None);
    let all = history.firings(seconds(0), seconds(100), 10);
    assert_eq!(instants(&all), [seconds(10)]);
    assert_eq!(history.at(seconds(10)).unwrap().revision, Some(1));
    let ahead = ScheduleHistory::new(vec![once(1, seconds(0)), every(2, seconds(5), 60)], None);
    assert_eq!(ahead.at(seconds(10)), None, "it was given up before");
}

#[test]
fn a_stretch_with_more_firings_than_are_wanted_says_where_it_goes_on() {
    let history = ScheduleHistory::new(vec![every(1, seconds(0), 1)], None);
    let some = history.firings(seconds(5), seconds(1_000_000_000), 3);
    assert_eq!(instants(&some), [seconds(5), seconds(6), seconds(7)]);
    assert_eq!(some.next, Some(seconds(8)));
    assert_eq!(history.firings(seconds(5), seconds(7), 3).next, None);
}

#[test]
fn what_was_claimed_and_no_schedule_has_is_listed_in_its_place_once_and_page_by_page() {
    let history = ScheduleHistory::new(vec![every(1, seconds(9), 10)], None);
    let key = |after: i64| format!("every-{}", seconds(after).format("%FT%TZ"));
    // Two from before the job, one that the schedule has as well, one that it does not have.
    let claimed: Vec<_> = [-20, -10, 20, 25].map(|after| (seconds(after), key(after))).into();
    let expected =
        [(-20, None), (-10, None), (10, Some(1)), (20, Some(1)), (25, None), (30, Some(1))];
    for limit in 1..8 {
        let (mut found, mut from) = (Vec::new(), Some(seconds(-100)));
        while let Some(begin) = from {
            let of_page = claimed.iter().filter(|(at, _)| *at >= begin).take(limit + 1);
            let page = history.firings(begin, seconds(35), limit);
            let page = page.with_claimed(of_page.cloned().collect(), limit);
            assert!(page.firings.len() <= limit);
            found.extend(page.firings.iter().map(|firing| (firing.at, firing.revision)));
            assert!(page.next.is_none_or(|next| next > begin), "it goes on");
            from = page.next;
        }
        assert_eq!(found, expected.map(|(after, number)| (seconds(after), number)), "{limit}");
    }
}

#[test]
fn the_firing_before_is_found_however_long_ago() {
    for (expression, before, expected) in [
        ("0 0 29 2 *", "2028-02-28T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("* * * * * *", "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00Z"),
        ("* * * * * *", "2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z"),
        ("*/7 3 1 1 *", "2026-12-31T00:00:00Z", "2026-01-01T03:56:00Z"),
    ] {
        let history = ScheduleHistory::new(vec![cron(1, "2001-01-01T00:00:00Z", expression)], None);
        assert_eq!(history.before(at(before)), Some(at(expected)), "{expression}");
    }
}

#[test]
fn an_instant_that_is_no_firing_says_what_it_is() {
    let old = cron(4, "2026-01-01T00:00:00Z", "0 8 * * *");
    let first = Revision { number: 1, ..old.clone() };
    let history = |revision| ScheduleHistory::new(vec![revision], Some(at("2026-02-01T00:00:00Z")));
    for (instant, revision, expected) in [
        ("2026-01-05T08:00:01Z", &first, NotAFiring::Between),
        ("2026-01-01T00:00:00Z", &first, NotAFiring::BeforeJob),
        ("2026-01-01T00:00:00Z", &old, NotAFiring::BeforeRecords),
        ("2026-02-01T00:00:01Z", &old, NotAFiring::AfterDeletion),
    ] {
        assert_eq!(
            classify_instant(at(instant), &history(revision.clone())),
            expected,
            "{instant}"
        );
    }
}

fn gap(first: i64, last: i64, reason: &str) -> GapRecord {
    GapRecord {
        first: seconds(first),
        last: seconds(last),
        reason: reason.to_owned(),
        actor: Some("ann".to_owned()),
        why: Some("audit".to_owned()),
        into_key: Some("every-…".to_owned()),
    }
}

#[test]
fn an_execution_comes_before_a_gap_and_a_gap_before_the_job() {
    let job = JobSnapshot { next_fire_at: Some(seconds(50)), ..JobSnapshot::default() };
    let ran = ExecutionRecord { state: State::Succeeded, skip_reason: None, held: false };
    let gaps = [gap(10, 20, "paused"), gap(30, 40, "outside_window, at least")];
    let of = |after, execution| disposition(seconds(after), execution, &gaps, &job, seconds(60));
    assert_eq!(of(15, Some(&ran)), Disposition::Ran);
    let by_ann = Pause { actor: Some("ann".to_owned()), why: Some("audit".to_owned()) };
    assert_eq!(of(20, None), Disposition::Paused(by_ann));
    assert_eq!(of(30, None), Disposition::NotRun("outside_window".to_owned()));
    assert_eq!(of(25, None), Disposition::Unknown(UnknownReason::Unaccounted));
    assert_eq!(of(50, None), Disposition::Due);
    assert_eq!(of(61, None), Disposition::NotYet);
}

#[test]
fn an_excluded_firing_is_told_as_such_before_its_gap_is_there_and_within_a_longer_one() {
    let day = |text: &str| Exclusions::from_texts(&[text]).unwrap();
    let constraints =
        ScheduleConstraints { exclude: day("2026-01-02"), ..ScheduleConstraints::default() };
    let bare = cron(1, "2026-01-01T00:00:00Z", "0 8 * * *");
    let table = bare.timetable.clone().with_constraints(&constraints, "a.b");
    let history = ScheduleHistory::new(vec![Revision { timetable: table, ..bare }], None);
    let all = history.firings(at("2026-01-01T00:00:00Z"), at("2026-01-03T09:00:00Z"), 10);
    assert_eq!(all.firings.len(), 3, "the excluded one has its time all the same");
    let job =
        JobSnapshot { next_fire_at: Some(at("2026-01-05T08:00:00Z")), ..JobSnapshot::default() };
    let now = at("2026-01-04T09:00:00Z");
    let over = |reason: &str| GapRecord {
        first: at("2026-01-01T08:00:00Z"),
        last: at("2026-01-03T08:00:00Z"),
        ..gap(0, 0, reason)
    };
    let excluded = Disposition::NotRun("excluded".to_owned());
    for (gaps, others) in [
        (vec![over("outside_window")], Disposition::NotRun("outside_window".to_owned())),
        // Excluded days say nothing about the firings around them.
        (vec![over("excluded")], Disposition::Unknown(UnknownReason::Unaccounted)),
        (vec![], Disposition::Unknown(UnknownReason::Unaccounted)),
    ] {
        for (instant, expected) in
            [("2026-01-01", &others), ("2026-01-02", &excluded), ("2026-01-03", &others)]
        {
            let instant = at(&format!("{instant}T08:00:00Z"));
            let found = nominal_disposition(instant, &history, None, &gaps, (&job, now));
            assert_eq!(&found, expected, "{instant} {gaps:?}");
        }
    }
    let ran = ExecutionRecord { state: State::Succeeded, skip_reason: None, held: false };
    let by_hand =
        nominal_disposition(at("2026-01-02T08:00:00Z"), &history, Some(&ran), &[], (&job, now));
    assert_eq!(by_hand, Disposition::Ran);
}

#[test]
fn a_spread_firing_is_not_due_at_its_nominal_time() {
    let job = JobSnapshot {
        next_fire_at: Some(seconds(10)),
        due_at: Some(seconds(25)),
        ..JobSnapshot::default()
    };
    let of = |now| disposition(seconds(10), None, &[], &job, seconds(now));
    assert_eq!((of(24), of(25)), (Disposition::NotYet, Disposition::Due));
}

#[test]
fn what_has_no_record_is_told_by_the_job() {
    let cursor = JobSnapshot { next_fire_at: Some(seconds(10)), ..JobSnapshot::default() };
    let paused = JobSnapshot { paused: Some(Pause::default()), ..cursor.clone() };
    let held = JobSnapshot { held: Some("the clock was set".to_owned()), ..cursor.clone() };
    let ended = JobSnapshot { planned_until: Some(seconds(9)), ..JobSnapshot::default() };
    let pruned = JobSnapshot { pruned_before: Some(seconds(8)), ..cursor.clone() };
    let of = |after, job: &JobSnapshot| disposition(seconds(after), None, &[], job, seconds(20));
    assert_eq!(of(10, &cursor), Disposition::Due);
    assert_eq!(of(10, &paused), Disposition::Paused(Pause::default()));
    assert_eq!(of(21, &paused), Disposition::NotYet);
    assert_eq!(of(10, &held), Disposition::Held("the clock was set".to_owned()));
    assert_eq!(of(10, &ended), Disposition::Ended);
    assert_eq!(of(9, &ended), Disposition::Unknown(UnknownReason::Unaccounted));
    assert_eq!(of(7, &pruned), Disposition::Unknown(UnknownReason::Pruned));
    assert_eq!(of(8, &pruned), Disposition::Unknown(UnknownReason::Unaccounted));
}

proptest! {
    /// Second by second, over successive schedules.
    #[test]
    fn the_firings_of_a_history_are_those_of_a_walk(
        changes in prop::collection::vec((1_i64..40, 1_u64..20), 1..6),
        from in -20_i64..150, length in 0_i64..200, limit in 1_usize..30,
    ) {
        let mut begin = 0;
        let revisions: Vec<_> = changes.iter().zip(1..).map(|((after, period), number)| {
            begin += after;
            (seconds(begin), *period, number)
        }).collect();
        let end = seconds(180);
        let history = ScheduleHistory::new(
            revisions.iter().map(|(from, period, number)| every(*number, *from, *period)).collect(),
            Some(end),
        );
        let walk: Vec<_> = (from..=from + length).map(seconds).filter(|second| {
            let now = revisions.iter().rfind(|(begin, ..)| begin < second);
            *second <= end && now.is_some_and(|(_, period, _)| second.timestamp() % *period as i64 == 0)
        }).collect();
        let found = history.firings(seconds(from), seconds(from + length), limit);
        prop_assert_eq!(instants(&found), walk.iter().copied().take(limit).collect::<Vec<_>>());
        prop_assert_eq!(found.next, walk.get(limit).copied());
        let all = history.firings(seconds(-100), seconds(1_000), 10_000);
        let before = instants(&all).into_iter().rfind(|firing| *firing < seconds(from));
        prop_assert_eq!(history.before(seconds(from)), before);
    }
}
