//! Failed executions that are edited.

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;

use super::Fixture;

/// A failed execution with a secret in its params.
async fn failed(f: &Fixture) -> ExecutionId {
    let params = r#"{"customer": 7, "login": {"api_token": "hunter2", "url": "https://ann:x@shop.example"}}"#;
    let answer = f.console.json(&["jobs", "trigger", "shop.charge", "--params", params]).await;
    let id = ExecutionId::new(answer["id"].as_str().unwrap().parse().unwrap());
    let open = f.console.open(id, 1).await;
    f.console.fail(open, "card declined", None).await;
    id
}

async fn stored(f: &Fixture, id: ExecutionId) -> Value {
    let query = "SELECT params FROM sexton.executions WHERE id = $1";
    sqlx::query_scalar(query).bind(id.get()).fetch_one(f.console.store().pool()).await.unwrap()
}

#[tokio::test]
async fn a_mask_that_is_sent_back_overwrites_no_secret() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let id = failed(&f).await;
    let before = stored(&f, id).await;
    let path = format!("/failures/{id}/edit");
    let edit = async |body: Value| f.ask(&token, "POST", &path, &body.to_string()).await;
    let mut shown = f.get(&token, &format!("/failures/{id}")).await.expect(200)["params"].clone();
    assert_eq!(shown["login"]["api_token"], "***");
    shown["customer"] = json!(8);
    let refused = edit(json!({"params": shown, "reason": "typo"})).await.expect(400);
    let pointers: Vec<_> =
        refused["errors"].as_array().unwrap().iter().map(|one| &one["pointer"]).collect();
    assert_eq!(pointers, ["/params/login/api_token", "/params/login/url"], "{refused}");
    let masked = json!({"merge": {"login": {"api_token": "***"}}, "reason": "typo"});
    let refused = edit(masked).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/merge/login/api_token");
    assert_eq!(stored(&f, id).await, before);
    let change =
        json!({"merge": {"customer": 8}, "requeue": false, "attempt": 2, "reason": "typo"});
    let done = edit(change.clone()).await.expect(200);
    assert_eq!(
        (&done["state"], &done["changes"]),
        (&json!("failed"), &json!([{"pointer": "/customer", "kind": "changed"}]))
    );
    let mut expected = before.clone();
    expected["customer"] = json!(8);
    assert_eq!(stored(&f, id).await, expected);
    edit(change).await.expect(409);
    let answer = f.get(&token, "/audit").await.expect(200).to_string();
    assert!(answer.contains("token ed") && !answer.contains("hunter2"), "{answer}");
}

#[tokio::test]
async fn an_edit_is_previewed_checked_and_requeued() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let id = failed(&f).await;
    let path = format!("/failures/{id}/edit");
    let edit = async |body: Value| f.ask(&token, "POST", &path, &body.to_string()).await;
    let params = json!({"customer": "nine", "login": {"api_token": "other"}});
    let dry = json!({"params": params, "dry_run": true, "reason": "wrong customer"});
    let would = edit(dry).await.expect(200);
    assert_eq!(
        would["changes"],
        json!([
            {"pointer": "/customer", "kind": "changed"},
            {"pointer": "/login/api_token", "kind": "changed"},
            {"pointer": "/login/url", "kind": "removed"},
        ])
    );
    assert_eq!((&would["dry_run"], &would["state"]), (&json!(true), &json!("failed")));
    assert!(would["notes"][0].as_str().unwrap().contains("not validated"), "{would}");
    for (body, pointer) in [
        (json!({"params": {}, "merge": {}, "reason": "x"}), "/merge"),
        (json!({"pool": "A B", "reason": "x"}), "/pool"),
        (json!({"attempt": 0, "merge": {}, "reason": "x"}), "/attempt"),
        (json!({"force_pool": true, "merge": {"a": 1}, "reason": "x"}), "/force_pool"),
        (json!({"params": {"a": "\u{0}"}, "reason": "x"}), "/params"),
        (json!({"params": {}}), ""),
    ] {
        let refused = edit(body.clone()).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{body}: {refused}");
    }
    edit(json!({"merge": {}, "reason": "x"})).await.expect(409);
    edit(json!({"params": {"a": 1}, "attempt": 1, "reason": "x"})).await.expect(409);
    edit(json!({"pool": "gpu", "reason": "x"})).await.expect(404);
    assert_eq!(f.console.state(id).await, "failed/2");
    let forced = json!({"pool": "gpu", "force_pool": true, "reason": "needs a card"});
    let done = edit(forced).await.expect(200);
    assert_eq!((&done["state"], &done["pool"]), (&json!("pending"), &json!("gpu")));
    assert_eq!(f.console.state(id).await, "pending/2");
}
