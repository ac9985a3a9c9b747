//! A real Prometheus scrapes a scheduler and a worker.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sexton_tests::platform::Platform;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::run;
use crate::process::{FINAL_TIMEOUT, by_hand, until};

/// What the script answers where Prometheus cannot be fetched.
pub(super) const MISSING: i32 = 77;
/// For Debian's package.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(8);

/// Returns the folder with `prometheus` and `promtool`; `None`, with a report, where they cannot be fetched.
pub(super) async fn folder() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/prometheus.sh");
    let running = Command::new("sh").arg(script).stdin(Stdio::null()).kill_on_drop(true).output();
    let done = timeout(INSTALL_TIMEOUT, running).await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    if done.status.code() == Some(MISSING) {
        sexton_tests::untested::report_untested(&format!("metrics through Prometheus: {output}"));
        return None;
    }
    assert!(done.status.success(), "{output}\n{}", String::from_utf8_lossy(&done.stderr));
    Some(PathBuf::from(output))
}

/// A Prometheus that scrapes twice a second; killed with this value.
struct Prometheus {
    _process: Child,
    promtool: PathBuf,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    fn start(programs: &Path, targets: &[(&str, String)]) -> Self {
        let folder = TempDir::new().unwrap();
        let jobs = targets.iter().map(|(name, target)| {
            format!("  - job_name: {name}\n    static_configs: [{{targets: ['{target}']}}]\n")
        });
        let config = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\nscrape_configs:\n{}",
            jobs.collect::<String>()
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        // Found free, and taken by Prometheus right after.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = free.to_string();
        let process = Command::new(programs.join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (promtool, url) = (programs.join("promtool"), format!("http://{address}"));
        Self { _process: process, promtool, url, _folder: folder }
    }

    /// The values of a query, in the order of its answer; none while Prometheus does not answer.
    async fn query(&self, query: &str) -> Vec<f64> {
        let answer = Command::new(&self.promtool)
            .args(["query", "-o", "json", "instant", &self.url, query])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let results: Vec<Value> = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        results.iter().map(|one| one["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn prometheus_scrapes_scheduler_and_worker() {
    let Some(programs) = folder().await else { return };
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.good]\ncommand = [\"true\"]\n");
    platform.apply(&by_hand("a.good", "good", "")).await.unwrap();
    let often = [("METRICS_INTERVAL_MS", "100")];
    let mut scheduler = platform.start_scheduler("s1", &often).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let targets = [
        ("scheduler", scheduler.health_address().unwrap()),
        ("worker", worker.health_address().unwrap()),
    ];
    let prometheus = Prometheus::start(&programs, &targets);
    let both = async || (prometheus.query("up == 1").await.len() == 2).then_some(());
    platform.eventually("Prometheus scrapes both", FINAL_TIMEOUT, both).await;
    for _ in 0..3 {
        run(&platform, &["jobs", "trigger", "a.good"]).await;
    }
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 3).await;
    for (query, wanted) in [
        ("sum(sexton_attempts_total{outcome=\"succeeded\"})", 3.0),
        ("sum(sexton_attempt_duration_seconds_count)", 3.0),
        ("max(sexton_unpublished_tickets)", 0.0),
        ("count(sexton_build_info)", 2.0),
        ("count(sexton_firing_lag_seconds_bucket{le=\"+Inf\"})", 1.0),
    ] {
        let answered = async || (prometheus.query(query).await == [wanted]).then_some(());
        platform.eventually(query, FINAL_TIMEOUT, answered).await;
    }
}
