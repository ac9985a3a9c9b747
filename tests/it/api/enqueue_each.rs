//! Many executions that are enqueued by one request.

use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_store::changes;

use super::Fixture;

const PATH: &str = "/jobs/shop.charge/enqueue-each";

async fn executions(f: &Fixture) -> i64 {
    let count = "SELECT count(*) FROM sexton.executions";
    sqlx::query_scalar(count).fetch_one(f.console.store().pool()).await.unwrap()
}

/// What the audit keeps of a request: how many it made, changed and kept, and the first and the last id of all executions, or the id of the
/// one with this key.
async fn recorded(f: &Fixture, counts: (i64, i64, i64), key: Option<&str>) -> Value {
    let after = r#"SELECT jsonb_build_object('created', $1::bigint, 'changed', $2::bigint, 'kept', $3::bigint,
            'first_id', min(id::text COLLATE "C"), 'last_id', max(id::text COLLATE "C"))
        FROM sexton.executions WHERE $4::text IS NULL OR execution_key = $4"#;
    let (created, changed, kept) = counts;
    let query = sqlx::query_scalar(after).bind(created).bind(changed).bind(kept).bind(key);
    query.fetch_one(f.console.store().pool()).await.unwrap()
}

#[tokio::test]
async fn each_key_is_enqueued_once_with_its_params_labels_and_time() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |body: &Value| f.ask(&token, "POST", PATH, &body.to_string()).await;
    let body = json!({"items": [
        {"key": "a", "params": {"customer": 7}, "labels": {"region": "north"}},
        {"key": "b", "delay_s": 3600, "unique_for": "2h"},
    ]});
    let done = post(&body).await.expect(200);
    assert_eq!(done, json!({"job_name": "shop.charge", "created": 2, "known": 0}));
    let rows = "SELECT jsonb_agg(jsonb_build_array(params ->> 'customer', labels ->> 'region', next_attempt_at > claimed_at + interval '59 minutes')
        ORDER BY params ->> 'customer' DESC) FROM sexton.executions";
    let rows: Value = sqlx::query_scalar(rows).fetch_one(f.console.store().pool()).await.unwrap();
    assert_eq!(rows, json!([["7", "north", false], ["4891", null, true]]));
    let again = post(&body).await.expect(200);
    assert_eq!(again, json!({"job_name": "shop.charge", "created": 0, "known": 2}));
    let more = json!({"items": [body["items"][1], {"key": "c"}]});
    let more = post(&more).await.expect(200);
    assert_eq!((&more["created"], &more["known"]), (&json!(1), &json!(1)));
    let replacing = json!({"items": [{"key": "a", "if_exists": "replace", "params": {"customer": 8}}, {"key": "c"}]});
    let replaced = post(&replacing).await.expect(200);
    assert_eq!((&replaced["created"], &replaced["known"]), (&json!(0), &json!(2)));
    assert_eq!(executions(&f).await, 3);
}

#[tokio::test]
async fn the_audit_has_one_row_for_each_request_that_makes_or_changes_something() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |items: Value| {
        f.ask(&token, "POST", PATH, &json!({"items": items}).to_string()).await.expect(200)
    };
    // A key that comes twice is one execution.
    let two = json!([{"key": "a"}, {"key": "b"}, {"key": "a"}]);
    let done = post(two.clone()).await;
    assert_eq!((&done["created"], &done["known"]), (&json!(2), &json!(1)));
    let (entry, count) = f.audited("enqueue").await;
    assert_eq!((&entry["actor"], count), (&json!("token ann"), 1), "{entry}");
    assert_eq!(entry["after"], recorded(&f, (2, 0, 0), None).await, "{entry}");
    assert!(entry["execution_id"].is_null() && entry["job_id"].is_string(), "{entry}");
    assert!(entry["from_where"].as_str().unwrap().starts_with("api "), "{entry}");
    post(two).await;
    assert_eq!(f.audited("enqueue").await.1, 1, "what changes nothing is not audited");
    post(json!([{"key": "b"}, {"key": "c"}])).await;
    let (entry, count) = f.audited("enqueue").await;
    assert_eq!((&entry["after"], count), (&recorded(&f, (1, 0, 1), Some("c")).await, 2));
    // The ids are of what is new, unless nothing is.
    let replaced = json!({"key": "a", "if_exists": "replace", "params": {"customer": 8}});
    post(json!([replaced, {"key": "d"}])).await;
    let (entry, count) = f.audited("enqueue").await;
    assert_eq!((&entry["after"], count), (&recorded(&f, (1, 1, 0), Some("d")).await, 3));
    post(json!([replaced, {"key": "d"}])).await;
    let (entry, count) = f.audited("enqueue").await;
    assert_eq!((&entry["after"], count), (&recorded(&f, (0, 1, 1), Some("a")).await, 4));
    // They do not hide what people did to the job.
    let shown = f.console.json(&["jobs", "show", "shop.charge"]).await;
    let actions = shown["operator_actions"].as_array().unwrap();
    assert!(actions.iter().all(|action| action["action"] != "enqueue"), "{shown}");
    assert_eq!(actions.last().unwrap()["action"], "apply", "{shown}");
}

