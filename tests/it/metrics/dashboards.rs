//! The dashboards in `deploy/grafana`: written by their scripts, valid for Grafana and Prometheus, about metrics, labels
//! and values that are scraped, and with pages and commands that exist.

mod names;
mod places;

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::prometheus::{MISSING, folder};
use crate::docs::{root, text};

const DASHBOARDS: [&str; 2] = ["operations.json", "job.json"];

fn dashboard(name: &str) -> Value {
    serde_json::from_str(&text(Path::new("deploy/grafana").join(name))).unwrap()
}

/// The panels that show something, with their titles.
fn panels(dashboard: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let shown = panels.filter(|panel| panel["type"] != "row");
    shown.map(|panel| (panel["title"].as_str().unwrap(), panel))
}

/// The expressions of a panel, with the texts of their legends.
fn expressions(panel: &Value) -> impl Iterator<Item = (&str, &str)> {
    let targets = panel["targets"].as_array().unwrap().iter();
    targets
        .map(|target| (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap()))
}

/// The expression with values in place of variables.
fn filled(expression: &str) -> String {
    let interval = expression.replace("$__rate_interval", "1m");
    ["instance", "pool", "job", "task_type"]
        .into_iter()
        .fold(interval, |text, name| text.replace(&format!("${name}"), ".*"))
}

async fn done(command: &mut Command) -> Output {
    command.current_dir(root()).stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
}

/// Whether promtool takes the expressions as rules, and what it prints.
async fn check_rules(promtool: &Path, expressions: &[String]) -> (bool, String) {
    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        assert!(!expression.contains('$'), "an unknown variable: {expression}");
        json!({"record": format!("panel:{number}"), "expr": expression})
    });
    let file = TempDir::new().unwrap();
    let path = file.path().join("rules.yml");
    // JSON is YAML.
    let groups = json!({"groups": [{"name": "panels", "rules": rules.collect::<Vec<_>>()}]});
    std::fs::write(&path, groups.to_string()).unwrap();
    let output = done(Command::new(promtool).args(["check", "rules"]).arg(&path)).await;
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[tokio::test]
async fn prometheus_understands_every_expression() {
    let Some(programs) = folder().await else { return };
    let promtool = programs.join("promtool");
    let broken = ["max(sexton_failed{pool=~\".*\")".to_owned()];
    let (is_valid, printed) = check_rules(&promtool, &broken).await;
    assert!(!is_valid, "a missing bracket goes unnoticed: {printed}");
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let all: Vec<String> = panels(&dashboard)
            .flat_map(|(_, panel)| expressions(panel).map(|(expression, _)| filled(expression)))
            .collect();
        assert!(all.len() >= 10, "{name} has only {} expressions", all.len());
        let (is_valid, printed) = check_rules(&promtool, &all).await;
        assert!(is_valid && printed.contains("SUCCESS"), "{name}: {printed}");
    }
}

#[tokio::test]
async fn the_dashboards_are_those_that_the_scripts_write() {
    let written = TempDir::new().unwrap();
    let mut python = Command::new("python3");
    let output =
        done(python.args(["-B", "deploy/grafana/dashboards.py"]).arg(written.path())).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in DASHBOARDS {
        let fresh = std::fs::read_to_string(written.path().join(name)).unwrap();
        let committed = text(Path::new("deploy/grafana").join(name));
        assert!(fresh == committed, "{name}: run `python3 -B deploy/grafana/dashboards.py`");
    }
}

/// By the types that Grafana publishes, which know each field and each of its values.
#[tokio::test]
async fn grafana_understands_the_dashboards() {
    let script = async |files: &[&Path]| {
        done(Command::new("sh").arg("scripts/dashboard-schema.sh").args(files)).await
    };
    let output = script(&[]).await;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(MISSING) {
        return sexton_tests::untested::report_untested(&format!(
            "dashboards against Grafana's types: {}",
            printed.trim()
        ));
    }
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let folder = TempDir::new().unwrap();
    let wrong = folder.path().join("wrong.json");
    for (right, mistaken) in
        [(r#""colorMode": "value""#, r#""colorMode": "vlaue""#), (r#""noValue""#, r#""novalue""#)]
    {
        let source = text("deploy/grafana/operations.json");
        assert!(source.contains(right));
        std::fs::write(&wrong, source.replace(right, mistaken)).unwrap();
        assert!(!script(&[&wrong]).await.status.success(), "{mistaken} goes unnoticed");
    }
}

/// What stands between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
