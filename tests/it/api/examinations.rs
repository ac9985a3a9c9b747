//! Requests that examine jobs and expressions: what their bodies may be, who may send them, and how many go on at the same time.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use sexton_server::access::{Backend, Stores};
use sexton_store::{Store, StoreOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::scopes::restricted;
use super::{Answer, Fixture, eventually};

const KEY: &str = "Idempotency-Key: 5f1c7a52-6f0e-4f0b-9d2e-0a6c3f6c1b7d";
const FROM: &str = "2027-01-01T00:00:00Z";
/// Sessions that wait for the lock of the test.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '-- read_jobs%'";

/// Each request that changes nothing and has a body.
fn examinations() -> [(&'static str, Value); 5] {
    [
        ("/cron:next", json!({"expression": "@daily", "from": FROM})),
        ("/cron:lint", json!({"expression": "0 0 13 * FRI", "from": FROM})),
        ("/jobs:lint", json!({"database": true, "from": FROM})),
        ("/jobs:preview", json!({"names": ["shop.mail"], "from": FROM})),
        ("/lock-keys:derive", json!({"name": "shop.mail", "like": "hashtext"})),
    ]
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_as_a_whole() {
    let f = Fixture::new().await;
    let token = f.token("root", "admin").await;
    let changing = ["/lock-keys/stock/assign", "/lock-keys/stock/remove", "/jobs:apply", "/bulks"];
    for path in examinations().map(|(path, _)| path).into_iter().chain(changing) {
        for body in ["[]", " \n[7, 8]", "null", "\"{}\"", "7"] {
            let refused = f.ask(&token, "POST", path, body).await.expect(400);
            let errors = json!([{"pointer": "", "detail": "the body must be a JSON object"}]);
            assert_eq!(refused["errors"], errors, "{path}: {body}");
        }
    }
    assert_eq!(f.get(&token, "/lock-keys").await.expect(200), json!({"ranges": []}));
    f.ask(&token, "POST", "/jobs:preview", " \r\n\t{}").await.expect(200);
}

#[tokio::test]
async fn a_request_that_changes_nothing_ignores_a_key_and_stores_none() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for (path, body) in examinations() {
        // The same for all of them, and one that is refused elsewhere.
        for key in [KEY, KEY, "Idempotency-Key: a b"] {
            let route = ("POST", path);
            let answer = f.ask_with(&token, route, &[key], &body.to_string()).await;
            assert_eq!(answer.header("idempotent-replayed"), None, "{path}: {}", answer.head);
            answer.expect(200);
        }
    }
    let stored = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sexton.request_keys");
    assert_eq!(stored.fetch_one(f.console.store().pool()).await.unwrap(), 0);
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let takes_key = |path: &str| {
        let parameters = &description["paths"][format!("/api/v1{path}")]["post"]["parameters"];
        let mut all = parameters.as_array().into_iter().flatten();
        all.any(|one| one["name"] == "Idempotency-Key")
    };
    assert!(takes_key("/jobs:apply") && takes_key("/jobs:trigger"));
    for (path, _) in examinations() {
        assert!(!takes_key(path), "{path}");
    }
}

#[tokio::test]
async fn who_is_restricted_to_jobs_examines_all_of_them() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let team = restricted(&f, "team", "operator", "billing.*").await;
    for (path, body) in examinations() {
        let body = body.to_string();
        let all = f.ask(&token, "POST", path, &body).await.expect(200);
        assert_eq!(f.ask(&team, "POST", path, &body).await.expect(200), all, "{path}");
    }
    let found = f.ask(&team, "POST", "/jobs:lint", r#"{"database": true}"#).await.expect(200);
    assert_eq!(found["looked_at"], 3, "{found}");
}

#[tokio::test]
async fn instants_far_ahead_are_answered_or_refused_if_answers_could_pass_the_year_9999() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let vienna = json!({"expression": "30 2 * * *", "zone": "Europe/Vienna"});
    for (from, is_read) in [
        ("0000-01-01T00:00:00Z", true),
        ("9000-12-31T23:59:59Z", true),
        ("-0001-12-31T23:59:59Z", false),
        ("9001-01-01T00:00:00Z", false),
        // The last one that can be represented, in whole seconds.
        ("+262142-12-31T23:59:59Z", false),
    ] {
        for (path, body) in [
            ("/cron:next", &vienna),
            ("/cron:lint", &vienna),
            ("/jobs:lint", &json!({"database": true, "severity": "note"})),
            ("/jobs:preview", &json!({})),
        ] {
            let mut body = body.clone();
            body["from"] = json!(from);
            if path == "/cron:next" {
                body["anomalies"] = json!(true);
            }
            let answer = f.ask(&token, "POST", path, &body.to_string()).await;
            if is_read {
                assert_eq!(answer.status, 200, "{path} from {from}: {}", answer.body);
                assert_eq!(answer.body["from"], from, "{path}");
            } else {
                assert_eq!(
                    answer.expect(400)["errors"][0]["pointer"],
                    "/from",
                    "{path} from {from}"
                );
            }
        }
        for path in [
            "/jobs/shop.mail/next?",
            "/jobs/shop.mail/clock-changes?",
            "/jobs:next?name=shop.mail&",
        ] {
            let answer =
                f.ask(&token, "GET", &format!("{path}from={}", from.replace('+', "%2B")), "").await;
            if is_read {
                answer.expect(200);
            } else {
                assert_eq!(
                    answer.expect(400)["errors"][0]["parameter"],
                    "from",
                    "{path} from {from}"
                );
            }
        }
    }
}

#[tokio::test]
async fn lists_of_firings_end_before_a_year_of_five_digits() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let yearly = json!({"expression": "0 0 1 1 *", "from": "9000-06-01T00:00:00Z", "count": 1000});
    let listed = f.ask(&token, "POST", "/cron:next", &yearly.to_string()).await.expect(200);
    let firings = listed["next"].as_array().unwrap();
    assert_eq!(firings.len(), 998);
    assert_eq!(firings[997], "9998-01-01T00:00:00Z");
    let create = json!({"name": "yearly", "task": "work", "schedule": "0 0 1 1 *"});
    f.ask(&f.token("root", "admin").await, "POST", "/jobs", &create.to_string()).await.expect(201);
    let of_job = f.get(&token, "/jobs/yearly/next?from=9000-06-01T00:00:00Z&count=1000").await;
    let of_job = of_job.expect(200);
    let firings = of_job["next"].as_array().unwrap();
    assert_eq!((firings.len(), &firings[997]["at"]), (998, &json!("9998-01-01T00:00:00Z")));
    let refused =
        f.get(&token, "/jobs/shop.mail/firings?at=9999-12-31T23:59:30Z").await.expect(400);
    assert_eq!(refused["errors"][0]["parameter"], "at", "{refused}");
}

