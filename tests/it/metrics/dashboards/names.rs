//! Metrics, labels and values in the expressions, against docs/reference/metrics.md, which is made from the registry.

use std::collections::{BTreeMap, BTreeSet};

use super::{DASHBOARDS, code_spans, dashboard, expressions, panels};
use crate::docs::text;

/// What Prometheus itself adds to every series.
const OF_PROMETHEUS: &str = "instance";

/// The row of a metric on the page.
struct Declared {
    is_histogram: bool,
    /// The column of the labels, with their values.
    labels: String,
}

impl Declared {
    fn page() -> BTreeMap<String, Self> {
        let page = text("docs/reference/metrics.md");
        let rows = page.lines().filter(|line| line.starts_with("| `sexton_"));
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let (name, is_histogram) = (cells[1].trim_matches('`'), cells[2] == "histogram");
            (name.to_owned(), Self { is_histogram, labels: cells[4].to_owned() })
        })
        .collect()
    }

    fn has_label(&self, label: &str, is_bucket: bool) -> bool {
        let is_own = self.labels.split("; ").any(|one| one.starts_with(&format!("`{label}`: ")));
        is_own || label == OF_PROMETHEUS || (is_bucket && label == "le")
    }

    /// Whether the page names the values of a label, and this is none of them.
    fn refuses(&self, label: &str, value: &str) -> bool {
        let is_enumerated = self.labels.contains(&format!("`{label}`: `"));
        is_enumerated && code_spans(&self.labels).all(|span| span != value)
    }
}

/// The metrics of an expression, each with the text of its selector.
fn selectors(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    expression.match_indices("sexton_").map(|(at, _)| {
        let after = &expression[at..];
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = after.split_at(end.unwrap_or(after.len()));
        let selector = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        (name, selector.map_or("", |(selector, _)| selector))
    })
}

/// What is wrong with an expression and the legend of its series.
fn problems(page: &BTreeMap<String, Declared>, expression: &str, legend: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut declared = Vec::new();
    for (name, selector) in selectors(expression) {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        let is_bucket = family != name;
        let Some(metric) = page.get(family) else {
            found.push(format!("{name} is no metric"));
            continue;
        };
        if metric.is_histogram != is_bucket {
            found.push(format!("{name} has no series"));
        }
        for matcher in selector.split(", ").filter(|matcher| !matcher.is_empty()) {
            let label = matcher.split(['=', '!']).next().unwrap();
            if !metric.has_label(label, is_bucket) {
                found.push(format!("{name} has no label {label}"));
            }
            let values = matcher.split('"').nth(1).unwrap_or_default().split('|');
            for value in values.filter(|value| !value.starts_with('$')) {
                if metric.refuses(label, value) {
                    found.push(format!("{name} has no {label} {value}"));
                }
            }
        }
        declared.push((metric, is_bucket));
    }
    if declared.is_empty() {
        found.push("no metric at all".to_owned());
    }
    let grouped: BTreeSet<&str> = expression
        .split(" by (")
        .skip(1)
        .chain(expression.split(" on (").skip(1))
        .flat_map(|rest| rest.split(')').next().unwrap().split(", "))
        .collect();
    for label in &grouped {
        if !declared.iter().any(|(metric, is_bucket)| metric.has_label(label, *is_bucket)) {
            found.push(format!("no series has the label {label}"));
        }
    }
    for label in legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap()) {
        if !grouped.contains(label) {
            found.push(format!("the legend's {label} is not in the answer"));
        }
    }
    found
}

#[test]
fn every_metric_label_and_value_is_declared() {
    let page = Declared::page();
    assert!(page.len() >= 25, "only {} metrics were found", page.len());
    let mut found = Vec::new();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        for (title, panel) in panels(&dashboard) {
            for (expression, legend) in expressions(panel) {
                let problems = problems(&page, expression, legend);
                found.extend(problems.iter().map(|problem| format!("{name}, {title}: {problem}")));
            }
        }
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            let Some(query) = variable["query"]["query"].as_str() else { continue };
            let inner = query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
            let (series, label) = inner.rsplit_once(", ").unwrap();
            let grouped = format!("max by ({label}) ({series})");
            let problems = problems(&page, &grouped, "");
            found.extend(problems.iter().map(|problem| format!("{name}, {query}: {problem}")));
        }
    }
    assert!(found.is_empty(), "not in docs/reference/metrics.md:\n{}", found.join("\n"));
}

#[test]
fn a_name_that_is_not_declared_is_reported() {
    let page = Declared::page();
    for (expression, legend) in [
        ("max(sexton_faild)", ""),
        ("max(vector(1))", ""),
        ("max(sexton_failed{poool=~\"$pool\"})", ""),
        ("max by (state) (sexton_failed)", ""),
        ("max by (pool) (sexton_failed)", "{{state}}"),
        ("max by (le) (sexton_failed)", ""),
        ("rate(sexton_firing_lag_seconds[1m])", ""),
        ("rate(sexton_failed_bucket[1m])", ""),
        ("sum(sexton_slots{state=\"bussy\"})", ""),
        ("sum(sexton_attempts_total{outcome=~\"error|time_out\"})", ""),
        ("count(sexton_build_info{program=\"planner\"})", ""),
        ("sum(sexton_firings_total{disposition=\"missing\"})", ""),
    ] {
        assert!(!problems(&page, expression, legend).is_empty(), "{expression} {legend}");
    }
    for (expression, legend) in [
        ("max by (pool) (sexton_failed{instance=~\"$instance\", pool=~\"$pool\"})", "{{pool}}"),
        ("sum(sexton_slots{pool=\"anything\", state=\"busy\"})", ""),
        ("sum by (le) (rate(sexton_firing_lag_seconds_bucket[1m]))", ""),
        ("sum(sexton_firings_total{disposition=~\"claimed|missed|held\"})", ""),
    ] {
        assert_eq!(problems(&page, expression, legend), [""; 0], "{expression} {legend}");
    }
}
