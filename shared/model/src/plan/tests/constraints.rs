//! Plans under random limits against a list made by hand: every nominal time of the schedule has one disposition,
//! nothing is decided before it is due, and the limit of runs holds.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use proptest::prelude::*;

use super::*;
use crate::job::{Exclusions, ScheduleConstraints};

/// A random job.
#[derive(Clone, Debug)]
struct Drawn {
    schedule: Schedule,
    constraints: ScheduleConstraints,
    misfire: Misfire,
    zone: Zone,
}

impl Drawn {
    fn timetable(&self) -> Timetable {
        let bare = Timetable::new("a.b", &self.schedule, self.zone, Dst::Vixie, None).unwrap();
        bare.with_constraints(&self.constraints, "a.b")
    }

    /// Returns the schedule's nominal times between start and end, and whether their day is excluded, by asking for
    /// each.
    fn nominal(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<(DateTime<Utc>, bool)> {
        let bare = Timetable::new("a.b", &self.schedule, self.zone, Dst::Vixie, None).unwrap();
        let start = self.constraints.start.map(|start| start.instant(self.zone));
        let end = self.constraints.end.map(|end| end.instant(self.zone));
        std::iter::successors(bare.next_after(from), |from| bare.next_after(*from))
            .take_while(|firing| *firing <= to)
            .filter(|firing| start.is_none_or(|start| start <= *firing))
            .filter(|firing| end.is_none_or(|end| *firing <= end))
            .map(|firing| {
                let day = self.zone.at(firing).date_naive();
                let excluded = self.constraints.exclude.to_texts().iter().any(|days| {
                    let (first, last) = days.split_once("..").unwrap_or((days, days));
                    (first.parse::<NaiveDate>().unwrap()..=last.parse().unwrap()).contains(&day)
                });
                (firing, excluded)
            })
            .collect()
    }
}

/// Minutes since some days before the clocks of Vienna change.
fn minute(minute: i64) -> DateTime<Utc> {
    at("2026-03-25T00:00:00Z") + TimeDelta::minutes(minute)
}

const LAST: i64 = 12_500;

prop_compose! {
    fn drawn()(
        kind in 0_usize..5,
        (period, phase) in (1_i64..900).prop_flat_map(|period| (Just(period), 0..period)),
        start in prop::option::of(0_i64..6_000),
        end in prop::option::of(4_000_i64..12_000),
        days in prop::collection::vec((25_u64..34, 0_u64..3), 0..4),
        jitter in prop::option::of(1_u64..20_000),
        max_runs in prop::option::of(1_u32..12),
        policy in 0_usize..3,
        window_s in prop_oneof![1_u64..90, 1_u64..300_000],
        limit in 1_u32..20,
        zone in prop::sample::select(vec!["UTC", "Europe/Vienna", "America/Havana"]),
    ) -> Drawn {
        let cron = |text: &str| Schedule::Cron { expression: text.to_owned() };
        let first: NaiveDate = "2026-03-01".parse().unwrap();
        let days = days.into_iter().map(|(day, length)| {
            let day = first + chrono::Days::new(day - 1);
            format!("{day}..{}", day + chrono::Days::new(length))
        });
        let policies = [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::FireAll];
        Drawn {
            schedule: match kind {
                0 | 1 => Schedule::Every {
                    period: Duration::from_mins(period as u64),
                    phase: Duration::from_mins(phase as u64),
                },
                2 => cron("*/30 * * * *"),
                3 => cron("30 2 * * *"),
                _ => cron("15 7-19/3 * * MON-SAT"),
            },
            constraints: ScheduleConstraints {
                start: start.map(|start| minute(start).into()),
                end: end.map(|end| minute(end).into()),
                exclude: Exclusions::from_texts(&days.collect::<Vec<_>>()).unwrap(),
                jitter: jitter.map(Duration::from_secs),
                max_runs,
            },
            misfire: misfire(policies[policy], window_s, limit),
            zone: Zone::parse(zone).unwrap(),
        }
    }
}

/// The disposition of each nominal time, by a planner that wakes at `wakes`.
struct Ledger {
    became: BTreeMap<DateTime<Utc>, &'static str>,
    runs: u32,
    cursor: Option<DateTime<Utc>>,
    planned_until: DateTime<Utc>,
}

impl Ledger {
    fn note(&mut self, firing: DateTime<Utc>, became: &'static str) {
        assert_eq!(self.became.insert(firing, became), None, "{firing} became two things");
    }

