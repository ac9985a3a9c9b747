//! What opens an incident of a check, what does not, and when it is looked at again.

use super::*;
use crate::cron::{Dialect, Expression};
use crate::monitor::{Cause, Change};

fn at(seconds: i64) -> DateTime<Utc> {
    // A midnight of UTC.
    DateTime::from_timestamp(1_800_057_600 + seconds, 0).unwrap()
}

/// Pings have been accepted for long, without a pause.
const UP: Endpoint = Endpoint {
    paused_from: None,
    up_since: DateTime::UNIX_EPOCH,
    seen_at: DateTime::<Utc>::MAX_UTC,
};

/// Pings are accepted, but for a pause.
fn paused(from: i64, until: i64) -> Endpoint {
    Endpoint { paused_from: Some(at(from)), up_since: at(until), ..UP }
}

fn ping(id: i64, seconds: i64, kind: PingKind) -> Ping {
    Ping { id, at: at(seconds), kind, exit_code: None, rid: None, body: None, agent: None }
}

fn run(number: u128, ping: Ping) -> Ping {
    Ping { rid: Some(Uuid::from_u128(number)), ..ping }
}

fn check(cadence: Cadence, pings: Vec<Ping>) -> Check {
    let expression = match &cadence {
        Cadence::Every(_) => None,
        Cadence::Schedule { expression, .. } => {
            Some(Expression::parse(expression, Dialect::Any, "backup").unwrap())
        }
    };
    Check {
        spec: CheckSpec {
            name: "backup".into(),
            cadence,
            grace: Duration::from_mins(10),
            early_by: None,
            max_runtime: None,
            alert_after: None,
            recover_after: None,
            remind_every: None,
            severity: None,
            labels: BTreeMap::new(),
            key: None,
        },
        expression,
        is_paused: false,
        changed_at: at(-86_400),
        deleted_at: None,
        endpoint: Some(UP),
        pings,
    }
}

fn hourly(pings: Vec<Ping>) -> Check {
    check(Cadence::Every(Duration::from_hours(1)), pings)
}

fn nightly(pings: Vec<Ping>) -> Check {
    check(Cadence::Schedule { expression: "0 2 * * *".into(), zone: Zone::UTC }, pings)
}

fn check_by(expression: &str) -> Check {
    let success = ping(1, 0, PingKind::Success);
    check(Cadence::Schedule { expression: expression.into(), zone: Zone::UTC }, vec![success])
}

/// Judges at an instant, and again at once, which finds nothing new.
fn judged(check: &Check, memory: &CheckMemory, seconds: i64) -> CheckJudgement {
    let judgement = judge(check, memory, at(seconds));
    let again = judge(check, &judgement.memory, at(seconds));
    assert_eq!((&again.memory, &again.change), (&judgement.memory, &None));
    assert!(judgement.next_check.is_none_or(|next| next > at(seconds)), "{judgement:?}");
    judgement
}

fn cause(judgement: &CheckJudgement) -> Option<(Cause, u32)> {
    match &judgement.change {
        Some(Change::Violated { cause, occurrences, .. }) => Some((*cause, *occurrences)),
        _ => None,
    }
}

const NEW: CheckMemory = CheckMemory {
    violations: 0,
    violated_at: None,
    counted: Vec::new(),
    settled_to: None,
    is_open: false,
};

#[test]
fn a_missing_ping_is_noticed_at_its_deadline_and_counts_once() {
    let check = hourly(vec![ping(1, 0, PingKind::Success)]);
    let before = judged(&check, &NEW, 4_199);
    assert_eq!((cause(&before), before.next_check), (None, Some(at(4_200))));
    let missed = judged(&check, &before.memory, 4_200);
    assert_eq!(cause(&missed), Some((Cause::Missed, 1)));
    // Each further one adds to the incident; many at once are one change.
    let later = judged(&check, &missed.memory, 4_200 + 3 * 3_600);
    assert_eq!(cause(&later), Some((Cause::Missed, 3)));
}

#[test]
fn missed_firings_count_once_however_often_they_are_judged() {
    let mut check = check_by("0 * * * *");
    let first = judged(&check, &NEW, 4_200);
    assert_eq!(cause(&first), Some((Cause::Missed, 1)));
    let later = judged(&check, &first.memory, 4_200 + 3 * 3_600 - 1);
    assert_eq!(
        (cause(&later), later.memory.settled_to),
        (Some((Cause::Missed, 2)), Some(at(10_800)))
    );
    check.pings.push(ping(2, 14_400, PingKind::Success));
    assert_eq!(judged(&check, &later.memory, 15_000).next_check, Some(at(18_600)));
}

