//! Which notifications are sent, in which order, and which nobody needs any more.

use sexton_peers::http::{Act, Server};
use uuid::Uuid;

use super::Fixture;
use super::kinds::verified;

const RESOLVE: &str = "UPDATE sexton.incidents SET state = 'resolved', resolved_at = opened_at";
const ACKNOWLEDGE: &str = "UPDATE sexton.incidents SET state = 'acknowledged'";

async fn fixture() -> (Fixture, Server, Uuid) {
    let f = Fixture::new().await;
    let server = Server::answering("200 OK", "", "").await;
    f.webhook("ops", &server).await;
    let incident = f.incident("billing.run").await;
    (f, server, incident)
}

#[tokio::test]
async fn an_incidents_messages_arrive_in_the_order_in_which_they_were_written() {
    let f = Fixture::new().await;
    let down = Act::answer("500 Internal Server Error", "", "");
    let mut server = Server::start(vec![down, Act::answer("200 OK", "", "")]).await;
    f.webhook("ops", &server).await;
    let incident = f.incident("billing.run").await;
    let opened = f.notification(incident, "ops", "opened", 0).await;
    f.run(0).await;
    assert_eq!(verified(&server.request().await), opened);
    f.sql(RESOLVE).await;
    let resolved = f.notification(incident, "ops", "resolved", 5).await;
    // The channel may be sent to again, but the opening is not due yet.
    f.sql("UPDATE sexton.channels SET next_send_at = NULL").await;
    f.run(6).await;
    assert_eq!(f.states().await, ["opened pending 1", "resolved pending 0"]);
    // Nothing could be sent, so the channel was not claimed in vain.
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.channels WHERE next_send_at IS NULL").await,
        1
    );
    f.run(60).await;
    assert_eq!(verified(&server.request().await), opened);
    assert_eq!(verified(&server.request().await), resolved);
}

#[tokio::test]
async fn of_an_incident_that_was_over_before_it_was_sent_nothing_is() {
    let (f, mut server, incident) = fixture().await;
    f.notification(incident, "ops", "opened", 0).await;
    f.sql(RESOLVE).await;
    f.notification(incident, "ops", "resolved", 1).await;
    assert_eq!(f.run(2).await.dropped, 2);
    assert_eq!(f.states().await, ["opened dropped 0", "resolved dropped 0"]);
    assert!(server.saw_nothing_more());
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.incident_events WHERE kind = 'dropped'").await,
        2
    );
}

#[tokio::test]
async fn a_response_drops_reminders_and_escalations() {
    let (f, _server, incident) = fixture().await;
    f.notification(incident, "ops", "opened", 0).await;
    f.run(0).await;
    f.notification(incident, "ops", "reminder", 1).await;
    f.notification(incident, "ops", "escalated", 2).await;
    f.sql(ACKNOWLEDGE).await;
    f.notification(incident, "ops", "acknowledged", 3).await;
    f.run(4).await;
    let expected =
        ["opened sent 1", "reminder dropped 0", "escalated dropped 0", "acknowledged sent 1"];
    assert_eq!(f.states().await, expected);
}

#[tokio::test]
async fn a_silence_lets_only_the_end_through() {
    let (f, _server, incident) = fixture().await;
    f.notification(incident, "ops", "opened", 0).await;
    f.run(0).await;
    f.sql("UPDATE sexton.incidents SET silenced_until = opened_at + interval '1 hour'").await;
    f.notification(incident, "ops", "reopened", 1).await;
    f.run(2).await;
    f.sql(RESOLVE).await;
    f.notification(incident, "ops", "resolved", 3).await;
    f.run(4).await;
    assert_eq!(f.states().await, ["opened sent 1", "reopened dropped 0", "resolved sent 1"]);
}

#[tokio::test]
async fn a_reminder_follows_a_reminder_until_somebody_responds() {
    let (f, _server, incident) = fixture().await;
    f.sql("UPDATE sexton.incidents SET remind_every_ms = 600000").await;
    f.notification(incident, "ops", "opened", 0).await;
    f.run(1).await;
    assert_eq!(f.states().await, ["opened sent 1", "reminder pending 0"]);
    assert_eq!(f.run(600).await.accepted, 0);
    assert_eq!(f.run(602).await.accepted, 1);
    assert_eq!(f.states().await, ["opened sent 1", "reminder sent 1", "reminder pending 0"]);
    f.sql(ACKNOWLEDGE).await;
    f.run(1_300).await;
    assert_eq!(f.states().await, ["opened sent 1", "reminder sent 1", "reminder dropped 0"]);
}
