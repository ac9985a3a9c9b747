//! Many executions that are enqueued by one request.

use serde_json::{Value, json};

use super::Fixture;

const PATH: &str = "/jobs/shop.charge/enqueue-each";

async fn executions(f: &Fixture) -> i64 {
    let count = "SELECT count(*) FROM sexton.executions";
    sqlx::query_scalar(count).fetch_one(f.console.store().pool()).await.unwrap()
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
    assert_eq!(f.audited("enqueue").await.1, 2);
    let again = post(&body).await.expect(200);
    assert_eq!(again, json!({"job_name": "shop.charge", "created": 0, "known": 2}));
    assert_eq!(f.audited("enqueue").await.1, 2, "what changes nothing is not audited");
    let more = json!({"items": [body["items"][1], {"key": "c"}]});
    let more = post(&more).await.expect(200);
    assert_eq!((&more["created"], &more["known"]), (&json!(1), &json!(1)));
    assert_eq!(executions(&f).await, 3);
    let (entry, count) = f.audited("enqueue").await;
    let expected = json!({"state": "pending", "execution_key": "c", "created": true});
    assert_eq!((&entry["actor"], &entry["after"]), (&json!("token ann"), &expected), "{entry}");
    assert!(entry["from_where"].as_str().unwrap().starts_with("api "), "{entry}");
    assert_eq!(count, 3);
    let replacing = json!({"items": [{"key": "a", "if_exists": "replace", "params": {"customer": 8}}, {"key": "c"}]});
    let replaced = post(&replacing).await.expect(200);
    assert_eq!((&replaced["created"], &replaced["known"]), (&json!(0), &json!(2)));
    let (entry, count) = f.audited("enqueue").await;
    let expected = json!({"state": "pending", "execution_key": "a", "created": false});
    assert_eq!((&entry["after"], count), (&expected, 4), "{entry}");
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