#[test]
fn a_check_that_was_never_pinged_has_a_cause_of_its_own() {
    let judgement = judged(&hourly(vec![]), &NEW, 0);
    assert_eq!(cause(&judgement), Some((Cause::NeverRan, 23)));
}

#[test]
fn a_success_ends_the_incident() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    let missed = judged(&check, &NEW, 4_200);
    check.pings.push(ping(2, 5_000, PingKind::Success));
    let over = judged(&check, &missed.memory, 5_001);
    assert!(matches!(over.change, Some(Change::Recovered { .. })), "{over:?}");
    assert_eq!(over.next_check, Some(at(5_000 + 4_200)));
}

#[test]
fn a_reported_failure_counts_once_and_names_what_was_sent() {
    let mut failed = ping(1, 60, PingKind::Fail);
    (failed.exit_code, failed.body) = (Some(3), Some("no space left\n".into()));
    let judgement = judged(&hourly(vec![failed]), &NEW, 61);
    let Some(Change::Violated { cause: Cause::Failed, detail, .. }) = &judgement.change else {
        panic!("{judgement:?}")
    };
    assert!(detail.contains("exit status 3") && detail.ends_with("no space left"), "{detail}");
}

#[test]
fn several_in_a_row_open_the_incident() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Fail), ping(2, 10, PingKind::Success)]);
    check.spec.alert_after = Some(2);
    let one = judged(&check, &NEW, 11);
    assert_eq!(one.change, None);
    check.pings.push(ping(3, 20, PingKind::Fail));
    let two = judged(&check, &one.memory, 21);
    assert_eq!((cause(&two), two.memory.violations), (None, 1), "a success lies between");
    check.pings.push(ping(4, 30, PingKind::Fail));
    assert_eq!(cause(&judged(&check, &two.memory, 31)), Some((Cause::Failed, 1)));
}

#[test]
fn a_run_that_does_not_end_is_noticed_and_its_end_ends_the_incident() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Start)]);
    check.spec.max_runtime = Some(Duration::from_hours(3));
    // The run is under way, so that nothing else is expected.
    let running = judged(&check, &NEW, 3 * 3_600 - 1);
    assert_eq!((cause(&running), running.next_check), (None, Some(at(3 * 3_600))));
    let long = judged(&check, &running.memory, 3 * 3_600);
    assert_eq!(cause(&long), Some((Cause::TooLong, 1)));
    check.pings.push(ping(2, 4 * 3_600, PingKind::Success));
    let over = judged(&check, &long.memory, 4 * 3_600 + 1);
    assert!(matches!(over.change, Some(Change::Recovered { .. })), "{over:?}");
}

#[test]
fn overlapping_runs_are_told_apart_by_their_rid() {
    let check = hourly(vec![
        run(1, ping(1, 0, PingKind::Start)),
        run(2, ping(2, 300, PingKind::Start)),
        run(2, ping(3, 400, PingKind::Success)),
    ]);
    let long = judged(&check, &NEW, 600);
    assert_eq!((cause(&long), &long.memory.counted[..]), (Some((Cause::TooLong, 1)), &[1][..]));
}

#[test]
fn a_job_that_dies_and_is_started_again_and_again_is_noticed() {
    let mut check = nightly((0..60).map(|n| ping(n, n * 1_200, PingKind::Start)).collect());
    check.spec.max_runtime = Some(Duration::from_hours(2));
    check.pings.truncate(6);
    assert_eq!(judged(&check, &NEW, 7_199).change, None);
    assert_eq!(cause(&judged(&check, &NEW, 7_200)), Some((Cause::TooLong, 1)));
}

#[test]
fn a_ping_a_little_early_counts_for_its_time() {
    // Five to two, for two o'clock: the next is expected a day later.
    let early = nightly(vec![ping(1, 2 * 3_600 - 300, PingKind::Success)]);
    assert_eq!(judged(&early, &NEW, 0).next_check, Some(at(86_400 + 2 * 3_600 + 600)));
    let too_early = nightly(vec![ping(1, 2 * 3_600 - 301, PingKind::Success)]);
    assert_eq!(judged(&too_early, &NEW, 0).next_check, Some(at(2 * 3_600 + 600)));
    let mut strict = early;
    strict.spec.early_by = Some(Duration::ZERO);
    assert_eq!(judged(&strict, &NEW, 0).next_check, Some(at(2 * 3_600 + 600)));
}

