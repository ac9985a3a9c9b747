//! What operators do besides requeues: locks, backfills, catch-up, triggers of many, flows, unknown messages, and the platform's state.

use serde_json::{Value, json};

use super::{Fixture, eventually};

#[tokio::test]
async fn documents_about_what_will_happen_are_those_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let from = "2030-01-01T00:00:00Z";
    let id = f.console.failed().await.to_string();
    let pairs: [(String, Vec<&str>); 8] = [
        (
            format!("/jobs/billing.invoices/next?count=3&from={from}"),
            vec!["jobs", "next", "billing.invoices", "--count", "3", "--from", from],
        ),
        (
            format!("/jobs:next?count=4&from={from}&zone=Europe/Berlin"),
            vec!["jobs", "next", "--count", "4", "--from", from, "--tz", "Europe/Berlin"],
        ),
        ("/jobs/billing.invoices/policy".to_owned(), vec!["jobs", "policy", "billing.invoices"]),
        ("/catch-up".to_owned(), vec!["jobs", "catch-up", "--dry-run"]),
        ("/lock-keys".to_owned(), vec!["keys", "list"]),
        ("/locks?all=true".to_owned(), vec!["locks", "--all"]),
        (format!("/executions/{id}/explain"), vec!["executions", "explain", &id]),
        ("/status".to_owned(), vec!["status"]),
    ];
    for (path, command) in pairs {
        let mut answer = f.get(&token, &path).await.expect(200);
        let mut expected = f.console.json(&command).await;
        for document in [&mut answer, &mut expected] {
            // Clocks go on, and each has sessions of its own.
            for place in ["/now", "/database/now", "/broker/error"] {
                document.pointer_mut(place).map(Value::take);
            }
            if path.starts_with("/locks") {
                document["advisory"] = Value::Null;
            }
        }
        assert_eq!(answer, expected, "{path}");
    }
    let refused = f.get(&token, "/jobs:next?count=0&zone=Mars").await.expect(400);
    assert_eq!(refused["errors"][0]["parameter"], "count");
    f.get(&token, "/jobs:next?name=no.such").await.expect(404);
    let lock = f.get(&token, "/locks?key=x").await.expect(400);
    assert_eq!(lock["errors"][0]["parameter"], "key");
}

#[tokio::test]
async fn the_effects_of_clock_changes_are_those_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let job = json!({"name": "billing.nightly", "task": "report", "schedule": "30 2 * * *", "timezone": "Europe/Berlin"});
    f.ask(&token, "POST", "/jobs", &job.to_string()).await.expect(201);
    let from = "2030-01-01T00:00:00Z";
    let path = format!("/jobs/billing.nightly/clock-changes?from={from}");
    let answer = f.get(&token, &path).await.expect(200);
    let preview = ["jobs", "preview", "billing.nightly", "--from", from];
    let mut expected = f.console.json(&preview).await;
    for row in expected["anomalies"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("job_name");
    }
    assert_eq!(answer["anomalies"], expected["anomalies"]);
    assert_eq!((&answer["from"], &answer["until"]), (&expected["from"], &expected["until"]));
    assert_eq!(answer["anomalies"][0]["kind"], "moved", "{answer}");
    f.get(&token, "/jobs/no.such/clock-changes").await.expect(404);
}

#[tokio::test]
async fn the_state_and_the_findings_say_that_no_broker_is_named() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let status = f.get(&token, "/status").await.expect(200);
    assert_eq!(status["broker"]["reachable"], false);
    assert!(status["broker"]["error"].as_str().unwrap().contains("AMQP_URL"), "{status}");
    let doctor = f.get(&token, "/doctor").await.expect(200);
    assert_eq!(doctor["broker_examined"], false);
    let codes: Vec<_> =
        doctor["findings"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert!(!codes.contains(&&json!("broker_unreachable")), "{doctor}");
    assert!(codes.contains(&&json!("no_scheduler")), "{doctor}");
    // Another request within some seconds has the same answer.
    assert_eq!(f.get(&token, "/doctor").await.expect(200)["examined_at"], doctor["examined_at"]);
}

