//! The files that packages put into `/etc/cron.d`: the names and the meaning of their jobs.

use std::path::{Path, PathBuf};

use serde_json::json;
use sexton_worker::catalogue::Catalogue;

use super::super::{Console, run};

/// See the README beside the folder.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/cli/importing/cron.d");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The job names of each file.
const NAMES: [&str; 25] = [
    "auditor",
    "certbot",
    "graphs.graphs-cron",
    "graphs.find",
    "latecron",
    "lists-web.manage",
    "lists-web.manage-runjobs-daily",
    "lists-web.manage-runjobs-weekly",
    "loadstat.sample-load",
    "loadstat.sample-load-60-2",
    "logscan",
    "mailfilter-new.mailfilter-new-cronjob",
    "mailfilter-new.mailfilter-new-cronjob-sa-clean",
    "news.daily",
    "news.newsctl",
    "news.batches",
    "php.sessionclean",
    "plugins-node.all",
    "poller",
    "raidcheck.verify",
    "scrub_all.scrub_all_cron",
    "scrub_all",
    "snapshots",
    "webstats.update",
    "webstats.buildstatic",
];

#[tokio::test]
async fn files_of_cron_d_become_jobs_named_after_them_with_the_same_firings() {
    let console = Console::new().await;
    let files = files();
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let tasks = console.file("unused", "").replace("unused", "tasks.toml");
    let import = [&["jobs", "import", "crontab"], &files[..], &["--tasks", &tasks]].concat();
    let ended = run(&import, &[], "").await.expect(9);
    // Five MAILTO and one @reboot.
    assert!(ended.stderr.contains("6 left out"), "{}", ended.stderr);
    let jobs = console.file("jobs.toml", &ended.stdout);
    let applied = console.json(&["jobs", "apply", "-f", &jobs]).await;
    let created: Vec<&str> =
        applied["created"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(created, NAMES);
    for name in created {
        let job = console.json(&["jobs", "show", name]).await;
        let policies = ["overlap", "misfire_policy", "max_retries", "max_timeouts", "max_crashes"];
        let policies = policies.map(|field| job[field].clone());
        assert_eq!(json!(policies), json!(["allow", "skip", 0, 1, 1]), "{name}");
        assert_eq!(job["timeout_ms"], 30 * 86_400_000_i64, "{name}");
        let jitter = if name == "certbot" { json!(43_200_000) } else { json!(null) };
        assert_eq!(job["jitter_ms"], jitter, "{name}");
    }
    let catalogue = std::fs::read_to_string(&tasks).unwrap();
    assert!(!catalogue.contains("sleep int"), "{catalogue}");
    assert!(catalogue.contains("&& certbot -q renew --no-random-sleep-on-renew"), "{catalogue}");
    if rustix::process::geteuid().is_root() {
        let catalogue = Catalogue::load(tasks.as_ref()).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(catalogue.get("php.sessionclean").is_some());
    }
}

#[tokio::test]
async fn an_added_line_changes_no_name_of_the_lines_above_it() {
    let lines = [
        "5-55/10 * * * * root sample 1 1",
        "59 23 * * * root sample 60 2",
        "@daily root sample 60 2",
        "@daily root sample 60 2",
    ];
    let names = async |count: usize| {
        let console = Console::new().await;
        let file = console.file("load", &(lines[..count].join("\n") + "\n"));
        let import = ["--json", "jobs", "import", "crontab", "--system", &file];
        let imported = run(&import, &[], "").await.expect(0).json();
        let text = imported["jobs_file"].as_str().unwrap();
        let jobs = sexton_model::jobs_file::parse("", text).unwrap();
        jobs.into_iter().map(|job| job.name).collect::<Vec<_>>()
    };
    let all = names(lines.len()).await;
    assert_eq!(all, ["load.sample", "load.sample-60-2", "load.sample-daily", "load.sample-2"]);
    for count in 1..lines.len() {
        assert_eq!(names(count).await, all[..count]);
    }
}