#[test]
fn a_schedule_follows_the_clock_changes_of_its_zone() {
    let zone = Zone::parse("Europe/Vienna").unwrap();
    let mut check = check(Cadence::Schedule { expression: "0 2 * * *".into(), zone }, vec![]);
    // 2027-03-28 has no two o'clock there; the grace begins at the first instant after the gap.
    let before = DateTime::parse_from_rfc3339("2027-03-27T01:00:00Z").unwrap().to_utc();
    check.pings = vec![Ping { at: before, ..ping(1, 0, PingKind::Success) }];
    let next = judge(&check, &NEW, before).next_check.unwrap();
    assert_eq!(next.to_rfc3339(), "2027-03-28T01:10:00+00:00");
}

#[test]
fn nothing_is_missed_while_nobody_accepts_pings() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    check.endpoint = Some(Endpoint { seen_at: at(4_000), ..UP });
    let blind = judged(&check, &NEW, 9_000);
    assert_eq!((&blind.change, blind.next_check), (&None, Some(at(9_060))));
    // Back, it expects the next ping within a period.
    check.endpoint = Some(paused(4_000, 9_000));
    let back = judged(&check, &blind.memory, 9_001);
    assert_eq!((&back.change, back.next_check), (&None, Some(at(9_000 + 4_200))));
    check.endpoint = None;
    assert_eq!(judged(&check, &NEW, 9_000).change, None);
}

#[test]
fn what_is_due_before_pings_were_ever_accepted_is_not_missed() {
    let mut check = hourly(vec![]);
    check.endpoint = Some(Endpoint { up_since: at(0), ..UP });
    let judgement = judged(&check, &NEW, 1);
    assert_eq!((&judgement.change, judgement.next_check), (&None, Some(at(4_200))));
}

#[test]
fn a_pause_forgives_only_what_it_may_have_swallowed() {
    let hourly = |from, until, now| {
        let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
        check.endpoint = Some(paused(from, until));
        cause(&judged(&check, &NEW, now))
    };
    let missed = Some((Cause::Missed, 1));
    // The deadline is at 4,200. A job that pings every 35 minutes would ping at 2,100 and 4,200.
    assert_eq!(hourly(600, 2_099, 4_200), missed, "the next ping would have come in time");
    assert_eq!(hourly(600, 2_100, 4_200), None);
    assert_eq!(hourly(4_200, 4_300, 4_300), None);
    assert_eq!(hourly(4_201, 4_300, 4_300), missed, "the pause began after the deadline");
    let nightly = |from, until, now| {
        let mut check = nightly(vec![ping(1, -79_200, PingKind::Success)]);
        check.endpoint = Some(paused(from, until));
        cause(&judged(&check, &NEW, now))
    };
    // Expected at 7,200, from 6,900 on, until 7,800.
    assert_eq!(nightly(0, 6_899, 7_800), missed);
    assert_eq!(nightly(0, 6_900, 7_800), None);
    assert_eq!(nightly(7_800, 8_000, 8_000), None);
    assert_eq!(nightly(7_801, 8_000, 8_000), missed);
}

#[test]
fn what_was_missed_before_and_after_a_pause_counts() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    // Missed at 3,600 and 7,200; the third may be swallowed; then expected at 16,600 and 20,200.
    check.endpoint = Some(paused(10_000, 13_000));
    let judgement = judged(&check, &NEW, 20_199 + 600);
    assert_eq!(cause(&judgement), Some((Cause::Missed, 3)));
    assert_eq!(judgement.memory.settled_to, Some(at(16_600)));
    let mut check = check_by("0 * * * *");
    check.endpoint = Some(paused(10_000, 15_000));
    // Missed at 3,600 and 7,200, swallowed at 10,800 and 14,400, missed at 18,000.
    assert_eq!(cause(&judged(&check, &NEW, 18_600)), Some((Cause::Missed, 3)));
}

#[test]
fn a_job_that_has_died_is_noticed_though_pings_pause_again_and_again() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    check.endpoint = Some(paused(4_000, 4_100));
    let forgiven = judged(&check, &NEW, 4_200);
    assert_eq!((&forgiven.change, forgiven.next_check), (&None, Some(at(4_100 + 4_200))));
    check.endpoint = Some(paused(8_000, 8_100));
    let second = judged(&check, &forgiven.memory, 8_300);
    assert_eq!(cause(&second), Some((Cause::Missed, 1)));
}

