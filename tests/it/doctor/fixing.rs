//! What `--fix` does, does twice, and leaves alone.

use std::time::Duration;

use lapin::options::QueueDeleteOptions;
use sexton_broker::PoolName;
use sexton_broker::names::retry_queue;
use sexton_console::doctor::Code;
use sexton_model::id::ProcessId;
use sexton_model::state::State;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::instances::{InstanceRegistration, heartbeat};
use sqlx::Row as _;

use super::{Patient, ailments, codes, says_the_worst};

impl Patient {
    /// The findings whose repair the audit knows, in order.
    async fn recorded(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT after ->> 'finding' FROM operator_actions WHERE action = 'doctor_fix' ORDER BY id",
        )
        .fetch_all(self.platform.store().pool())
        .await
        .unwrap()
    }
}

#[tokio::test]
async fn what_is_missing_on_the_broker_is_declared_and_a_second_time_there_is_nothing_to_do() {
    let patient = Patient::new().await;
    let gone = retry_queue(patient.platform.namespace(), &PoolName::default_pool(), 5_000);
    let (channel, _connection) = patient.channel().await;
    channel.queue_delete((*gone).into(), QueueDeleteOptions::default()).await.unwrap();
    patient.has(Code::TopologyMissing).await;
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["code"], "topology_missing", "{output}");
    assert_eq!(answer["fixed"][0]["done"], true, "{output}");
    assert_eq!(ailments(&answer), Vec::<String>::new(), "{output}");
    says_the_worst(&output, &answer);
    patient.is_well().await;
    assert_eq!(patient.recorded().await, ["topology_missing"]);
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(patient.recorded().await.len(), 1);
}

/// One of each that `--fix` would put right.
#[tokio::test]
async fn looking_alone_puts_nothing_right() {
    let patient = Patient::new().await;
    patient.execution(State::Pending, 20, true).await;
    patient.execution(State::Failed, 2, true).await;
    let dead = "ready => true, heartbeat_at => now() - interval '2 hours'";
    patient.process("worker", "w9", dead).await;
    let gone = retry_queue(patient.platform.namespace(), &PoolName::default_pool(), 5_000);
    let (channel, _connection) = patient.channel().await;
    channel.queue_delete((*gone).into(), QueueDeleteOptions::default()).await.unwrap();
    let rows = async || -> Vec<String> {
        let all = "SELECT e::text FROM executions e UNION ALL SELECT i::text FROM instances i
            UNION ALL SELECT o::text FROM operator_actions o ORDER BY 1";
        sqlx::query_scalar(all).fetch_all(patient.platform.store().pool()).await.unwrap()
    };
    let before = rows().await;
    for code in
        [Code::TicketsLost, Code::FailedWithoutMessages, Code::ProcessSilent, Code::TopologyMissing]
    {
        // Looks twice, as a program and as a person.
        assert_eq!(patient.has(code).await["fix"], true, "it could have been put right");
    }
    let (output, answer) = patient.run(&[], &[]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(rows().await, before);
}

#[tokio::test]
async fn lost_tickets_and_missing_messages_are_owed_again() {
    let patient = Patient::new().await;
    let lost = patient.execution(State::Pending, 20, true).await;
    let failed = patient.execution(State::Failed, 2, true).await;
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(patient.recorded().await, ["tickets_lost", "failed_without_messages"], "{output}");
    for fixed in answer["fixed"].as_array().unwrap() {
        assert_eq!(fixed["done"], true, "{output}");
    }
    for id in [lost, failed] {
        let row = sqlx::query(
            "SELECT ticket_published_at IS NULL, state, attempt FROM executions WHERE id = $1",
        )
        .bind(id.get())
        .fetch_one(patient.platform.store().pool())
        .await
        .unwrap();
        assert!(row.get::<bool, _>(0), "its ticket is owed");
        assert_eq!(row.get::<i32, _>(2), 1, "it is the same ticket");
    }
    assert!(!codes(&answer).iter().any(|code| code == "tickets_lost"), "{output}");
}

/// What a sweep holds is in no queue, and is not missing.
#[tokio::test]
async fn while_a_sweep_is_under_way_no_message_is_said_to_be_missing() {
    let patient = Patient::new().await;
    patient.execution(State::Failed, 2, true).await;
    let sweep =
        ExclusiveLock::try_acquire(patient.platform.store(), ExclusiveTask::Sweep, None).await;
    let sweep = sweep.unwrap().expect("nobody else sweeps");
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["code"], "failed_without_messages", "{output}");
    assert_eq!(answer["fixed"][0]["done"], false, "{output}");
    assert!(output.stdout.contains("a sweep is under way"), "{output}");
    let unpublished = "SELECT count(*) FROM executions WHERE ticket_published_at IS NULL";
    let unpublished = async || {
        let asking = sqlx::query_scalar::<_, i64>(unpublished);
        asking.fetch_one(patient.platform.store().pool()).await.unwrap()
    };
    assert_eq!(unpublished().await, 0);
    sweep.release().await.unwrap();
    patient.run(&[], &["--fix"]).await;
    assert_eq!(unpublished().await, 1);
}

#[tokio::test]
async fn a_process_that_is_dead_is_marked_and_one_that_comes_back_says_so() {
    let patient = Patient::new().await;
    let store = patient.platform.store();
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
        seat: None,
        db_connections: 8,
    };
    heartbeat(store, &who, true, None).await.unwrap();
    patient.process("worker", "w5", "heartbeat_at => now() - interval '5 minutes'").await;
    patient
        .sql("UPDATE instances SET heartbeat_at = now() - interval '2 hours' WHERE name = 'w9'")
        .await;
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"][0]["what"], "marked as stopped: w9", "{output}");
    // The other was silent for minutes only.
    assert_eq!(patient.has(Code::ProcessSilent).await["fix"], false);
    heartbeat(store, &who, true, None).await.unwrap();
    let back = "SELECT stopped_at IS NULL AND ready FROM instances WHERE name = 'w9'";
    assert!(sqlx::query_scalar::<_, bool>(back).fetch_one(store.pool()).await.unwrap());
}

#[tokio::test]
async fn what_is_not_safe_to_put_right_is_left_alone() {
    let patient = Patient::new().await;
    patient.execution(State::Running, 2, true).await;
    patient.execution(State::Pending, 2, false).await;
    patient.rubbish().await;
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(patient.recorded().await, Vec::<String>::new());
    let (_, again) = patient.run(&[], &[]).await;
    assert_eq!(ailments(&again), ailments(&answer));
    tokio::time::timeout(Duration::from_secs(30), patient.has(Code::LeasesOverdue)).await.unwrap();
}
