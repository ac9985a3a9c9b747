//! Notifications: a scheduler dead between claiming, sending and recording; and commands dead before they have answered.

use std::collections::BTreeMap;

use sexton_peers::http::{Seen, Server};

use super::{Scene, count, until};

const PENDING: &str = "sexton.notifications WHERE state = 'pending'";
const SENT: &str = "sexton.notifications WHERE state = 'sent'";
const NOTHING_DONE: Option<i32> = Some(4);

/// A platform with a channel to `server` and three notifications.
async fn with_notifications(server: &Server) -> Scene {
    let scene = Scene::plain().await;
    scene.parked(1).await;
    let pool = scene.platform.store().pool();
    let url = format!("http://{}/", server.address);
    sqlx::query(
        "INSERT INTO sexton.channels (name, kind, config, updated_at)
         VALUES ('ops', 'webhook', jsonb_build_object('url', $1::text, 'allow_private', true), now())",
    )
    .bind(url)
    .execute(pool)
    .await
    .unwrap();
    scene
        .sql(
            "WITH i AS (
                 INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, detail, state, opened_at,
                     changed_at)
                 SELECT gen_random_uuid(), 'job', 'made.' || n, 'made.' || n, 'failed', 'high', 'x', 'open', now(), now()
                 FROM generate_series(1, 3) n RETURNING id)
             INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
             SELECT gen_random_uuid(), id, 'ops', 'opened', 'x', now(), now() FROM i",
        )
        .await;
    scene
}

/// The successors send what is left, as if the lease of the dead were over. Returns how often each id arrived.
async fn sent_by_successors(
    scene: Scene,
    point: &str,
    server: &mut Server,
) -> BTreeMap<String, usize> {
    scene.sql("UPDATE sexton.channels SET next_send_at = NULL").await;
    scene.sql("UPDATE sexton.notifications SET due_at = created_at WHERE state = 'pending'").await;
    let successors = scene.successors();
    until(&scene.platform, SENT, 3).await;
    let tries: i64 = sqlx::query_scalar("SELECT sum(attempts) FROM sexton.notifications")
        .fetch_one(scene.platform.store().pool())
        .await
        .unwrap();
    scene.ends(successors, point, "state = 'failed'", [0, 0]).await;
    let mut arrived = BTreeMap::new();
    let unsent = i64::from(point == "scheduler.notification_claimed");
    for _ in 0..tries - unsent {
        if let Seen::Request(request) = server.next().await {
            *arrived.entry(request.header("webhook-id").unwrap().to_owned()).or_default() += 1;
        }
    }
    assert!(server.saw_nothing_more(), "{arrived:?}");
    assert_eq!(arrived.len(), 3, "each arrives, under one id: {arrived:?}");
    arrived
}

#[tokio::test]
async fn scheduler_notification_claimed() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_notifications(&server).await;
    scene.scheduler_dies("scheduler.notification_claimed").await;
    assert_eq!(count(&scene.platform, PENDING).await, 3);
    assert!(server.saw_nothing_more(), "nothing is sent before the claim is committed");
    let arrived = sent_by_successors(scene, "scheduler.notification_claimed", &mut server).await;
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}

#[tokio::test]
async fn scheduler_notification_accepted() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_notifications(&server).await;
    scene.scheduler_dies("scheduler.notification_accepted").await;
    assert_eq!(count(&scene.platform, PENDING).await, 3);
    let arrived = sent_by_successors(scene, "scheduler.notification_accepted", &mut server).await;
    let mut times: Vec<usize> = arrived.into_values().collect();
    times.sort_unstable();
    assert_eq!(times, [1, 1, 2], "the accepted one comes again, under its id");
}

#[tokio::test]
async fn scheduler_notification_recorded() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_notifications(&server).await;
    scene.scheduler_dies("scheduler.notification_recorded").await;
    assert_eq!(count(&scene.platform, PENDING).await, 2);
    let arrived = sent_by_successors(scene, "scheduler.notification_recorded", &mut server).await;
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}

#[tokio::test]
async fn console_alerts_applied() {
    let scene = Scene::plain().await;
    scene.parked(1).await;
    let file = scene.platform.folder().join("alerts.toml");
    std::fs::write(
        &file,
        "[[channel]]\nname = \"chat\"\nslack = { url = { env = \"SLACK_URL\" } }\n",
    )
    .unwrap();
    let command = ["alerts", "apply", "-f", file.to_str().unwrap()];
    scene.console_dies("console.alerts_applied", &command).await;
    assert_eq!(count(&scene.platform, "sexton.channels").await, 1);
    assert!(scene.command(&command).await.status.success());
    assert_eq!(scene.action_count("apply_alerts").await, 1);
    scene.ends(scene.successors(), "console.alerts_applied", "state = 'failed'", [0, 0]).await;
}

#[tokio::test]
async fn console_notifications_requeued() {
    let server = Server::answering("200 OK", "", "").await;
    let scene = with_notifications(&server).await;
    scene.sql("UPDATE sexton.notifications SET state = 'parked', finished_at = now()").await;
    let command = ["alerts", "requeue", "--channel", "ops", "--all-parked"];
    scene.console_dies("console.notifications_requeued", &command).await;
    assert_eq!(count(&scene.platform, PENDING).await, 3);
    assert_eq!(scene.command(&command).await.status.code(), NOTHING_DONE);
    let successors = scene.successors();
    until(&scene.platform, SENT, 3).await;
    scene.ends(successors, "console.notifications_requeued", "state = 'failed'", [0, 0]).await;
}

#[tokio::test]
async fn console_channel_tested() {
    let mut server = Server::answering("200 OK", "", "").await;
    let scene = with_notifications(&server).await;
    scene.sql("DELETE FROM sexton.incidents").await;
    let command = ["channels", "test", "ops", "--via-scheduler"];
    scene.console_dies("console.channel_tested", &command).await;
    assert_eq!(count(&scene.platform, PENDING).await, 1);
    let successors = scene.successors();
    assert!(server.request().await.body.contains("channel.test"));
    until(&scene.platform, SENT, 1).await;
    scene.ends(successors, "console.channel_tested", "state = 'failed'", [0, 0]).await;
}
