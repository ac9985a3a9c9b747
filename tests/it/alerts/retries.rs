//! Retries: the waits, the same id, the end after three days, and one channel that does not delay another.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_peers::http::{Act, Server};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::alerts::claim::{ClaimFilter, Claimed, claim};
use uuid::Uuid;

use super::kinds::verified;
use super::{Fixture, at};

/// The seconds from an instant to the next try.
async fn waits(f: &Fixture, seconds: i64) -> i64 {
    let next: DateTime<Utc> = sqlx::query_scalar(
        "SELECT greatest(n.due_at, c.next_send_at) FROM sexton.notifications n, sexton.channels c",
    )
    .fetch_one(f.db.pool())
    .await
    .unwrap();
    (next - at(seconds)).num_seconds()
}

#[tokio::test]
async fn each_retry_has_the_same_id_and_waits_about_twice_as_long() {
    let f = Fixture::new().await;
    let mut server = Server::answering("503 Service Unavailable", "", "").await;
    f.webhook("ops", &server).await;
    let (_, id) = f.opened("billing.run", "ops", 0).await;
    let (mut now, mut changes) = (0, Vec::new());
    for wanted in [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600] {
        let report = f.run(now).await;
        assert_eq!(report.failed, 1, "at {now}");
        changes.extend(report.changes);
        assert_eq!(verified(&server.request().await), id);
        let wait = waits(&f, now).await;
        assert!(
            (wanted * 3 / 4 - 1..=wanted * 5 / 4).contains(&wait),
            "{wait} instead of {wanted}"
        );
        assert_eq!(f.run(now + wait - 1).await.failed, 0, "too early");
        now += wait + 1;
    }
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes[0].error.as_ref().is_some_and(|error| error.contains("503")));
    assert_eq!(f.number("SELECT failures::bigint FROM sexton.channels").await, 11);
}

#[tokio::test]
async fn a_channel_that_works_again_is_reported_and_has_no_failures() {
    let f = Fixture::new().await;
    let down = Act::answer("500 Internal Server Error", "", "");
    let up = Act::answer("200 OK", "", "");
    let server = Server::start(vec![down.clone(), down.clone(), down, up]).await;
    f.webhook("ops", &server).await;
    f.opened("billing.run", "ops", 0).await;
    f.channel("mail", "email", serde_json::json!({})).await;
    f.sql("INSERT INTO sexton.routes (position, channels) VALUES (1, '{ops,mail}')").await;
    let mut changes = Vec::new();
    for now in [0, 60, 120] {
        changes.extend(f.run(now).await.changes);
    }
    // Its failure is an incident for the other channels, and its end is one's end.
    let incident = "SELECT cause || ' ' || state || ' ' || subject FROM sexton.incidents WHERE subject_kind = 'channel'";
    assert_eq!(f.texts(incident).await, ["channel_fails open ops"]);
    let to = "SELECT n.channel || ' ' || n.kind FROM sexton.notifications n JOIN sexton.incidents i ON i.id = n.incident_id
              WHERE i.subject_kind = 'channel' ORDER BY n.created_at";
    assert_eq!(f.texts(to).await, ["mail opened"]);
    changes.extend(f.run(240).await.changes);
    assert_eq!(f.texts(incident).await, ["channel_fails resolved ops"]);
    assert_eq!(f.texts(to).await, ["mail opened", "mail resolved"]);
    f.sql("DELETE FROM sexton.incidents WHERE subject_kind = 'channel'").await;
    let errors: Vec<bool> = changes.iter().map(|change| change.error.is_some()).collect();
    assert_eq!(errors, [true, false], "{changes:?}");
    assert_eq!(f.states().await, ["opened sent 4"]);
    let clear = "SELECT count(*) FROM sexton.channels
                 WHERE failures = 0 AND failing_since IS NULL AND next_send_at IS NULL AND last_sent_at IS NOT NULL";
    assert_eq!(f.number(clear).await, 1);
}