    fn wake(&mut self, job: &Drawn, table: &Timetable, now: DateTime<Utc>) {
        // A plan that ends at the limit of runs is followed by another.
        while let Some(next_fire_at) = self.cursor.filter(|cursor| table.due(*cursor) <= now) {
            let (overlap, misfire) = (Overlap::Allow, job.misfire);
            let due = PlanInput {
                timetable: table,
                overlap,
                misfire,
                next_fire_at,
                under_way: UnderWay::default(),
                held: false,
            };
            let left = job.constraints.runs_left(self.runs);
            let mut plan = plan_at_most(&due, left, now);
            // Like a batch of claims: by the number of runs left before it.
            let is_last = plan.next_fire_at.is_none() && left != Some(0);
            let to = plan.next_fire_at.map_or(now, |next| next.min(now));
            plan.gaps.extend(excluded_gaps(table, self.planned_until, to, is_last));
            for firing in &plan.firings {
                assert!(table.due(firing.scheduled_for) <= now, "claimed before it is due");
                self.runs += 1;
                self.note(firing.scheduled_for, "run");
            }
            if job.constraints.runs_left(self.runs) == Some(0) {
                plan.next_fire_at = plan.next_fire_at.filter(|next| table.due(*next) <= now);
            }
            for gap in &plan.gaps {
                let excluded = gap.reason == GapReason::Excluded;
                let before = gap.first - TimeDelta::seconds(1);
                let there = job.nominal(before, gap.last).into_iter();
                let counted: Vec<_> = there.filter(|(_, of)| *of == excluded).collect();
                assert_eq!(counted.len(), gap.count as usize, "{gap:?}");
                assert_eq!(counted.first().unwrap().0, gap.first);
                assert_eq!(counted.last().unwrap().0, gap.last);
                for (firing, _) in counted {
                    self.note(firing, gap.reason.as_str());
                }
            }
            self.cursor = plan.next_fire_at;
            self.planned_until =
                plan.next_fire_at.map_or(now, |next| now.min(timetable::before(next)));
        }
    }
}

proptest! {
    #[test]
    fn under_any_terms_every_nominal_time_has_exactly_one_disposition(
        job in drawn(),
        mut wakeups in prop::collection::vec(0..LAST, 1..8),
    ) {
        wakeups.sort_unstable();
        let table = job.timetable();
        let began = minute(-1);
        let mut ledger = Ledger {
            became: BTreeMap::new(),
            runs: 0,
            cursor: first_firing(&table, began),
            planned_until: began,
        };
        for wake in &wakeups {
            ledger.wake(&job, &table, minute(*wake));
        }
        let now = minute(*wakeups.last().unwrap());
        let ended = job.constraints.runs_left(ledger.runs) == Some(0);
        for (firing, is_excluded) in job.nominal(began, minute(LAST)) {
            let became = ledger.became.get(&firing).copied();
            if is_excluded {
                // The claim of the next firing records it; nothing records what comes after the last.
                prop_assert!(became.is_none_or(|became| became == "excluded"), "{firing} {became:?}");
                let accounted = firing <= ledger.planned_until;
                prop_assert!(became.is_some() || !accounted || ended, "{firing}");
            } else if table.due(firing) <= now {
                prop_assert!(became.is_some() || ended, "{firing} is forgotten");
                prop_assert!(became != Some("excluded"));
            } else {
                prop_assert_eq!(became, None, "{} was not due at {}", firing, now);
            }
        }
        prop_assert!(job.constraints.max_runs.is_none_or(|limit| ledger.runs <= limit));
        // Only firings have a disposition.
        let there: Vec<_> = job.nominal(began, minute(LAST)).iter().map(|(at, _)| *at).collect();
        prop_assert!(ledger.became.keys().all(|firing| there.contains(firing)));
    }

    #[test]
    fn under_any_terms_a_plan_decides_what_visiting_every_firing_does(
        job in drawn(), from in 0..LAST, to in 0..LAST,
    ) {
        let table = job.timetable();
        if let Some(next_fire_at) = table.next_after(minute(from.min(to))) {
            let now = minute(from.max(to));
            let (overlap, misfire) = (Overlap::Allow, job.misfire);
            let due = PlanInput { timetable: &table, overlap, misfire, next_fire_at, under_way: UnderWay::default(), held: false };
            prop_assert_eq!(plan(&due, now), enumerated::plan(&due, now));
        }
    }
}

#[test]
fn a_spread_firing_is_claimed_when_it_is_due_and_late_only_from_then_on() {
    let jitter = Some(Duration::from_hours(1));
    let table = cron("0 8 * * *")
        .with_constraints(&ScheduleConstraints { jitter, ..ScheduleConstraints::default() }, "a.b");
    let nominal = at("2026-01-01T08:00:00Z");
    let due_at = table.due(nominal);
    assert!(due_at > nominal + TimeDelta::minutes(2), "the name spreads it: {due_at}");
    let due = due(&table, misfire(MisfirePolicy::Skip, 3_600, 1), "2026-01-01T08:00:00Z");
    let early = plan(&due, due_at - TimeDelta::milliseconds(1));
    assert_eq!(early, Plan { next_fire_at: Some(nominal), ..Plan::default() });
    let on_time = plan(&due, due_at + TimeDelta::seconds(60));
    assert_eq!(on_time.firings[0].key, "cron-2026-01-01T08:00:00Z");
    assert_eq!(on_time.next_fire_at, Some(at("2026-01-02T08:00:00Z")));
    let late = plan(&due, due_at + TimeDelta::milliseconds(60_001));
    assert_eq!(late.gaps[0].reason, GapReason::MisfireSkip);
}

#[test]
fn an_instant_that_was_past_when_it_was_applied_is_late_only_from_then_on() {
    let once = Schedule::At { at: at("2026-01-01T00:00:00Z").into() };
    let applied = at("2026-03-01T00:00:00Z");
    let table = ready(&once).since(Some(applied));
    assert_eq!(table.due(at("2026-01-01T00:00:00Z")), applied);
    let due = due(&table, misfire(MisfirePolicy::Skip, 60, 1), "2026-01-01T00:00:00Z");
    let before = plan(&due, applied - TimeDelta::seconds(1));
    assert_eq!(before.next_fire_at, Some(at("2026-01-01T00:00:00Z")));
    let then = plan(&due, applied + TimeDelta::seconds(2));
    assert_eq!(then.firings[0].key, "once-2026-01-01T00:00:00Z");
    let too_late = plan(&due, applied + TimeDelta::minutes(2));
    assert_eq!(too_late.gaps[0].reason, GapReason::OutsideWindow);
}

#[test]
fn excluded_days_of_a_job_that_fires_each_second_are_one_gap() {
    let exclude = Exclusions::from_texts(&["2026-01-02..2026-12-31"]).unwrap();
    let table = every(1_000).with_constraints(
        &ScheduleConstraints { exclude, ..ScheduleConstraints::default() },
        "a.b",
    );
    let due = due(&table, Misfire::default(), "2027-01-01T00:00:00Z");
    let (steps, gaps) = crate::steps::count_steps(|| {
        assert_eq!(plan(&due, at("2027-01-01T00:00:00Z")).firings.len(), 1);
        excluded_gaps(&table, at("2026-01-01T23:59:59Z"), at("2027-01-01T00:00:00Z"), false)
    });
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].count, gaps[0].reason), (364 * 86_400, GapReason::Excluded));
    assert_eq!(gaps[0].last, at("2026-12-31T23:59:59Z"));
    assert!(steps < 3_000, "{steps}");
}

