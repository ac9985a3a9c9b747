//! The judged quantities, derived from the samples.

use std::collections::BTreeSet;

use super::sample::{Process, Sample, Table};
use super::verdict::{Growth, Series, growth};

/// The share of itself by which memory may grow.
const MEMORY_SHARE: f64 = 0.05;
/// The share by which tables may grow, which grow by whole pages and shrink when a vacuum runs.
const TABLE_SHARE: f64 = 0.1;
const TABLE_FLOOR: f64 = 1024.0 * 1024.0;
const ROWS_FLOOR: f64 = 500.0;
/// The floor of messages and executions, in seconds of load.
const BACKLOG_S: f64 = 5.0;
/// The floor of descriptors and threads.
const COUNT_FLOOR: f64 = 4.0;
/// The append-only audit and its chain: they grow by operators' actions, and by nothing else.
const AUDIT: &str = "operator_actions";
const AUDIT_SEALS: &str = "audit_seals";

/// The growth of each quantity. `fed_per_s` is the scale of what may wait.
pub fn judge(samples: &[Sample], fed_per_s: f64) -> Vec<Growth> {
    series(samples, fed_per_s).iter().filter_map(growth).collect()
}

fn series(samples: &[Sample], fed_per_s: f64) -> Vec<Series> {
    let mut all = Vec::new();
    for name in names(samples, |sample| sample.processes.keys()) {
        let of = |value: fn(&Process) -> u64| {
            points(samples, |sample| Some(value(sample.processes.get(name)?) as f64))
        };
        all.push(one(name, "RSS, KiB", of(|p| p.rss_kib), MEMORY_SHARE, 0.0));
        all.push(one(name, "descriptors", of(|p| p.descriptors), 0.0, COUNT_FLOOR));
        all.push(one(name, "threads", of(|p| p.threads), 0.0, COUNT_FLOOR));
    }
    let of_audit = |name: &str| [AUDIT, AUDIT_SEALS].contains(&name);
    let tables = names(samples, |sample| sample.tables.keys());
    for name in tables.into_iter().filter(|name| !of_audit(name)) {
        let of = |value: fn(&Table) -> i64| {
            points(samples, |sample| Some(value(sample.tables.get(name)?) as f64))
        };
        all.push(one(name, "size, bytes", of(|t| t.bytes), TABLE_SHARE, TABLE_FLOOR));
        all.push(one(name, "indexes, bytes", of(|t| t.index_bytes), TABLE_SHARE, TABLE_FLOOR));
        all.push(one(name, "live rows", of(|t| t.live_rows), TABLE_SHARE, ROWS_FLOOR));
        all.push(one(name, "dead rows", of(|t| t.dead_rows), TABLE_SHARE, ROWS_FLOOR));
    }
    let backlog = BACKLOG_S * fed_per_s;
    for name in names(samples, |sample| sample.queues.keys()) {
        let depth = points(samples, |sample| Some(*sample.queues.get(name)? as f64));
        all.push(one(name, "queue, messages", depth, 0.0, backlog));
    }
    for name in ["pending", "running", "retrying", "failed"] {
        let count = |sample: &Sample| Some(sample.states.get(name).copied().unwrap_or(0) as f64);
        all.push(one(name, "executions", points(samples, count), 0.0, backlog));
    }
    let unpublished = points(samples, |sample| Some(sample.unpublished as f64));
    all.push(one("unpublished", "tickets", unpublished, 0.0, backlog));
    all
}

fn one(of: &str, what: &str, points: Vec<(f64, f64)>, share: f64, floor: f64) -> Series {
    Series { name: format!("{of}: {what}"), points, share, floor }
}

fn names<'a, I: Iterator<Item = &'a String>>(
    samples: &'a [Sample],
    of: impl Fn(&'a Sample) -> I,
) -> BTreeSet<&'a str> {
    samples.iter().flat_map(of).map(String::as_str).collect()
}

fn points(samples: &[Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(change: impl Fn(f64, &mut Sample)) -> Vec<Sample> {
        let sample = |n: u32| {
            let at_s = f64::from(n) * 5.0;
            let process = Process { rss_kib: 40_000, descriptors: 30, threads: 8 };
            let table =
                Table { bytes: 4 << 20, index_bytes: 1 << 20, live_rows: 900, dead_rows: 90 };
            let mut sample = Sample {
                at_s,
                processes: [("worker-1".to_owned(), process)].into(),
                tables: [("executions".to_owned(), table), (AUDIT.to_owned(), table)].into(),
                queues: [("main".to_owned(), 3)].into(),
                states: [("running".to_owned(), 4)].into(),
                unpublished: 1,
            };
            change(at_s, &mut sample);
            sample
        };
        (0..240).map(sample).collect()
    }

    fn unbounded(change: impl Fn(f64, &mut Sample)) -> Vec<String> {
        let judged = judge(&samples(change), 20.0);
        assert!(judged.len() >= 12, "{judged:#?}");
        judged.into_iter().filter(|growth| !growth.is_bounded()).map(|growth| growth.name).collect()
    }

    #[test]
    fn a_constant_series_is_bounded() {
        assert_eq!(unbounded(|_, _| ()), [""; 0]);
    }

    #[test]
    fn a_growing_series_is_named() {
        let process = |sample: &mut Sample, change: fn(&mut Process, u64), by: f64| {
            change(sample.processes.get_mut("worker-1").unwrap(), by as u64);
        };
        let leak = unbounded(|at, sample| process(sample, |p, by| p.rss_kib += 5 * by, at));
        assert_eq!(leak, ["worker-1: RSS, KiB"]);
        let open = unbounded(|at, sample| process(sample, |p, by| p.descriptors += by / 60, at));
        assert_eq!(open, ["worker-1: descriptors"]);
        let bloat = unbounded(|at, sample| {
            sample.tables.get_mut("executions").unwrap().bytes += at as i64 * 8_192;
        });
        assert_eq!(bloat, ["executions: size, bytes"]);
        let queue = unbounded(|at, sample| *sample.queues.get_mut("main").unwrap() += at as u64);
        assert_eq!(queue, ["main: queue, messages"]);
        assert_eq!(
            unbounded(|at, sample| sample.unpublished += at as i64),
            ["unpublished: tickets"]
        );
    }

    #[test]
    fn the_audit_table_may_grow() {
        let audit = unbounded(|at, sample| {
            sample.tables.get_mut(AUDIT).unwrap().bytes += at as i64 * 8_192;
        });
        assert_eq!(audit, [""; 0]);
    }
}