#[tokio::test]
async fn a_receiver_says_how_long_to_wait_up_to_an_hour() {
    for (header, least, most) in [("120", 120, 121), ("99999", 3_600, 3_601), ("1", 7, 13)] {
        let f = Fixture::new().await;
        let header = format!("Retry-After: {header}\r\n");
        let server = Server::answering("429 Too Many Requests", &header, "").await;
        f.webhook("ops", &server).await;
        f.opened("billing.run", "ops", 0).await;
        f.run(0).await;
        let wait = waits(&f, 0).await;
        assert!((least..=most).contains(&wait), "{header}: {wait}");
    }
}

#[tokio::test]
async fn a_notification_that_a_receiver_refuses_does_not_hold_up_those_of_others() {
    let f = Fixture::new().await;
    let refuse = Act::answer("400 Bad Request", "", "");
    let server = Server::start(vec![refuse, Act::answer("200 OK", "", "")]).await;
    f.webhook("ops", &server).await;
    f.opened("bad", "ops", 0).await;
    f.opened("good", "ops", 1).await;
    f.run(1).await;
    assert_eq!(f.states().await, ["opened pending 1", "opened pending 0"]);
    f.run(20).await;
    assert_eq!(f.states().await, ["opened pending 1", "opened sent 1"]);
    f.run(400).await;
    assert_eq!(f.states().await, ["opened sent 2", "opened sent 1"]);
}

#[tokio::test]
async fn after_three_days_a_notification_is_parked_and_a_requeue_gives_it_three_more() {
    const DAY: i64 = 86_400;
    let f = Fixture::new().await;
    let server = Server::answering("500 Internal Server Error", "", "").await;
    f.webhook("ops", &server).await;
    let (_, id) = f.opened("billing.run", "ops", 0).await;
    f.run(0).await;
    f.run(3 * DAY - 10).await;
    assert_eq!(f.states().await, ["opened pending 2"]);
    let report = f.run(3 * DAY + 100).await;
    assert_eq!((report.failed, report.parked), (1, 1));
    assert_eq!(f.states().await, ["opened parked 3"]);
    assert_eq!(f.run(4 * DAY).await.failed, 0);
    let requeue = ["alerts", "requeue", &id.to_string(), "--reason", "the receiver is back"];
    f.command(&requeue).await.expect(0);
    f.command(&requeue).await.expect(4);
    assert_eq!(f.states().await, ["opened pending 3"]);
    assert_eq!(
        f.number(
            "SELECT count(*) FROM sexton.operator_actions WHERE action = 'requeue_notifications'"
        )
        .await,
        1
    );
    f.sql("UPDATE sexton.notifications SET due_at = created_at").await;
    f.run(4 * DAY).await;
    assert_eq!(f.states().await, ["opened pending 4"]);
}

#[tokio::test]
async fn what_a_dead_scheduler_had_claimed_is_sent_when_its_lease_is_over() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    f.webhook("ops", &server).await;
    let (_, id) = f.opened("billing.run", "ops", 0).await;
    let filter = ClaimFilter { busy: &[], allows_failing: true };
    let claimed = claim(f.db.store(), filter, Uuid::now_v7(), Some(at(0))).await.unwrap();
    assert!(matches!(claimed, Claimed::Delivery(claim) if claim.ids() == [id]));
    assert_eq!(f.run(59).await.accepted, 0, "it may still be sending");
    assert_eq!(f.run(61).await.accepted, 1);
    assert_eq!(verified(&server.request().await), id);
    assert_eq!(f.states().await, ["opened sent 2"]);
}

#[tokio::test]
async fn a_channel_that_hangs_does_not_delay_another() {
    let f = Fixture::new().await;
    let mut hanging = Server::start(vec![Act::Hang]).await;
    let mut works = Server::answering("200 OK", "", "").await;
    f.webhook("a-hangs", &hanging).await;
    f.webhook("works", &works).await;
    for number in 0..10 {
        let incident = f.incident(&format!("job.{number}")).await;
        f.notification(incident, "a-hangs", "opened", 0).await;
        f.notification(incident, "works", "opened", 0).await;
    }
    let sender = f.sender_within(Duration::from_mins(5));
    let round = tokio::spawn(async move { sender.run_once(Some(at(1))).await });
    hanging.request().await;
    // Each of these arrives while the other channel's receiver still hangs.
    for _ in 0..10 {
        works.request().await;
    }
    assert!(hanging.saw_nothing_more(), "one message at a time, and it is not over");
    round.abort();
}