/// For how many milliseconds the oldest execution has been due differs from one reading of the database to the next.
#[tokio::test]
async fn the_list_of_pools_is_that_of_the_state_and_of_the_same_reading() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let job = json!({"name": "shop.monthly", "task": "work", "pool": "reports"});
    f.ask(&token, "POST", "/jobs", &job.to_string()).await.expect(201);
    f.console.trigger("shop.charge").await;
    eventually("the state and the list are of one reading", async || {
        let pools = f.get(&token, "/pools").await.expect(200);
        let items = pools["items"].as_array().unwrap();
        let names: Vec<_> = items.iter().map(|pool| &pool["pool"]).collect();
        assert_eq!(names, ["default", "reports"], "{pools}");
        assert_eq!((&items[0]["pending"], &items[1]["jobs"]), (&json!(1), &json!(1)), "{pools}");
        assert!(items[0]["oldest_due_ms"].is_number(), "{pools}");
        let status = f.get(&token, "/status").await.expect(200);
        pools == json!({"items": status["pools"]})
    })
    .await;
}

#[tokio::test]
async fn past_firings_are_counted_and_run_once() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let path = "/jobs/billing.invoices/backfills";
    let post = async |body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    let range =
        json!({"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z", "rate": "10/m"});
    let with = |more: Value| {
        let mut body = range.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let preview = post(with(json!({"dry_run": true}))).await.expect(200);
    let count = preview["made"].as_u64().unwrap();
    assert!(
        count > 0 && preview["dry_run"] == true && preview["firings"][0]["execution_id"].is_null(),
        "{preview}"
    );
    let done = post(with(json!({"reason": "they were lost"}))).await.expect(200);
    assert_eq!((&done["made"], &done["rate"]), (&json!(count), &json!("10/m")));
    assert!(done["firings"][0]["execution_id"].is_string(), "{done}");
    let again = post(range.clone()).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains("nothing to backfill"), "{again}");
    let wrong = post(json!({"since": "x", "zone": "Mars", "rate": "soon"})).await.expect(400);
    let pointers: Vec<_> =
        wrong["errors"].as_array().unwrap().iter().map(|it| &it["pointer"]).collect();
    assert_eq!(pointers, ["/zone", "/rate"]);
    assert_eq!(post(json!({"since": "x"})).await.expect(400)["errors"][0]["pointer"], "/since");
}

#[tokio::test]
async fn many_are_triggered_each_once_and_one_that_is_refused_keeps_no_other_from_running() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |path: &str, body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    let request = json!({"jobs": ["shop.charge", "no.such", "shop.mail"], "key": "evening", "reason": "test"});
    let done = post("/jobs:trigger", request.clone()).await.expect(200);
    let made: Vec<_> = done["items"].as_array().unwrap().iter().map(|it| &it["created"]).collect();
    assert_eq!(made, [&json!(true), &json!(false), &json!(true)]);
    assert_eq!(done["items"][1]["problem"]["code"], "not_found");
    let again = post("/jobs:trigger", request).await.expect(200);
    assert_eq!(again["items"][0]["created"], false);
    assert_eq!(again["items"][0]["outcome"], "known");
    assert_eq!(again["items"][0]["execution_id"], done["items"][0]["execution_id"]);
    let twice = post("/jobs:trigger", json!({"jobs": ["a", "a"]})).await.expect(400);
    assert_eq!(twice["errors"][0]["pointer"], "/jobs/1");
    post("/jobs:trigger", json!({"jobs": []})).await.expect(400);
    let path = "/jobs/shop.charge/trigger-each";
    let body = json!({"items": [{"key": "a", "params": {"customer": 1}}, {"key": "b"}]});
    let done = post(path, body.clone()).await.expect(200);
    assert_eq!((&done["created"], &done["known"]), (&json!(2), &json!(0)));
    assert_eq!(post(path, body).await.expect(200)["known"], 2);
    let wrong = post(path, json!({"items": [{"key": "c"}, {"key": "c"}]})).await.expect(400);
    assert!(wrong["detail"].as_str().unwrap().contains("items:2"), "{wrong}");
}

#[tokio::test]
async fn a_lock_row_is_freed_if_its_holder_is_the_one_that_was_seen() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let insert = "INSERT INTO sexton.lock_rows (name, locked_by, locked_at, lock_until)
                 VALUES ('shop/stock', 'host-7', timezone('UTC', now()) - interval '1 hour', timezone('UTC', now()) + interval '1 hour')";
    sqlx::query(insert).execute(f.console.store().pool()).await.unwrap();
    let listed = f.get(&token, "/locks?row=shop/stock").await.expect(200);
    let row = &listed["rows"]["items"][0];
    assert_eq!((&row["locked_by"], &row["state"]), (&json!("host-7"), &json!("held")));
    let path = "/locks/shop%2Fstock/break";
    let post = async |body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    post(json!({})).await.expect(400);
    post(json!({"reason": "gone", "as_of": "2020-01-01T00:00:00Z"})).await.expect(409);
    let freed = post(json!({"reason": "gone", "as_of": row["locked_at"]})).await.expect(200);
    assert_eq!((&freed["name"], &freed["locked_by"]), (&json!("shop/stock"), &json!("host-7")));
    post(json!({"reason": "gone"})).await.expect(409);
    f.ask(&token, "POST", "/locks/other/break", r#"{"reason": "gone"}"#).await.expect(404);
}

