//! Each kind of channel, to a real server that accepts, refuses or misbehaves.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_outbound::channel::webhook;
use sexton_peers::http::{Act, Request, Server};
use sexton_peers::smtp;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use uuid::Uuid;

use super::{Fixture, HOOK_SECRET, at};

fn body(request: &Request) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

/// Checks a webhook as its receiver does; returns its id.
pub(super) fn verified(request: &Request) -> Uuid {
    let header = |name: &str| request.header(name).unwrap();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp").parse().unwrap());
    let expected = webhook::signature(HOOK_SECRET, id, timestamp, &request.body).unwrap();
    assert_eq!(header("webhook-signature"), expected);
    id.parse().unwrap()
}

#[tokio::test]
async fn a_webhook_is_signed_and_has_the_notifications_id() {
    let f = Fixture::new().await;
    let mut server = Server::answering("204 No Content", "", "").await;
    f.webhook("ops", &server).await;
    let (incident, id) = f.opened("billing.run", "ops", 0).await;
    assert_eq!(f.run(5).await.accepted, 1);
    let request = server.request().await;
    assert_eq!(verified(&request), id);
    assert_eq!(request.header("webhook-timestamp"), Some("1800000005"));
    let body = body(&request);
    assert_eq!(body["type"], "incident.opened");
    assert_eq!(body["data"]["incident"]["id"], incident.to_string());
    assert_eq!(body["data"]["title"], "OPENED high: billing.run failed");
    assert_eq!(f.states().await, ["opened sent 1"]);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.incident_events WHERE kind = 'sent'").await,
        1
    );
    assert_eq!(f.run(6).await.accepted, 0);
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn slack_pagerduty_and_alertmanager_receive_their_forms() {
    let f = Fixture::new().await;
    let mut servers = Vec::new();
    for status in ["200 OK", "202 Accepted", "200 OK"] {
        servers.push(Server::answering(status, "", "ok").await);
    }
    let url = |number: usize| format!("http://{}/{number}", servers[number].address);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slack");
    std::fs::write(&file, url(0) + "\n").unwrap();
    f.channel("chat", "slack", json!({"url": {"file": file}, "allow_private": true})).await;
    let key = json!({"env": "PD"});
    let pager = json!({"routing_key": key, "url": url(1), "allow_private": true});
    f.channel("pager", "pagerduty", pager).await;
    let alerts = json!({"url": url(2), "authorization": {"env": "AM"}, "allow_private": true});
    f.channel("am", "alertmanager", alerts).await;
    let incident = f.incident("billing.run").await;
    for channel in ["chat", "pager", "am"] {
        f.notification(incident, channel, "opened", 0).await;
    }
    let other = f.incident("billing.two").await;
    f.notification(other, "am", "opened", 1).await;
    assert_eq!(f.run(1).await.accepted, 3);

    let chat = body(&servers[0].request().await);
    assert_eq!(chat["text"], "OPENED high: billing.run failed");
    let event = body(&servers[1].request().await);
    assert_eq!(
        (&event["event_action"], &event["routing_key"]),
        (&json!("trigger"), &json!("routing-key"))
    );
    assert_eq!(event["dedup_key"], incident.to_string());
    let request = servers[2].request().await;
    assert!(request.head.starts_with("POST /2/api/v2/alerts HTTP/1.1"), "{}", request.head);
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    let names: Vec<Value> =
        body(&request).as_array().unwrap().iter().map(|one| one["labels"]["job"].clone()).collect();
    assert_eq!(names, ["billing.run", "billing.two"], "one request for both");

    f.sql("UPDATE sexton.incidents SET state = 'resolved', resolved_at = opened_at WHERE name = 'billing.run'").await;
    for channel in ["pager", "am"] {
        f.notification(incident, channel, "resolved", 10).await;
    }
    f.run(11).await;
    assert_eq!(body(&servers[1].request().await)["event_action"], "resolve");
    let ended = body(&servers[2].request().await);
    assert_eq!(ended[0]["endsAt"], "2027-01-15T08:00:00.000Z");
}