#[tokio::test]
async fn numbers_and_instants_out_of_all_ranges_are_refused_with_their_place() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for (path, body, pointer) in [
        ("/cron:next", json!({"expression": "@daily", "count": -1}), "/count"),
        ("/cron:next", json!({"expression": "@daily", "count": 1e30}), "/count"),
        ("/cron:lint", json!({"expression": "@daily", "from": 7}), "/from"),
        ("/jobs:lint", json!({"database": true, "same_minute": -1}), "/same_minute"),
        ("/jobs:lint", json!({"database": true, "from": "+262143-01-01T00:00:00Z"}), "/from"),
        ("/jobs:preview", json!({"count": -1}), "/count"),
        ("/jobs:preview", json!({"count": 1e30}), "/count"),
        ("/jobs:preview", json!({"from": "2027-02-30T00:00:00Z"}), "/from"),
    ] {
        let refused = f.ask(&token, "POST", path, &body.to_string()).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{path} {body}: {refused}");
    }
}

#[track_caller]
fn assert_busy(answer: &Answer) {
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.body);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("other requests examine jobs"), "{detail}");
}

#[tokio::test]
async fn two_examine_jobs_four_wait_and_clients_who_leave_free_no_turn() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    // This server waits for locks longer than the test holds one.
    let open = || Store::open(&StoreOptions::new(f.console.url(), "api")).unwrap();
    let stores = Stores { callers: open(), reads: open(), writes: open() };
    let server = Fixture::beside(&f, |_| Backend::new(stores).on("host")).await;
    let pool = f.console.store().pool();
    let mut held = pool.begin().await.unwrap();
    let lock = "LOCK TABLE sexton.jobs IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let request = format!(
        "POST /api/v1/jobs:preview HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
    );
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(server.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        clients.push(client);
    }
    eventually("both wait for the jobs", async || {
        sqlx::query_scalar::<_, i64>(WAITING).fetch_one(pool).await.unwrap() == 2
    })
    .await;
    drop(clients);
    // A lint waits for its turn, too, until its time is up.
    let lint = r#"{"database": true}"#;
    assert_busy(&server.ask(&token, "POST", "/jobs:lint", lint).await);
    let mut previews: FuturesUnordered<_> =
        (0..5).map(|_| server.ask(&token, "POST", "/jobs:preview", "{}")).collect();
    // One of the five does not wait; the others get a turn, which they would not after five seconds.
    assert_busy(&previews.next().await.unwrap());
    held.rollback().await.unwrap();
    while let Some(answer) = previews.next().await {
        answer.expect(200);
    }
    server.ask(&token, "POST", "/jobs:lint", lint).await.expect(200);
}
