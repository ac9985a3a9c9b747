//! Requests: what every attempt sends, what the row does with the answer, and servers without end.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_peers::http::{Act, Seen, Server};
use sexton_service::clock;

use super::*;

/// The catalogue's entry for a request to the server; `more` stands beside its URL.
fn to(server: &Server, more: &str) -> String {
    let address = server.address;
    format!("http = {{ url = \"http://{address}/charges\", allow = [\"127.0.0.1\"]{more} }}")
}

#[tokio::test]
async fn every_attempt_sends_the_same_key_and_an_unrecorded_secret() {
    let refused = format!("not with {SECRET}");
    let acts = vec![
        Act::answer("503 Service Unavailable", "", &refused),
        Act::answer("200 OK", "", "charged"),
    ];
    let mut server = Server::start(acts).await;
    let header = ", headers = { Authorization = { env = \"PEER_TOKEN\" } }";
    let scene = Scene::new(&[("charge", to(&server, header))], IMMEDIATE_RETRY, &[]).await;
    let id = scene.trigger("charge").await;
    let (first, second) = (server.request().await, server.request().await);
    let shown = scene.ends(&id, "succeeded").await;
    let key = format!("a.charge:{}", shown["execution_key"].as_str().unwrap());
    for request in [&first, &second] {
        assert_eq!(request.header("authorization"), Some(SECRET));
        assert_eq!(request.header("idempotency-key"), Some(key.as_str()));
    }
    assert_ne!(first.header("traceparent"), second.header("traceparent"));
    assert_eq!(shown["attempts"][0]["error_class"], "http_503");
    assert!(scene.is_stored("not with ***").await && scene.is_stored("charged").await);
    assert!(!scene.is_stored(SECRET).await);
}

/// When the second attempt is due, and how the first one lies to it.
type Due = (DateTime<Utc>, DateTime<Utc>, DateTime<Utc>);

/// When the first attempt was opened and recorded, and when the second is due.
async fn due(scene: &Scene, id: &str) -> Due {
    until(
        &scene.platform,
        &format!("sexton.executions WHERE id = '{id}' AND state = 'retrying'"),
        1,
    )
    .await;
    let row = "SELECT a.opened_at, a.finished_at, e.next_attempt_at
               FROM sexton.executions e JOIN sexton.all_attempts a ON a.execution_id = e.id WHERE e.id = $1::uuid";
    sqlx::query_as(row).bind(id).fetch_one(scene.platform.store().pool()).await.unwrap()
}

#[tokio::test]
async fn both_forms_of_retry_after_are_the_shortest_wait_of_the_row() {
    let busy = async |after: &str| {
        let header = format!("Retry-After: {after}\r\n");
        let acts = vec![
            Act::answer("503 Service Unavailable", &header, ""),
            Act::answer("200 OK", "", ""),
        ];
        Server::start(acts).await
    };
    let date = DateTime::from_timestamp(clock::now().timestamp() + 3600, 0).unwrap();
    let dated = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let servers = [busy("1800").await, busy(&dated).await, busy("1").await, busy("2").await];
    let names = ["seconds", "date", "less", "soon"];
    let tasks: Vec<_> = names.into_iter().zip(servers.iter().map(|one| to(one, ""))).collect();
    let scene = Scene::new(&tasks, "retry = { delay = \"1s\", jitter = 0.0 }", &[]).await;
    let longer = by_hand("a.less", "less", "retry = { delay = \"1h\", jitter = 0.0 }");
    scene.platform.apply(&longer).await.unwrap();

    let (_, recorded, next) = due(&scene, &scene.trigger("seconds").await).await;
    assert_eq!(next - recorded, TimeDelta::seconds(1800));
    let (_, recorded, next) = due(&scene, &scene.trigger("less").await).await;
    assert_eq!(next - recorded, TimeDelta::hours(1));
    // The wait is counted by the worker from the answer on, which came between open and record.
    let (opened, recorded, next) = due(&scene, &scene.trigger("date").await).await;
    let rounded = TimeDelta::milliseconds(10);
    assert!(date <= next + rounded, "due at {next}, before {date}");
    assert!(next <= date + (recorded - opened) + rounded, "due at {next}, after {date}");

    let id = scene.trigger("soon").await;
    scene.ends(&id, "succeeded").await;
    let early = format!(
        "sexton.all_attempts a JOIN sexton.all_attempts b USING (execution_id) WHERE a.execution_id = '{id}'
         AND a.number = 1 AND b.number = 2 AND b.opened_at < a.finished_at + interval '2 s'"
    );
    assert_eq!(count(&scene.platform, &early).await, 0);
}

