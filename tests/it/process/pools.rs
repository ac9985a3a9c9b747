//! Workers that serve several pools, and pools that nobody serves.

use sexton_tests::platform::Platform;

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, count, until};

/// A job for each of two pools.
const JOBS: &str = r#"
[[job]]
name = "a.plain"
task = "work"

[[job]]
name = "a.report"
task = "work"
pool = "reports"
"#;

async fn trigger(platform: &Platform, job: &str, times: usize) {
    for _ in 0..times {
        let done = platform.sexton(&["jobs", "trigger", job]).await;
        assert!(done.status.success(), "{done}");
    }
}

/// What `sexton status --json` says of a pool.
async fn pool(platform: &Platform, name: &str) -> serde_json::Value {
    let status = platform.sexton_json(&["status"]).await;
    let pools = status["pools"].as_array().unwrap();
    pools.iter().find(|pool| pool["pool"] == name).cloned().unwrap()
}

#[tokio::test]
async fn a_worker_runs_the_tasks_of_each_pool_in_that_pool_s_slots() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, "while ! test -e go; do sleep 0.05; done");
    platform.catalogue(&ledger.catalogue());
    platform.apply(JOBS).await.unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let pools = [("WORKER_POOLS", "default:1,reports:2")];
    let mut worker = platform.start_worker("w1", &pools).unwrap();
    worker.ready().await;
    trigger(&platform, "a.plain", 3).await;
    trigger(&platform, "a.report", 4).await;
    let running = |pool| format!("sexton.executions WHERE state = 'running' AND pool = '{pool}'");
    until(&platform, &running("default"), 1).await;
    until(&platform, &running("reports"), 2).await;
    // The rest could begin: its tickets are in the queues.
    until(&platform, "sexton.executions WHERE ticket_published_at IS NOT NULL", 7).await;
    assert_eq!(count(&platform, &running("default")).await, 1);
    assert_eq!(count(&platform, &running("reports")).await, 2);
    assert_eq!(
        (&pool(&platform, "default").await["slots"], ledger.lines("begin").len()),
        (&1.into(), 3)
    );
    assert_eq!(pool(&platform, "reports").await["slots"], 2);
    std::fs::write(platform.folder().join("go"), "").unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 1", 7).await;
    ledger.no_overlap();
}

#[tokio::test]
async fn status_reports_a_pool_without_workers_and_its_waiting_executions() {
    let mut platform = Platform::new().await.unwrap();
    let ledger = Ledger::new(&platform, ":");
    platform.catalogue(&ledger.catalogue());
    platform.apply(JOBS).await.unwrap();
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    scheduler.ready().await;
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    let warnings = async || platform.sexton_json(&["status"]).await["warnings"].clone();
    let found = warnings().await;
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["pool"]),
        (&"pool_without_workers".into(), &"reports".into())
    );
    assert_eq!((&found[0]["waiting"], &found[0]["jobs"]), (&0.into(), &1.into()));
    trigger(&platform, "a.report", 2).await;
    let found = warnings().await;
    assert_eq!(found[0]["waiting"], 2);
    assert!(found[0]["oldest_due_ms"].as_i64().is_some_and(|ms| ms >= 0), "{found}");
    // The text warns, too; the exit status is 0 all the same.
    let status = platform.sexton(&["status"]).await;
    assert!(status.status.success(), "{status}");
    assert!(
        status.stdout.contains("no worker takes tasks from pool reports: 2 wait there"),
        "{status}"
    );
    // Neither a worker of another pool nor one that has stopped serves it.
    let mut other = platform.start_worker("w2", &[("WORKER_POOLS", "reports:3")]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
    platform
        .eventually("no warning is left", FINAL_TIMEOUT, async || {
            warnings().await.as_array().is_some_and(Vec::is_empty).then_some(())
        })
        .await;
    other.terminate();
    assert!(other.exit(FINAL_TIMEOUT).await.success());
    assert_eq!(warnings().await[0]["pool"], "reports");
}
