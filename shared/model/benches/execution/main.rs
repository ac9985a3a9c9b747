//! How long the pure functions of an execution's life take, with realistic values. `make bench-model` runs it, and
//! criterion compares with its previous run.

#![expect(missing_docs, reason = "criterion's macro writes the function")]

mod firing;
mod output;
mod settlement;
mod ticket;

use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};

/// One call of the function under measurement, with the values prepared for it.
type Call = Box<dyn FnMut()>;

/// One function with its values.
struct Case {
    /// Its name in criterion's folder: a new name begins a new history.
    name: &'static str,
    /// Prepares the values, outside the measurement.
    prepare: fn() -> Call,
}

/// Keeps the compiler from optimising the result away.
fn call<T: 'static>(mut function: impl FnMut() -> T + 'static) -> Call {
    Box::new(move || {
        black_box(function());
    })
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("an instant")
}

/// In the order of an execution's life.
fn execution(c: &mut Criterion) {
    let mut group = c.benchmark_group("execution");
    let parts = [firing::CASES, ticket::CASES, output::CASES, settlement::CASES];
    for case in parts.into_iter().flatten() {
        let mut call = (case.prepare)();
        group.bench_function(case.name, |b| b.iter(&mut call));
    }
}

criterion_group!(benches, execution);
criterion_main!(benches);