#[tokio::test]
async fn a_permanently_refused_request_is_parked_at_once() {
    let gone = Server::answering("404 Not Found", "", "no such customer").await;
    let elsewhere = Server::answering("302 Found", "Location: http://10.0.0.1/\r\n", "").await;
    let mut private = Server::answering("200 OK", "", "").await;
    // As a name, which the catalogue cannot look at.
    let url = format!("http = {{ url = \"http://localhost:{}/\" }}", private.address.port());
    let tasks = [("gone", to(&gone, "")), ("elsewhere", to(&elsewhere, "")), ("private", url)];
    let scene = Scene::new(&tasks, IMMEDIATE_RETRY, &[]).await;
    for (task, class, message_part) in [
        ("gone", "http_404", "no such customer"),
        ("elsewhere", "http_302", "redirects are not followed"),
        ("private", "address_refused", "name localhost in `allow`"),
    ] {
        let (parked_class, message) = scene.parked(task).await;
        assert!(
            parked_class == class && message.contains(message_part),
            "{task}: {parked_class}: {message}"
        );
    }
    assert!(private.saw_nothing_more());
    let parked = async || {
        let list = scene.platform.sexton_json(&["status"]).await;
        (list["broker"]["failed_ready"] == 3).then_some(())
    };
    scene.platform.eventually("three messages are parked", FINAL_TIMEOUT, parked).await;
}

#[tokio::test]
async fn a_server_without_end_keeps_neither_the_slot_nor_a_connection() {
    let drip = Duration::from_millis(50);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_owned();
    let mut drips = Server::start(vec![Act::Repeat(head, "x".to_owned(), drip)]).await;
    let mut hangs = Server::start(vec![Act::Hang]).await;
    let mut answers = Server::answering("200 OK", "", "").await;
    let tasks = [
        ("drips", to(&drips, ", timeout = \"1s\"")),
        ("hangs", to(&hangs, ", timeout = \"1s\"")),
        ("answers", to(&answers, "")),
    ];
    let scene = Scene::new(&tasks, ONE_TIMEOUT, &[]).await;
    for (task, server) in [("drips", &mut drips), ("hangs", &mut hangs)] {
        let (class, message) = scene.parked(task).await;
        assert_eq!(class, "timeout", "{message}");
        server.gone().await;
    }
    // What had come until then is kept.
    let dripped = "sexton.attempt_output WHERE content::text LIKE '%200 OK%'";
    assert_eq!(count(&scene.platform, dripped).await, 1);
    let id = scene.trigger("answers").await;
    scene.ends(&id, "succeeded").await;
    answers.request().await;
}

#[tokio::test]
async fn a_cancel_closes_the_connection_of_a_request_that_hangs() {
    let mut server = Server::start(vec![Act::Hang]).await;
    let scene = Scene::new(&[("hangs", to(&server, ""))], "lease = \"1h\"", &[]).await;
    let id = scene.trigger("hangs").await;
    server.request().await;
    let done = scene.platform.sexton(&["executions", "cancel", &id]).await;
    assert!(done.status.success(), "{done}");
    assert_eq!(server.next().await, Seen::Gone);
    scene.ends(&id, "cancelled").await;
}
