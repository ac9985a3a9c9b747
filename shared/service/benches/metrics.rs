//! What the metrics of one execution cost, and a scrape of a thousand series.

#![expect(missing_docs, reason = "criterion's macro writes the function")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use sexton_service::metrics::{self, Program, table};

fn one_execution() {
    let [pool, task_type] = [black_box("default"), black_box("send_invoice")];
    table::QUEUE_WAIT.observe([pool], Duration::from_millis(3));
    table::ATTEMPT_DURATION.observe([pool, task_type], Duration::from_millis(40));
    table::ATTEMPTS.add([pool, task_type, "succeeded"], 1);
}

fn costs(criterion: &mut Criterion) {
    metrics::init(Program::Worker, "0.0.0");
    criterion.bench_function("metrics of an execution", |bencher| bencher.iter(one_execution));
    for number in 0..metrics::MAX_SERIES {
        table::ATTEMPTS.add(["default", &format!("task-{number}"), "succeeded"], 1);
    }
    criterion
        .bench_function("scrape of a thousand series", |bencher| bencher.iter(metrics::encode));
}

criterion_group!(benches, costs);
criterion_main!(benches);
