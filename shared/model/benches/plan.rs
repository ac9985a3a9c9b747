//! How long planning takes: one due firing, and a year of absence. `make bench-model` runs it.
//!
//! The promise: missed firings are counted and not visited, so a year of seconds costs what a year of days does, plus
//! the rows that the limit allows.

#![expect(missing_docs, reason = "criterion's macro writes the function")]

use std::hint::black_box;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use sexton_model::cron::Dst;
use sexton_model::job::{Misfire, MisfirePolicy, Overlap, Schedule};
use sexton_model::plan::overlap::UnderWay;
use sexton_model::plan::{PlanInput, Timetable, plan};
use sexton_model::zone::Zone;

fn now() -> DateTime<Utc> {
    "2026-03-20T12:34:56.789Z".parse().expect("an instant")
}

fn table(expression: &str, zone: &str) -> Timetable {
    let schedule = Schedule::Cron { expression: expression.to_owned() };
    let zone = Zone::parse(zone).expect("a zone");
    Timetable::new("billing.run", &schedule, zone, Dst::Vixie, None).expect("a sound expression")
}

fn absences(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    let all = |limit| Misfire {
        policy: MisfirePolicy::FireAll,
        window: Duration::from_hours(366 * 24),
        limit,
        rate: None,
    };
    for (name, expression, absence, misfire) in [
        ("a firing on time", "* * * * *", TimeDelta::minutes(1), Misfire::default()),
        ("a year of days", "0 8 * * *", TimeDelta::days(365), Misfire::default()),
        ("a year of minutes", "* * * * *", TimeDelta::days(365), Misfire::default()),
        ("a year of seconds", "* * * * * *", TimeDelta::days(365), Misfire::default()),
        ("a year of minutes, 1,000 of them run", "* * * * *", TimeDelta::days(365), all(1_000)),
    ] {
        for zone in ["UTC", "Europe/Vienna"] {
            let table = table(expression, zone);
            let next_fire_at = table.next_after(now() - absence).expect("it fires");
            let due = PlanInput {
                timetable: &table,
                overlap: Overlap::Allow,
                misfire,
                next_fire_at,
                under_way: UnderWay::default(),
                held: false,
            };
            group.bench_function(format!("{name}, {zone}"), |b| {
                b.iter(|| plan(black_box(&due), black_box(now())));
            });
        }
    }
}

criterion_group!(benches, absences);
criterion_main!(benches);
