//! What the programs answer at `/metrics`, against the rows that they are about, and through a real Prometheus.

mod dashboards;
mod per_job;
mod prometheus;
mod requests;
mod rules;
mod scrape;

use std::collections::BTreeMap;

use sexton_tests::platform::{Platform, Program};

/// The series of a scrape.
#[derive(Debug, PartialEq)]
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    async fn of(program: &Program) -> Self {
        let (is_ok, response) = program.ask("/metrics").await.unwrap();
        assert!(is_ok, "{response}");
        assert!(response.contains("content-type: application/openmetrics-text"), "{response}");
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(body.ends_with("# EOF\n"), "{body}");
        let series = body.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Self(series.collect())
    }

    /// A series' value, which is whole; 0 if it is not there.
    fn value(&self, series: &str) -> i64 {
        self.0.get(series).map_or(0, |value| value.round() as i64)
    }

    /// The names, without the suffixes of histograms.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|series| {
            let name = series.split('{').next().unwrap();
            let mut parts = ["_bucket", "_sum", "_count"].into_iter();
            parts.find_map(|part| name.strip_suffix(part)).unwrap_or(name)
        })
    }
}

/// Runs a command that must succeed.
async fn run(platform: &Platform, arguments: &[&str]) {
    let done = platform.sexton(arguments).await;
    assert!(done.status.success(), "{arguments:?}: {}", done.stderr);
}
