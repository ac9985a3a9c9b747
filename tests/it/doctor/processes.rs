//! Schedulers and workers that are missing, silent, not ready, old, or too many.

use sexton_console::doctor::Code;
use sexton_tests::factory::NewJob;

use super::{Patient, evidence};

#[tokio::test]
async fn doctor_finds_no_scheduler() {
    let patient = Patient::new().await;
    patient.is_well().await;
    patient.sql("UPDATE instances SET stopped_at = now()").await;
    patient.has(Code::NoScheduler).await;
    // A worker is none.
    patient.process("worker", "w1", "ready => true").await;
    patient.has(Code::NoScheduler).await;
}

#[tokio::test]
async fn doctor_finds_process_silent() {
    let patient = Patient::new().await;
    let since = "ready => true, heartbeat_at => now() - interval '5 minutes'";
    patient.process("worker", "w9", since).await;
    let found = patient.has(Code::ProcessSilent).await;
    assert!(evidence(&found).contains("worker w9 for 5 m"), "{found}");
    assert_eq!(found["fix"], false, "it may come back");
}

#[tokio::test]
async fn doctor_finds_process_not_ready() {
    let patient = Patient::new().await;
    patient.process("worker", "w9", "ready => false").await;
    assert!(evidence(&patient.has(Code::ProcessNotReady).await).contains("worker w9"));
}

#[tokio::test]
async fn doctor_finds_versions_differ() {
    let patient = Patient::new().await;
    patient.process("worker", "w9", "ready => true, version => '0.0.9'").await;
    let found = patient.has(Code::VersionsDiffer).await;
    assert!(evidence(&found).contains("w9 0.0.9"), "{found}");
}

#[tokio::test]
async fn doctor_finds_connections_exceed() {
    let patient = Patient::new().await;
    patient.process("worker", "w8", "ready => true, db_connections => 8").await;
    patient.has_no(Code::ConnectionsExceed).await;
    patient.process("worker", "w9", "ready => true, db_connections => 100000").await;
    let found = patient.has(Code::ConnectionsExceed).await;
    assert!(evidence(&found).contains("100008 connections"), "{found}");
}

#[tokio::test]
async fn doctor_finds_pool_too_small() {
    let patient = Patient::new().await;
    patient.process("worker", "w8", "ready => true, db_connections => 8, slots => 400").await;
    patient.has_no(Code::PoolTooSmall).await;
    patient.process("worker", "w9", "ready => true, db_connections => 3, slots => 151").await;
    let found = patient.has(Code::PoolTooSmall).await;
    assert_eq!(evidence(&found), "w9 (151 slots, 3 connections)");
}

#[tokio::test]
async fn doctor_finds_pool_without_workers() {
    let patient = Patient::new().await;
    let job = NewJob { pool: "reports".to_owned(), ..NewJob::new("a.b") };
    job.insert(patient.platform.store().pool()).await.unwrap();
    let found = patient.has(Code::PoolWithoutWorkers).await;
    assert!(evidence(&found).contains("pool reports: 1 active jobs"), "{found}");
    patient.process("worker", "w1", "ready => true, pools => '{reports}'").await;
    patient.has_no(Code::PoolWithoutWorkers).await;
}

/// Real processes say what the doctor asks of them.
#[tokio::test]
async fn a_platform_with_a_scheduler_and_a_worker_is_well() {
    let mut patient = Patient::new().await;
    patient.platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    patient.sql("UPDATE instances SET stopped_at = now()").await;
    let mut scheduler = patient.platform.start_scheduler("s2", &[("DB_POOL_SIZE", "7")]).unwrap();
    let mut worker = patient.platform.start_worker("w2", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    patient
        .platform
        .eventually("both have said that they are ready", crate::process::IN_THE_END, async || {
            let said = "SELECT string_agg(name || ' ' || db_connections, ', ' ORDER BY name)
                        FROM instances WHERE ready AND stopped_at IS NULL";
            let said: Option<String> =
                sqlx::query_scalar(said).fetch_one(patient.platform.store().pool()).await.unwrap();
            (said.as_deref() == Some("s2 9, w2 9")).then_some(())
        })
        .await;
    patient.is_well().await;
}