#[tokio::test]
async fn mails_of_one_incident_form_a_thread() {
    let f = Fixture::new().await;
    let mut server = smtp::Server::start(smtp::Script::default()).await;
    let settings = json!({
        "smtp": format!("smtp://127.0.0.1:{}", server.port),
        "from": "Sexton <sexton@example.org>", "to": ["ops@example.org", "b@example.org"],
    });
    f.channel("mail", "email", settings).await;
    let (incident, _) = f.opened("billing.run", "mail", 0).await;
    f.run(1).await;
    let first = server.conversation().await;
    assert!(first.contains("RCPT TO:<b@example.org>"), "{first}");
    assert!(first.contains("\nSubject: [Sexton] OPENED high: billing.run failed\n"), "{first}");
    let header = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned))
    };
    let id = header(&first, "Message-ID");
    f.sql("UPDATE sexton.incidents SET state = 'resolved', resolved_at = opened_at").await;
    f.notification(incident, "mail", "resolved", 2).await;
    assert_eq!(f.run(3).await.accepted, 1);
    let end = server.conversation().await;
    assert!(id.is_some());
    assert_eq!(header(&end, "In-Reply-To"), id);
    assert_eq!(header(&end, "References"), id);
    assert_ne!(header(&end, "Message-ID"), id);
}

#[tokio::test]
async fn a_receiver_that_fails_leaves_the_notification_and_its_reason() {
    let hanging = Server::start(vec![Act::Hang]).await;
    let slow =
        Act::Repeat("HTTP/1.1 200 OK\r\n".into(), "X: y\r\n".into(), Duration::from_millis(20));
    let slow = Server::start(vec![slow]).await;
    let broken = Server::start(vec![Act::Say("nonsense\r\n\r\n".into())]).await;
    let failing = Server::answering("500 Internal Server Error", "", "out of disk").await;
    let encrypted = Server::start_encrypted(vec![Act::answer("200 OK", "", "")]).await;
    let gone = Server::answering("200 OK", "", "").await;
    let nobody = gone.address;
    drop(gone);
    let url = |scheme: &str, address| format!("{scheme}://{address}/");
    for (url, allow_private, reason) in [
        (url("http", hanging.address), true, "within 2"),
        (url("http", slow.address), true, "within 2"),
        (url("http", broken.address), true, "no answer"),
        (url("http", failing.address), true, "500 Internal Server Error: out of disk"),
        (format!("https://localhost:{}/", encrypted.address.port()), true, "no TLS with localhost"),
        (url("http", nobody), true, "cannot connect"),
        (url("http", failing.address), false, "a loopback address; allow_private = true"),
    ] {
        let f = Fixture::new().await;
        f.channel("ops", "webhook", json!({"url": url, "allow_private": allow_private})).await;
        f.opened("billing.run", "ops", 0).await;
        let round = f.sender_within(Duration::from_secs(2));
        let report = round.run_once(Some(at(1))).await.unwrap();
        assert_eq!((report.accepted, report.failed), (0, 1), "{url}");
        let error = f.texts("SELECT last_error FROM sexton.notifications").await.remove(0);
        assert!(error.contains(reason), "{url}: {error}");
        assert_eq!(f.texts("SELECT last_error FROM sexton.channels").await, [error]);
        assert_eq!(f.states().await, ["opened pending 1"]);
    }
}

#[tokio::test]
async fn a_missing_secret_and_unreadable_settings_are_failures_that_name_no_value() {
    let f = Fixture::new().await;
    let server = Server::answering("403 Forbidden", "", "Bearer hunter2 is no key").await;
    let url = format!("http://{}", server.address);
    f.channel(
        "am",
        "alertmanager",
        json!({"url": url, "authorization": {"env": "AM"}, "allow_private": true}),
    )
    .await;
    f.channel("chat", "slack", json!({"url": {"env": "ABSENT"}})).await;
    f.channel("odd", "webhook", json!({"uri": 7})).await;
    let incident = f.incident("billing.run").await;
    for channel in ["am", "chat", "odd"] {
        f.notification(incident, channel, "opened", 0).await;
    }
    assert_eq!(f.run(1).await.failed, 3);
    let errors = f.texts("SELECT last_error FROM sexton.channels ORDER BY name").await;
    assert_eq!(errors[0], "the answer was 403 Forbidden: … is no key");
    assert_eq!(errors[1], "the secret of the variable ABSENT is not set");
    assert!(
        errors[2].starts_with("the channel's settings cannot be read: missing field"),
        "{errors:?}"
    );
}