#[test]
fn a_limit_is_used_up_by_the_oldest_and_what_is_due_then_is_past_the_end() {
    let table = every(10_000);
    let due = due(&table, Misfire::default(), "2026-01-01T00:00:00Z");
    let now = at("2026-01-01T00:00:45Z");
    let first = plan_at_most(&due, Some(3), now);
    assert_eq!(first.firings.len(), 3);
    let next_fire_at = first.next_fire_at.unwrap();
    assert_eq!(next_fire_at, at("2026-01-01T00:00:30Z"));
    let plan = plan_at_most(&PlanInput { next_fire_at, ..due }, Some(0), now);
    assert_eq!((plan.firings.len(), plan.next_fire_at), (0, None));
    assert_eq!((plan.gaps[0].count, plan.gaps[0].reason), (2, GapReason::PastEnd));
    let all = plan_at_most(&due, Some(5), now);
    assert_eq!((all.firings.len(), all.next_fire_at), (5, Some(at("2026-01-01T00:00:50Z"))));
}

#[test]
fn of_what_was_set_aside_no_more_run_than_may_and_the_rest_is_past_the_end() {
    let table = every(3_600_000);
    let day = misfire(MisfirePolicy::FireAll, 86_400, 100);
    let due = due(&table, day, "2026-01-01T00:00:00Z");
    let (last, held_at) = (at("2026-01-01T05:00:00Z"), at("2026-01-01T05:30:00Z"));
    for (left, runs, past_end) in [(None, 6, 0), (Some(4), 4, 2), (Some(0), 0, 6), (Some(9), 6, 0)]
    {
        let plan = release_at_most(&due, (0, left), last, held_at);
        assert_eq!((plan.runs(), plan.firings.len()), (runs, runs as usize), "{left:?}");
        let over: u32 = plan.gaps.iter().map(|gap| gap.count).sum();
        assert_eq!(over, past_end, "{left:?}");
        assert!(plan.gaps.iter().all(|gap| gap.reason == GapReason::PastEnd && gap.last == last));
    }
}
