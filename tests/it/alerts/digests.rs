//! Many notifications at once become few messages.

use serde_json::Value;
use sexton_peers::http::{Act, Seen, Server};
use sexton_store::alerts::requeue;

use super::Fixture;
use super::kinds::verified;

/// Incidents with notifications of their openings.
async fn many(f: &Fixture, channel: &str, count: i32) {
    sqlx::query(
        "WITH i AS (
             INSERT INTO sexton.incidents (id, subject_kind, subject, name, cause, severity, detail, state, opened_at, changed_at)
             SELECT gen_random_uuid(), 'job', 'job.' || n, 'job.' || n, CASE WHEN n % 4 = 0 THEN 'late' ELSE 'failed' END,
                    'high', 'x', 'open', to_timestamp(1800000000), to_timestamp(1800000000)
             FROM generate_series(1, $2) n RETURNING id)
         INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
         SELECT gen_random_uuid(), id, $1, 'opened', 'x', to_timestamp(1800000000), to_timestamp(1800000000) FROM i",
    )
    .bind(channel)
    .bind(count)
    .execute(f.db.pool())
    .await
    .unwrap();
}

/// The bodies that a server has seen so far.
async fn bodies(server: &mut Server, count: usize) -> Vec<Value> {
    let mut bodies = Vec::new();
    for _ in 0..count {
        let Seen::Request(request) = server.next().await else { panic!("it is gone") };
        verified(&request);
        bodies.push(serde_json::from_str(&request.body).unwrap());
    }
    bodies
}

#[tokio::test]
async fn a_thousand_at_once_are_twenty_messages_and_a_digest() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    f.webhook("ops", &server).await;
    many(&f, "ops", 1_000).await;
    assert_eq!(f.run(1).await.accepted, 21);
    let bodies = bodies(&mut server, 21).await;
    assert!(server.saw_nothing_more());
    let digest = &bodies[20]["data"];
    assert_eq!(bodies[20]["type"], "incidents.digest");
    assert_eq!(digest["count"], 980);
    assert_eq!(digest["names"].as_array().unwrap().len(), 20);
    let counts =
        digest["groups"].as_array().unwrap().iter().map(|group| group["count"].as_i64().unwrap());
    assert_eq!(counts.sum::<i64>(), 980);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.notifications WHERE state = 'sent'").await,
        1_000
    );
    assert_eq!(f.number("SELECT count(DISTINCT digest) FROM sexton.notifications").await, 1);

    // The next digest waits until five minutes after the last; a test does not.
    f.sql("UPDATE sexton.incidents SET state = 'resolved', resolved_at = opened_at").await;
    f.sql(
        "INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
         SELECT gen_random_uuid(), id, 'ops', 'resolved', 'x', to_timestamp(1800000100), to_timestamp(1800000100)
         FROM sexton.incidents",
    )
    .await;
    assert_eq!(f.run(100).await.accepted, 0);
    assert_eq!(f.run(299).await.accepted, 0);
    assert_eq!(
        f.run(301).await.accepted,
        21,
        "five minutes after the first, all counts begin anew"
    );
}

#[tokio::test]
async fn a_digest_that_is_repeated_is_the_same() {
    let f = Fixture::new().await;
    let mut acts = vec![Act::answer("200 OK", "", ""); 20];
    acts.push(Act::answer("500 Internal Server Error", "", ""));
    acts.push(Act::answer("200 OK", "", ""));
    let mut server = Server::start(acts).await;
    f.webhook("ops", &server).await;
    many(&f, "ops", 50).await;
    assert_eq!(f.run(1).await.failed, 1);
    bodies(&mut server, 20).await;
    let first = server.request().await;
    // Somebody responds to some of them, and more are written, before it is repeated.
    f.sql("UPDATE sexton.incidents SET state = 'resolved', resolved_at = opened_at WHERE name LIKE 'job.1%'").await;
    f.opened("later", "ops", 5).await;
    assert_eq!(f.run(40).await.accepted, 1);
    let again = server.request().await;
    assert_eq!(verified(&first), verified(&again));
    let counts = [&first, &again]
        .map(|one| serde_json::from_str::<Value>(&one.body).unwrap()["data"]["count"].clone());
    assert_eq!(counts, [30, 30]);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.notifications WHERE state = 'pending'").await,
        1
    );
}

#[tokio::test]
async fn a_test_goes_before_all_that_waits() {
    let f = Fixture::new().await;
    let mut server = Server::answering("200 OK", "", "").await;
    f.webhook("ops", &server).await;
    many(&f, "ops", 30).await;
    let by = sexton_store::operator::AuditContext { actor: "ann", reason: None };
    let id = uuid::Uuid::now_v7();
    assert!(requeue::write_test(f.db.store(), "ops", id, by, Some(super::at(0))).await.unwrap());
    f.run(1).await;
    assert_eq!(verified(&server.request().await), id);
}
