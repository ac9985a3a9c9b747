//! The rules in `deploy/prometheus`: valid, tested, about metrics that are scraped, and each explained.

use std::collections::BTreeSet;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use super::prometheus::folder;
use crate::docs::{blocks, root, text};

const RULES: &str = "deploy/prometheus/rules.yml";

#[tokio::test]
async fn the_rules_are_valid_and_fire_for_what_they_are_about() {
    let Some(programs) = folder().await else { return };
    for arguments in
        [["check", "rules", RULES], ["test", "rules", "deploy/prometheus/rules.test.yml"]]
    {
        let done = Command::new(programs.join("promtool"))
            .args(arguments)
            .current_dir(root())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && output.contains("SUCCESS"), "{output}\n{errors}");
    }
}

/// The page's, which must keep the label `job` of metrics about a job.
#[tokio::test]
async fn the_scrape_configuration_of_the_page_is_valid() {
    let Some(programs) = folder().await else { return };
    let configurations = blocks(&text("docs/operations/alerts.md"), "yaml");
    let [configuration] = &configurations[..] else { panic!("{configurations:?}") };
    assert!(configuration.contains("honor_labels: true"));
    let beside = TempDir::new().unwrap();
    let path = beside.path().join("prometheus.yml");
    std::fs::write(&path, configuration).unwrap();
    std::fs::write(beside.path().join("rules.yml"), text(RULES)).unwrap();
    let mut promtool = Command::new(programs.join("promtool"));
    let checked = promtool.args(["check", "config"]).arg(&path).stdin(Stdio::null()).output();
    let done = checked.await.unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.contains("15 rules found"), "{output}\n{errors}");
}

/// The words of a text that begin with `prefix`.
fn words<'t>(text: &'t str, prefix: &str) -> BTreeSet<&'t str> {
    let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    split.filter(|word| word.starts_with(prefix)).collect()
}

#[test]
fn every_metric_in_the_rules_is_declared() {
    let (rules, page) = (text(RULES), text("docs/reference/metrics.md"));
    let declared = words(&page, "sexton_");
    for name in words(&rules, "sexton_") {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(declared.contains(family), "{name} is in {RULES} and no metric");
    }
}

#[test]
fn every_alert_is_tested_and_explained() {
    let rules = text(RULES);
    let alerts: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 15);
    let page = text("docs/operations/alerts.md");
    let explained: BTreeSet<&str> =
        words(&page, "Sexton").into_iter().filter(|word| *word != "Sexton").collect();
    assert_eq!(explained, alerts, "docs/operations/alerts.md explains each alert");
    let tests = text("deploy/prometheus/rules.test.yml");
    assert_eq!(words(&tests, "Sexton"), alerts, "each alert fires in a test");
}
