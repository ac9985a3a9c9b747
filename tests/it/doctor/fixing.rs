//! What `--fix` does, does twice, and leaves alone.

use std::time::Duration;

use lapin::options::QueueDeleteOptions;
use sexton_broker::PoolName;
use sexton_broker::names::retry_queue;
use sexton_console::doctor::Code;
use sexton_model::id::ProcessId;
use sexton_model::state::State;
use sexton_store::instances::{Introduction, heartbeat};
use sqlx::Row as _;

use super::{Patient, codes};

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
    assert_eq!(output.status.code(), Some(0), "what is left counts: {output}");
    patient.is_well().await;
    assert_eq!(patient.recorded().await, ["topology_missing"]);
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
    assert_eq!(patient.recorded().await.len(), 1);
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

#[tokio::test]
async fn a_process_that_is_dead_is_marked_and_one_that_comes_back_says_so() {
    let patient = Patient::new().await;
    let store = patient.platform.store();
    let who = Introduction {
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
    assert_eq!(codes(&again), codes(&answer));
    tokio::time::timeout(Duration::from_secs(30), patient.has(Code::LeasesOverdue)).await.unwrap();
}