#[tokio::test]
async fn firings_that_are_set_aside_and_unknown_messages_are_decided() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |path: &str, body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    let none = post("/catch-up", json!({"decision": "release"})).await.expect(409);
    assert!(none["detail"].as_str().unwrap().contains("nothing is held"), "{none}");
    post("/catch-up", json!({"decision": "discard", "jobs": ["no.such"]})).await.expect(404);
    let digest = "ab".repeat(32);
    let row = "INSERT INTO sexton.unknown_messages (digest, kind, reason, body, body_bytes, properties, copies, first_seen, last_seen)
               VALUES (decode($1, 'hex'), 'foreign', 'no row', $2, length($2), '{}', 1, now(), now())";
    let body: &[u8] = br#"{"type":"report","params_scheduler":{"api_token":"hunter2"}}"#;
    sqlx::query(row).bind(&digest).bind(body).execute(f.console.store().pool()).await.unwrap();
    let listed = f.get(&token, "/unknown-messages").await.expect(200);
    assert_eq!(
        (&listed["items"][0]["state"], &listed["overflow"]),
        (&json!("parked"), &Value::Null)
    );
    let shown = f.get(&token, "/unknown-messages/abab").await.expect(200);
    assert_eq!(shown, f.console.json(&["unknown", "show", "abab"]).await);
    assert!(shown["masked"] == true && !shown.to_string().contains("hunter2"), "{shown}");
    let path = |action: &str| format!("/unknown-messages/{digest}/{action}");
    f.get(&token, &path("body")).await.expect(403);
    let admin = f.token("root", "admin").await;
    let sent = f.get(&admin, &path("body")).await;
    assert!(sent.has("content-type: application/octet-stream"), "{}", sent.head);
    assert!(sent.has("content-disposition: attachment"), "{}", sent.head);
    assert_eq!(sent.expect(200), json!(std::str::from_utf8(body).unwrap()), "nothing is masked");
    let cut = "UPDATE sexton.unknown_messages SET body_bytes = body_bytes + 1";
    sqlx::query(cut).execute(f.console.store().pool()).await.unwrap();
    let refused = f.get(&admin, &path("body")).await.expect(409);
    assert_eq!(refused["code"], "conflict", "{refused}");
    f.get(&admin, &path("body?cut=true")).await.expect(200);
    let whole = "UPDATE sexton.unknown_messages SET body_bytes = body_bytes - 1";
    sqlx::query(whole).execute(f.console.store().pool()).await.unwrap();
    f.get(&admin, "/unknown-messages/ffff/body").await.expect(404);
    post(&path("discard"), json!({})).await.expect(400);
    let discarded = post(&path("discard"), json!({"reason": "a test"})).await.expect(200);
    assert_eq!(discarded, json!({"id": digest, "next": "discard"}));
    post(&path("discard"), json!({"reason": "again"})).await.expect(409);
    let kept = post(&path("restore"), json!({})).await.expect(200);
    assert_eq!(kept["next"], "keep");
    post(&path("restore"), json!({})).await.expect(409);
    f.get(&token, "/unknown-messages/ffff").await.expect(404);
}

#[tokio::test]
async fn what_waits_of_a_flow_is_cancelled() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let flow = r#"{"name": "nightly", "members": [{"name": "one", "job": "shop.charge"}, {"name": "two", "job": "shop.mail", "after": ["one"]}]}"#;
    let (id,): (uuid::Uuid,) = sqlx::query_as("SELECT flow_id FROM sexton.flow($1::jsonb)")
        .bind(serde_json::from_str::<Value>(flow).unwrap())
        .fetch_one(f.console.store().pool())
        .await
        .unwrap();
    let path = format!("/flows/{id}/cancel");
    let done = f.ask(&token, "POST", &path, r#"{"reason": "wrong night"}"#).await.expect(200);
    assert_eq!(done, json!({"flow_id": id, "cancelled": 2}));
    f.ask(&token, "POST", &path, "").await.expect(400);
}
