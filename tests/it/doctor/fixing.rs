//! What `--fix` does, does twice, and leaves alone.

use std::time::Duration;

use lapin::options::QueueDeleteOptions;
use sexton_broker::PoolName;
use sexton_broker::names::retry_queue;
use sexton_model::id::ProcessId;
use sexton_model::state::State;
use sexton_operations::doctor::Code;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::instances::{InstanceRegistration, heartbeat};
use sqlx::Row as _;

use super::{DoctorFixture, codes, findings_of, reports_severity};

impl DoctorFixture {
    /// The findings whose repair the audit knows, in order.
    async fn recorded(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT after ->> 'finding' FROM sexton.operator_actions WHERE action = 'doctor_fix' ORDER BY id",
        )
        .fetch_all(self.platform.store().pool())
        .await
        .unwrap()
    }
}

#[tokio::test]
async fn fix_declares_missing_topology_once() {
    let fixture = DoctorFixture::new().await;
    let gone = retry_queue(fixture.platform.namespace(), &PoolName::default_pool(), 5_000);
    let (channel, _connection) = fixture.channel().await;
    channel.queue_delete((*gone).into(), QueueDeleteOptions::default()).await.unwrap();
    fixture.has(Code::TopologyMissing).await;
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["code"], "topology_missing", "{output}");
    assert_eq!(answer["fixed"][0]["done"], true, "{output}");
    assert_eq!(findings_of(&answer), Vec::<String>::new(), "{output}");
    reports_severity(&output, &answer);
    fixture.is_well().await;
    assert_eq!(fixture.recorded().await, ["topology_missing"]);
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(fixture.recorded().await.len(), 1);
}

/// One of each that `--fix` would repair.
#[tokio::test]
async fn doctor_without_fix_changes_nothing() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Pending, 20, true).await;
    fixture.execution(State::Failed, 2, true).await;
    let dead = "ready => true, heartbeat_at => now() - interval '2 hours'";
    fixture.process("worker", "w9", dead).await;
    let gone = retry_queue(fixture.platform.namespace(), &PoolName::default_pool(), 5_000);
    let (channel, _connection) = fixture.channel().await;
    channel.queue_delete((*gone).into(), QueueDeleteOptions::default()).await.unwrap();
    let rows = async || -> Vec<String> {
        let all = "SELECT e::text FROM sexton.executions e UNION ALL SELECT i::text FROM sexton.instances i
            UNION ALL SELECT o::text FROM sexton.operator_actions o ORDER BY 1";
        sqlx::query_scalar(all).fetch_all(fixture.platform.store().pool()).await.unwrap()
    };
    let before = rows().await;
    for code in
        [Code::TicketsLost, Code::FailedWithoutMessages, Code::ProcessSilent, Code::TopologyMissing]
    {
        // Looks twice, as a program and as a person.
        assert_eq!(fixture.has(code).await["fix"], true, "it could have been repaired");
    }
    let (output, answer) = fixture.run(&[], &[]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(rows().await, before);
}

#[tokio::test]
async fn fix_republishes_lost_tickets_and_missing_messages() {
    let fixture = DoctorFixture::new().await;
    let lost = fixture.execution(State::Pending, 20, true).await;
    let failed = fixture.execution(State::Failed, 2, true).await;
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(fixture.recorded().await, ["tickets_lost", "failed_without_messages"], "{output}");
    for fixed in answer["fixed"].as_array().unwrap() {
        assert_eq!(fixed["done"], true, "{output}");
    }
    for id in [lost, failed] {
        let row = sqlx::query(
            "SELECT ticket_published_at IS NULL, state, attempt FROM sexton.executions WHERE id = $1",
        )
        .bind(id.get())
        .fetch_one(fixture.platform.store().pool())
        .await
        .unwrap();
        assert!(row.get::<bool, _>(0), "its ticket is unpublished");
        assert_eq!(row.get::<i32, _>(2), 1, "it is the same ticket");
    }
    assert!(!codes(&answer).iter().any(|code| code == "tickets_lost"), "{output}");
}

/// What a sweep holds is in no queue, and is not missing.
#[tokio::test]
async fn doctor_reports_no_missing_message_during_a_sweep() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Failed, 2, true).await;
    let sweep =
        ExclusiveLock::try_acquire(fixture.platform.store(), ExclusiveTask::Sweep, None).await;
    let sweep = sweep.unwrap().expect("nobody else sweeps");
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["code"], "failed_without_messages", "{output}");
    assert_eq!(answer["fixed"][0]["done"], false, "{output}");
    assert!(output.stdout.contains("a sweep is under way"), "{output}");
    let unpublished = "SELECT count(*) FROM sexton.executions WHERE ticket_published_at IS NULL";
    let unpublished = async || {
        let asking = sqlx::query_scalar::<_, i64>(unpublished);
        asking.fetch_one(fixture.platform.store().pool()).await.unwrap()
    };
    assert_eq!(unpublished().await, 0);
    sweep.release().await.unwrap();
    fixture.run(&[], &["--fix"]).await;
    assert_eq!(unpublished().await, 1);
}

#[tokio::test]
async fn fix_marks_a_dead_process_and_a_returning_process_registers_again() {
    let fixture = DoctorFixture::new().await;
    let store = fixture.platform.store();
    let who = InstanceRegistration {
        id: ProcessId::new(uuid::Uuid::now_v7()),
        kind: "worker",
        name: "w9".to_owned(),
        pid: 1,
        version: env!("CARGO_PKG_VERSION"),
        tz_version: None,
        pools: vec![],
        slots: 1,
        pool_slots: None,
        instance_lock: None,
        db_connections: 8,
    };
    heartbeat(store, &who, true, None).await.unwrap();
    fixture.process("worker", "w5", "heartbeat_at => now() - interval '5 minutes'").await;
    fixture
        .sql("UPDATE sexton.instances SET heartbeat_at = now() - interval '2 hours' WHERE name = 'w9'")
        .await;
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["what"], "marked as stopped: w9", "{output}");
    // The other was silent for minutes only.
    assert_eq!(fixture.has(Code::ProcessSilent).await["fix"], false);
    heartbeat(store, &who, true, None).await.unwrap();
    let back = "SELECT stopped_at IS NULL AND ready FROM sexton.instances WHERE name = 'w9'";
    assert!(sqlx::query_scalar::<_, bool>(back).fetch_one(store.pool()).await.unwrap());
}

#[tokio::test]
async fn fix_leaves_unsafe_findings_alone() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Running, 2, true).await;
    fixture.execution(State::Pending, 2, false).await;
    fixture.rubbish().await;
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(fixture.recorded().await, Vec::<String>::new());
    let (_, again) = fixture.run(&[], &[]).await;
    assert_eq!(findings_of(&again), findings_of(&answer));
    tokio::time::timeout(Duration::from_secs(30), fixture.has(Code::LeasesOverdue)).await.unwrap();
}