#[test]
fn the_end_of_a_run_that_nobody_accepted_is_not_missed() {
    let run = |from, until, now| {
        let mut check = hourly(vec![ping(1, 0, PingKind::Start)]);
        check.endpoint = Some(paused(from, until));
        judged(&check, &NEW, now)
    };
    // Its end is expected until 600.
    let forgiven = run(590, 700, 701);
    assert_eq!(forgiven.change, None);
    assert_eq!(cause(&run(601, 700, 701)), Some((Cause::TooLong, 1)));
    // The pause is forgotten when another comes.
    let mut check = hourly(vec![ping(1, 0, PingKind::Start)]);
    check.endpoint = Some(paused(2_000, 2_100));
    assert_eq!(judged(&check, &forgiven.memory, 2_101).change, None);
    // While it lasts, nothing is known.
    check.endpoint = Some(Endpoint { seen_at: at(590), ..UP });
    let blind = judged(&check, &NEW, 610);
    assert_eq!((&blind.change, blind.next_check), (&None, Some(at(611))));
}

#[test]
fn a_job_that_never_ends_is_noticed_though_pings_pause_in_each_run() {
    let day = 86_400;
    let mut check = nightly(vec![ping(1, 7_200, PingKind::Start)]);
    check.spec.max_runtime = Some(Duration::from_hours(2));
    check.endpoint = Some(paused(10_800, 10_815));
    let first = judged(&check, &NEW, 14_400);
    assert_eq!(first.change, None);
    check.pings.push(ping(2, day + 7_200, PingKind::Start));
    check.endpoint = Some(paused(day + 10_800, day + 10_815));
    let second = judged(&check, &first.memory, day + 14_400);
    assert_eq!(cause(&second), Some((Cause::TooLong, 1)));
    // One that ends in between is forgiven anew.
    check.pings.insert(1, ping(3, 13_000, PingKind::Success));
    assert_eq!(judged(&check, &first.memory, day + 14_400).change, None);
}

#[test]
fn a_run_that_is_over_counts_though_the_next_has_begun_before_anybody_looked() {
    let mut check = nightly((0..8).map(|n| ping(n, n * 1_200, PingKind::Start)).collect());
    check.spec.max_runtime = Some(Duration::from_hours(2));
    let late = judged(&check, &NEW, 8_401);
    assert_eq!(cause(&late), Some((Cause::TooLong, 1)));
    let next = judged(&check, &late.memory, 14_399);
    assert_eq!(next.change, None);
    assert_eq!(cause(&judged(&check, &next.memory, 14_400)), Some((Cause::TooLong, 1)));
}

#[test]
fn a_pause_long_before_a_firing_forgives_it_no_more_than_half_the_distance_early() {
    let mut check = check_by("0 * * * *");
    check.spec.early_by = Some(Duration::from_hours(24));
    check.endpoint = Some(paused(100, 1_700));
    assert_eq!(cause(&judged(&check, &NEW, 7_800)), Some((Cause::Missed, 2)));
    // It ended before the last ping.
    let mut check = check_by("0 * * * *");
    check.pings = vec![ping(1, 3_500, PingKind::Start), ping(2, 3_550, PingKind::Success)];
    check.spec.early_by = Some(Duration::from_mins(20));
    check.endpoint = Some(paused(3_000, 3_540));
    assert_eq!(cause(&judged(&check, &NEW, 7_800)), Some((Cause::Missed, 1)));
}

#[test]
fn a_ping_in_time_that_becomes_visible_late_ends_the_incident() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    let missed = judged(&check, &NEW, 4_200);
    check.pings.push(ping(2, 4_199, PingKind::Success));
    let over = judged(&check, &missed.memory, 4_202);
    assert!(matches!(over.change, Some(Change::Recovered { .. })), "{over:?}");
}

#[test]
fn a_paused_check_expects_nothing_and_its_incident_is_over() {
    let mut check = hourly(vec![ping(1, 0, PingKind::Success)]);
    let missed = judged(&check, &NEW, 4_200);
    check.is_paused = true;
    let paused = judged(&check, &missed.memory, 5_000);
    assert!(matches!(paused.change, Some(Change::Recovered { .. })));
    assert_eq!(paused.next_check, None);
    // What is expected counts from its resumption.
    (check.is_paused, check.changed_at) = (false, at(10_000));
    assert_eq!(judged(&check, &paused.memory, 14_199).change, None);
    assert_eq!(cause(&judged(&check, &paused.memory, 14_200)), Some((Cause::Missed, 1)));
}
