//! Heartbeats: a scheduler dead between claiming, sending and recording.

use std::collections::BTreeMap;

use sexton_peers::http::{Seen, Server};

use super::{JOB, Scene, count, until};

const PENDING: &str = "sexton.heartbeats WHERE state = 'pending'";
const SENT: &str = "sexton.heartbeats WHERE state = 'sent'";

/// A platform with a job that reports to `server`, and three heartbeats.
async fn with_heartbeats(server: &Server) -> Scene {
    let scene = Scene::plain().await;
    scene.parked(1).await;
    sqlx::query(
        "UPDATE sexton.jobs SET heartbeat = jsonb_build_object(
             'url', $2::text, 'on', '[\"start\", \"success\", \"failure\"]'::jsonb, 'allow_private', true) WHERE name = $1",
    )
    .bind(JOB)
    .bind(format!("http://{}/ping", server.address))
    .execute(scene.platform.store().pool())
    .await
    .unwrap();
    scene
        .sql(
            "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at)
             SELECT j.id, gen_random_uuid(), 1, 'success', sexton.heartbeat_address(j.heartbeat), now(), now()
             FROM sexton.jobs j, generate_series(1, 3) WHERE j.heartbeat IS NOT NULL",
        )
        .await;
    scene
}

/// The successors send what is left, as if the lease of the dead were over. Returns how often each run arrived.
async fn sent_by_successors(scene: Scene, point: &str, server: &mut Server) -> Vec<usize> {
    scene.sql("UPDATE sexton.heartbeat_addresses SET next_send_at = NULL").await;
    scene.sql("UPDATE sexton.heartbeats SET due_at = created_at WHERE state = 'pending'").await;
    let successors = scene.successors();
    until(&scene.platform, SENT, 3).await;
    let tries: i64 = sqlx::query_scalar("SELECT sum(tries) FROM sexton.heartbeats")
        .fetch_one(scene.platform.store().pool())
        .await
        .unwrap();
    scene.ends(successors, point, "state = 'failed'", [0, 0]).await;
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    let unsent = i64::from(point == "scheduler.heartbeat_claimed");
    for _ in 0..tries - unsent {
        if let Seen::Request(request) = server.next().await {
            let line = request.head.lines().next().unwrap().to_owned();
            *arrived.entry(line).or_default() += 1;
        }
    }
    assert!(server.saw_nothing_more(), "{arrived:?}");
    assert_eq!(arrived.len(), 3, "each arrives, with its run: {arrived:?}");
    let mut times: Vec<usize> = arrived.into_values().collect();
    times.sort_unstable();
    times
}

#[tokio::test]
async fn scheduler_heartbeat_claimed() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_heartbeats(&server).await;
    scene.scheduler_dies("scheduler.heartbeat_claimed").await;
    assert_eq!(count(&scene.platform, PENDING).await, 3);
    assert!(server.saw_nothing_more(), "nothing is sent before the claim is committed");
    let times = sent_by_successors(scene, "scheduler.heartbeat_claimed", &mut server).await;
    assert_eq!(times, [1, 1, 1]);
}

#[tokio::test]
async fn scheduler_heartbeat_accepted() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_heartbeats(&server).await;
    scene.scheduler_dies("scheduler.heartbeat_accepted").await;
    assert_eq!(count(&scene.platform, PENDING).await, 3);
    let times = sent_by_successors(scene, "scheduler.heartbeat_accepted", &mut server).await;
    assert_eq!(times, [1, 1, 2], "the accepted one comes again, with its run");
}

#[tokio::test]
async fn scheduler_heartbeat_recorded() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_heartbeats(&server).await;
    scene.scheduler_dies("scheduler.heartbeat_recorded").await;
    assert_eq!(count(&scene.platform, PENDING).await, 2);
    let times = sent_by_successors(scene, "scheduler.heartbeat_recorded", &mut server).await;
    assert_eq!(times, [1, 1, 1]);
}
