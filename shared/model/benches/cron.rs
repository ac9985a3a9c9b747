//! How long parsing an expression and finding its next firing take. `make bench-model` runs it.
//!
//! The promise: 5 µs for common expressions, 10 ms for the worst ones.

#![expect(missing_docs, reason = "criterion's macro writes the function")]

use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use sexton_model::cron::{Dialect, Dst, Expression};
use sexton_model::zone::Zone;

const NAME: &str = "billing.run";

fn read(text: &str) -> Expression {
    Expression::parse(text, Dialect::Any, NAME).expect("a sound expression")
}

fn from() -> DateTime<Utc> {
    "2026-03-20T12:34:56.789Z".parse().expect("an instant")
}

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    let longest = format!("{} * * * *", vec!["59"; 338].join(","));
    for (name, text) in [
        ("typical", "*/15 9-17 * * MON-FRI"),
        ("relative days", "30 6 LW,15W,L-3 * 5L,1#2"),
        ("longest", &longest),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| Expression::parse(black_box(text), Dialect::Any, NAME));
        });
    }
}

/// Common expressions: the next firing is hours, days or months away, with or without a clock change in between.
fn next(c: &mut Criterion) {
    let mut group = c.benchmark_group("next");
    let expressions = [
        ("every minute", "* * * * *"),
        ("every ten seconds", "*/10 * * * * *"),
        ("daily", "30 2 * * *"),
        ("weekly", "0 8 * * MON"),
        ("monthly", "0 1 1 * *"),
        ("last Friday", "0 18 * * FRIL"),
        ("yearly", "0 0 1 1 *"),
    ];
    for (name, text) in expressions {
        for zone in ["UTC", "Europe/Vienna", "Africa/Casablanca"] {
            let (expression, zone) = (read(text), Zone::parse(zone).expect("a zone"));
            group.bench_function(format!("{name}, {zone}"), |b| {
                b.iter(|| expression.next_after(black_box(from()), zone, Dst::Vixie));
            });
        }
    }
}

/// The longest searches: rare days, days that never come, and times that always fall into a gap of the clocks.
fn worst(c: &mut Criterion) {
    let mut group = c.benchmark_group("worst");
    for (name, text, zone, dst) in [
        ("leap day on a Sunday", "0 0 29 2 */7", "Europe/Vienna", Dst::Vixie),
        ("never", "0 0 30 2 *", "Europe/Vienna", Dst::Vixie),
        ("never, relative", "0 0 31W,L-30 2 *", "Europe/Vienna", Dst::Vixie),
        ("never, all nearest", "0 0 31W,30W,L-29,L-30 2 *", "Africa/Casablanca", Dst::Skip),
        ("always in a gap", "30 2 * 3 SUN#2", "America/New_York", Dst::Skip),
        ("nearly always in a gap", "30 2 8-14 3 */7", "America/New_York", Dst::Skip),
    ] {
        let (expression, zone) = (read(text), Zone::parse(zone).expect("a zone"));
        group.bench_function(name, |b| {
            b.iter(|| expression.next_after(black_box(from()), zone, dst));
        });
    }
}

criterion_group!(benches, parse, next, worst);
criterion_main!(benches);
