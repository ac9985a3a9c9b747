//! Tests of the bounds, and of what is encoded.

use std::time::Duration;

use super::family::{Info, Kind, Label, Metric, Values};
use super::*;

const LABELS: &[Label] = &[
    Label { name: "pool", values: Values::Chosen("a pool") },
    Label { name: "state", values: Values::Fixed("`a` or `b`") },
];

const ONE_LABEL: &[Label] = &[Label { name: "pool", values: Values::Chosen("a pool") }];

const fn info(name: &'static str, kind: Kind) -> Info {
    let programs = &[Program::Worker];
    Info { name, help: "A help.", kind, labels: LABELS, programs, is_platform: false }
}

fn encoded(metric: &'static impl Metric) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    metric.register(&mut registry);
    let mut text = String::new();
    text::encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn labels_that_people_choose_have_a_bounded_number_of_series() {
    static COUNTER: Counter<2> = Counter::new(info("bounded", Kind::Counter));
    for number in 0..MAX_SERIES + 500 {
        COUNTER.add([&format!("pool-{number}"), "a"], 1);
    }
    // What is known still counts by its own name.
    COUNTER.add(["pool-0", "a"], 1);
    COUNTER.add(["later", "b"], 7);
    let text = encoded(&COUNTER);
    let series = text.lines().filter(|line| line.starts_with("sexton_bounded_total{")).count();
    assert_eq!(
        series,
        MAX_SERIES + 2,
        "those of `_other` are two: the fixed label keeps its value"
    );
    for line in [
        r#"sexton_bounded_total{pool="pool-0",state="a"} 2"#,
        r#"sexton_bounded_total{pool="_other",state="a"} 500"#,
        r#"sexton_bounded_total{pool="_other",state="b"} 7"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line}");
    }
    assert!(encoded(&table::SERIES_DROPPED).contains("sexton_series_dropped_total 501"));
}

#[test]
fn the_rest_of_a_snapshot_has_a_series_beside_the_named_ones() {
    static GAUGE: SnapshotGauge<1> =
        SnapshotGauge::new(Info { labels: ONE_LABEL, ..info("with_rest", Kind::Gauge) });
    let names: Vec<String> = (0..MAX_SERIES).map(|number| format!("j{number}")).collect();
    let values = names.iter().map(|name| ([name.as_str()], 1.0)).collect();
    GAUGE.set_with_other(values, Some(7.0));
    let text = encoded(&GAUGE);
    assert_eq!(text.matches("sexton_with_rest{").count(), MAX_SERIES + 1);
    assert!(text.contains("sexton_with_rest{pool=\"_other\"} 7.0"), "{text}");
}

#[test]
fn a_snapshot_is_replaced_as_a_whole_and_values_are_escaped() {
    static GAUGE: SnapshotGauge<2> = SnapshotGauge::new(info("snapshot", Kind::Gauge));
    assert!(!encoded(&GAUGE).contains("snapshot"), "nothing was read yet");
    GAUGE.set(vec![(["one", "a"], 1.0), (["two", "a"], 2.5)]);
    GAUGE.set(vec![(["th\"ree\n", "b"], 3.0)]);
    assert_eq!(
        encoded(&GAUGE),
        "# HELP sexton_snapshot A help.\n# TYPE sexton_snapshot gauge\n\
         sexton_snapshot{pool=\"th\\\"ree\\n\",state=\"b\"} 3.0\n# EOF\n"
    );
}

#[test]
fn a_counter_without_labels_is_zero_from_the_start() {
    const NONE: Info = Info { labels: &[], ..info("quiet", Kind::Counter) };
    static COUNTER: Counter<0> = Counter::new(NONE);
    static LABELLED: Counter<2> = Counter::new(info("loud", Kind::Counter));
    assert!(encoded(&COUNTER).contains("\nsexton_quiet_total 0\n"));
    assert!(!encoded(&LABELLED).contains("sexton_loud_total"));
}

#[test]
fn durations_fall_into_buckets() {
    static HISTOGRAM: Histogram<2> = Histogram::of_waits(info("waits", Kind::Histogram));
    HISTOGRAM.observe(["p", "a"], Duration::from_millis(3));
    HISTOGRAM.observe(["p", "a"], Duration::from_hours(2));
    let text = encoded(&HISTOGRAM);
    for line in [
        r#"sexton_waits_bucket{le="0.0025",pool="p",state="a"} 0"#,
        r#"sexton_waits_bucket{le="0.005",pool="p",state="a"} 1"#,
        r#"sexton_waits_bucket{le="600.0",pool="p",state="a"} 1"#,
        r#"sexton_waits_bucket{le="+Inf",pool="p",state="a"} 2"#,
        r#"sexton_waits_count{pool="p",state="a"} 2"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
}

#[test]
fn declarations_are_distinct_and_well_formed() {
    let mut names = std::collections::HashSet::new();
    for metric in table::ALL {
        let info = metric.info();
        assert!(names.insert(info.name), "{} is declared twice", info.name);
        assert!(info.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", info.name);
        assert!(info.help.ends_with('.') && info.help.len() < 150, "{}", info.name);
        assert!(!info.name.ends_with("_total"), "{}: the encoder adds it", info.name);
        let is_time = info.kind == Kind::Histogram;
        assert!(!is_time || info.name.ends_with("_seconds"), "{}", info.name);
    }
}

#[test]
fn the_page_is_what_the_declarations_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == reference_page(), "run the command in the page's second line");
}
