//! Whole flows by the real programs, some of which die.

use sexton_tests::platform::Platform;

use crate::process::{count, until};

const CATALOGUE: &str = r#"
[tasks.extract]
command = ["/bin/sh", "-c", "echo '{\"rows\": 3}' > $SEXTON_RESULT_FILE"]

[tasks.load]
command = ["/bin/sh", "-c", "test -e bank"]
retry = { max_retries = 0 }

[tasks.slow]
command = ["/bin/sleep", "2"]

[tasks.report]
command = ["/bin/true"]
"#;

const JOBS: &str = r#"
[[job]]
name = "etl.extract"
task = "extract"
[[job]]
name = "etl.load"
task = "load"
[[job]]
name = "etl.slow"
task = "slow"
[[job]]
name = "etl.report"
task = "report"
overlap = "queue"

[[flow]]
job = "etl.extract"
[[flow.member]]
name = "load"
job = "etl.load"
after = ["start"]
results = { rows = "{{ upstream.start.result.rows }}" }
[[flow.member]]
name = "slow"
job = "etl.slow"
after = ["start"]
[[flow.member]]
name = "report"
job = "etl.report"
after = ["load", "slow"]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_run_to_their_ends_although_scheduler_and_worker_are_killed_meanwhile() {
    const FLOWS: i64 = 20;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(CATALOGUE);
    platform.apply(JOBS).await.unwrap();
    let fast = [("LEASE_MS", "2000")];
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &fast).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    for _ in 0..FLOWS {
        let triggered = platform.sexton(&["jobs", "trigger", "etl.extract"]).await;
        assert!(triggered.status.success(), "{triggered}");
    }
    // Each `load` parks, and holds up its flow; `slow` runs meanwhile.
    let of = |name: &str, state: &str| {
        format!(
            "sexton.flow_members m JOIN sexton.executions e ON e.id = m.execution_id
             WHERE m.name = '{name}' AND e.state = '{state}'"
        )
    };
    until(&platform, &of("load", "failed"), FLOWS).await;
    worker.kill();
    scheduler.kill();
    let mut scheduler = platform.start_scheduler("s2", &[]).unwrap();
    let mut worker = platform.start_worker("w2", &fast).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    until(&platform, &of("slow", "succeeded"), FLOWS).await;
    assert_eq!(count(&platform, &of("report", "pending")).await, FLOWS);
    assert_eq!(count(&platform, "sexton.flows WHERE open = 2").await, FLOWS);
    let filled = "sexton.executions WHERE task_type = 'load' AND params = '{\"rows\": 3}'";
    assert_eq!(count(&platform, filled).await, FLOWS);
    std::fs::write(platform.folder().join("bank"), "").unwrap();
    let requeue = ["failed", "requeue", "--all", "--yes", "--reason", "the bank is back"];
    let requeued = platform.sexton(&requeue).await;
    assert!(requeued.status.success(), "{requeued}");
    until(&platform, "sexton.flows WHERE ended_at IS NOT NULL AND open = 0", FLOWS).await;
    assert_eq!(count(&platform, &of("report", "succeeded")).await, FLOWS);
    assert_eq!(count(&platform, "sexton.executions WHERE state <> 'succeeded'").await, 0);
}