/// While a program enqueues, pages that show no enqueues do not fetch themselves.
#[tokio::test]
async fn an_enqueue_moves_no_page_of_failures_and_of_approvals() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let token = f.token("ann", "operator").await;
    let post = async |path: &str, body: Value| {
        f.ask(&token, "POST", path, &body.to_string()).await.expect(200)
    };
    let read = async || changes::read(f.console.store(), &[]).await.unwrap();
    let mut before = read().await;
    for (path, body) in [
        ("/enqueue", json!({"job": "shop.charge"})),
        (PATH, json!({"items": [{"key": "a"}, {"key": "b"}]})),
    ] {
        post(path, body).await;
        let after = read().await;
        assert_ne!(after.actions, before.actions, "{path}");
        assert_ne!(after.executions, before.executions, "{path}");
        assert_eq!(after.decisions, before.decisions, "{path}");
        assert_eq!(after.failures, before.failures, "{path}");
        before = after;
    }
    post("/jobs/shop.charge/pause", json!({"reason": "x"})).await;
    let after = read().await;
    assert_ne!(after.actions, before.actions);
    assert_ne!(after.decisions, before.decisions);
    assert_ne!(after.failures, before.failures);
    for (path, topics) in [("/approvals", "decisions"), ("/failed", "failures")] {
        let page = f.send_to("GET", path, &["Host: localhost"], "").await.expect(200);
        let follows = format!("data-topics=\"{topics}\"");
        assert!(page.as_str().unwrap().contains(&follows), "{path} follows something else");
    }
}

#[tokio::test]
async fn a_problem_of_one_enqueues_none() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let post = async |path: &str, body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    let both = json!({"key": "b", "delay_s": 1, "run_at": "2030-01-01T00:00:00Z"});
    for (item, pointer) in [
        (both, "/items/1/delay_s"),
        (json!({"key": "b", "delay_s": 40_000_000}), "/items/1/delay_s"),
        (json!({"key": "b", "unique_for": "soon"}), "/items/1/unique_for"),
        (json!({"key": "b", "priority": 1}), "/items/1"),
    ] {
        let refused = post(PATH, json!({"items": [{"key": "a"}, item]})).await.expect(400);
        let found = refused["errors"][0]["pointer"].as_str().unwrap();
        assert!(found.starts_with(pointer), "{pointer}: {refused}");
    }
    // What only the database knows has a place as well.
    let long = "a".repeat(300);
    let wrong = json!({"items": [{"key": "a"}, {"key": ""}, {"key": "b"}, {"key": long}]});
    let wrong = post(PATH, wrong).await.expect(400);
    assert_eq!(wrong["detail"], "item 2: key is empty\nitem 4: key has more than 256 bytes");
    let places = json!([
        {"pointer": "/items/1", "detail": "key is empty"},
        {"pointer": "/items/3", "detail": "key has more than 256 bytes"},
    ]);
    assert_eq!(wrong["errors"], places, "{wrong}");
    let many: Vec<Value> = (0..102).map(|_| json!({"key": ""})).collect();
    let many = post(PATH, json!({"items": many})).await.expect(400);
    let errors = many["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[99]["pointer"]), (101, &json!("/items/99")), "{many}");
    assert_eq!(errors[100], json!({"detail": "and 2 more items"}), "{many}");
    let none = post(PATH, json!({"items": []})).await.expect(400);
    assert_eq!(none["errors"][0]["pointer"], "/items");
    let unknown = post("/jobs/shop.charg/enqueue-each", json!({"items": [{"key": "a"}]})).await;
    assert!(unknown.expect(404)["detail"].as_str().unwrap().contains("shop.charge"));
    f.console.run(&["jobs", "pause", "shop.charge", "--reason", "x"]).await.expect(0);
    post(PATH, json!({"items": [{"key": "a"}]})).await.expect(409);
    assert_eq!(executions(&f).await, 0);
    assert_eq!(f.audited("enqueue").await.1, 0);
}
