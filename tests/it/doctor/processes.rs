//! Schedulers and workers that are missing, silent, not ready, old, or too many.

use sexton_operations::doctor::Code;
use sexton_tests::factory::NewJob;

use super::{DoctorFixture, evidence};

#[tokio::test]
async fn doctor_finds_no_scheduler() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    fixture.sql("UPDATE sexton.instances SET stopped_at = now()").await;
    fixture.has(Code::NoScheduler).await;
    // A worker does not count as a scheduler.
    fixture.process("worker", "w1", "ready => true").await;
    fixture.has(Code::NoScheduler).await;
}

#[tokio::test]
async fn doctor_finds_process_silent() {
    let fixture = DoctorFixture::new().await;
    let since = "ready => true, heartbeat_at => now() - interval '5 minutes'";
    fixture.process("worker", "w9", since).await;
    let found = fixture.has(Code::ProcessSilent).await;
    assert!(evidence(&found).contains("worker w9 for 5 m"), "{found}");
    assert_eq!(found["fix"], false, "it may come back");
}

#[tokio::test]
async fn doctor_finds_process_not_ready() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w9", "ready => false").await;
    assert!(evidence(&fixture.has(Code::ProcessNotReady).await).contains("worker w9"));
}

#[tokio::test]
async fn doctor_finds_versions_differ() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w9", "ready => true, version => '0.0.9'").await;
    let found = fixture.has(Code::VersionsDiffer).await;
    assert!(evidence(&found).contains("w9 0.0.9"), "{found}");
}

#[tokio::test]
async fn doctor_finds_connections_exceed() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w8", "ready => true, db_connections => 8").await;
    fixture.has_no(Code::ConnectionsExceed).await;
    fixture.process("worker", "w9", "ready => true, db_connections => 100000").await;
    let found = fixture.has(Code::ConnectionsExceed).await;
    assert!(evidence(&found).contains("100008 connections"), "{found}");
}

#[tokio::test]
async fn doctor_finds_pool_too_small() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w8", "ready => true, db_connections => 8, slots => 400").await;
    fixture.has_no(Code::PoolTooSmall).await;
    fixture.process("worker", "w9", "ready => true, db_connections => 3, slots => 151").await;
    let found = fixture.has(Code::PoolTooSmall).await;
    assert_eq!(evidence(&found), "w9 (151 slots, 3 connections)");
}

#[tokio::test]
async fn doctor_finds_pool_without_workers() {
    let fixture = DoctorFixture::new().await;
    let job = NewJob { pool: "reports".to_owned(), ..NewJob::new("a.b") };
    job.insert(fixture.platform.store().pool()).await.unwrap();
    let found = fixture.has(Code::PoolWithoutWorkers).await;
    assert!(evidence(&found).contains("pool reports: 1 active jobs"), "{found}");
    fixture.process("worker", "w1", "ready => true, pools => '{reports}'").await;
    fixture.has_no(Code::PoolWithoutWorkers).await;
}

/// Real processes say what the doctor asks of them.
#[tokio::test]
async fn a_platform_with_a_scheduler_and_a_worker_is_healthy() {
    let mut fixture = DoctorFixture::new().await;
    fixture.platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    fixture.sql("UPDATE sexton.instances SET stopped_at = now()").await;
    let mut scheduler = fixture.platform.start_scheduler("s2", &[("DB_POOL_SIZE", "7")]).unwrap();
    let mut worker = fixture.platform.start_worker("w2", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    fixture
        .platform
        .eventually(
            "both have logged that they are ready",
            crate::process::FINAL_TIMEOUT,
            async || {
                let query = "SELECT string_agg(name || ' ' || db_connections, ', ' ORDER BY name)
                        FROM sexton.instances WHERE ready AND stopped_at IS NULL";
                let query: Option<String> = sqlx::query_scalar(query)
                    .fetch_one(fixture.platform.store().pool())
                    .await
                    .unwrap();
                (query.as_deref() == Some("s2 9, w2 9")).then_some(())
            },
        )
        .await;
    fixture.is_well().await;
}
