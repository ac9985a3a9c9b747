//! How long the pure parts of an execution take, those that `make counts` counts. `make bench-model`
//! runs it.

#![expect(missing_docs, reason = "criterion's macro writes the function")]

use criterion::{Criterion, criterion_group, criterion_main};
use sexton_counts::cases;

fn execution(c: &mut Criterion) {
    let mut group = c.benchmark_group("execution");
    for case in cases::all() {
        let mut call = (case.prepare)();
        group.bench_function(case.name, |b| b.iter(&mut call));
    }
}

criterion_group!(benches, execution);
criterion_main!(benches);
