//! Bulks that are previewed and created.

use serde_json::{Value, json};

use super::Fixture;

async fn ask(f: &Fixture, token: &str, path: &str, body: &Value) -> super::Answer {
    f.ask(token, "POST", path, &body.to_string()).await
}

#[tokio::test]
async fn a_bulk_acts_on_what_its_preview_has_counted_and_on_no_later_failure() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let (one, two) = (f.console.failed().await, f.console.failed().await);
    let mut request = json!({"kind": "requeue", "filter": {"job": "shop.charge", "since": "1h", "error_class": "exit_1"}});
    let preview = ask(&f, &token, "/bulks:preview", &request).await.expect(200);
    assert_eq!((&preview["count"], &preview["more"]), (&json!(2), &json!(false)));
    assert_eq!(preview["jobs"], json!([["shop.charge", 2]]));
    let groups = f.get(&token, "/failure-groups").await.expect(200);
    assert_eq!(preview["groups"], json!([[groups["items"][0]["fingerprint"], 2]]));
    let late = f.console.failed().await;
    request["previewed_at"] = preview["previewed_at"].clone();
    request["count"] = preview["count"].clone();
    request["rate"] = json!("10/s");
    request["canary"] = json!(1);
    request["reason"] = json!("bank is back");
    let bulk = ask(&f, &token, "/bulks", &request).await.expect(201);
    assert_eq!(
        (&bulk["kind"], &bulk["rate"], &bulk["canary"], &bulk["actor"]),
        (&json!("requeue"), &json!("10/s"), &json!(1), &json!("token ann"))
    );
    assert_eq!(bulk["previewed_at"], preview["previewed_at"]);
    let shown = f.get(&token, &format!("/bulks/{}", bulk["id"])).await.expect(200);
    assert_eq!(shown["bulk"]["reason"], "bank is back");
    // It selects what was counted: schedulers do it with this statement.
    let id = bulk["id"].as_i64().unwrap();
    while sexton_store::bulk::prepare(f.console.store(), id, 100, None).await.unwrap().is_some() {}
    let items = sexton_store::bulk::list_items(f.console.store(), id, &["waiting"], 0, 100).await;
    let ids: Vec<_> = items.unwrap().iter().map(|item| item.execution_id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.contains(&one.get()) && ids.contains(&two.get()) && !ids.contains(&late.get()));
    // Somebody was faster: what the sender has seen is no longer so.
    f.ask(&token, "POST", &format!("/failures/{one}/requeue"), "").await.expect(200);
    let refused = ask(&f, &token, "/bulks", &request).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("1 executions are selected"), "{refused}");
}

#[tokio::test]
async fn executions_are_selected_by_their_ids_at_the_attempts_that_were_seen() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let id = f.console.failed().await;
    let mut request = json!({"kind": "discard", "executions": [{"id": id}]});
    let preview = ask(&f, &token, "/bulks:preview", &request).await.expect(200);
    assert_eq!(preview["executions"], json!([{"id": id, "attempt": 2}]));
    request["executions"] = preview["executions"].clone();
    request["executions"][0]["attempt"] = json!(1);
    let refused = ask(&f, &token, "/bulks", &request).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/reason");
    request["reason"] = json!("paid in cash");
    let bulk = ask(&f, &token, "/bulks", &request).await.expect(201);
    let items = sexton_store::bulk::list_items(
        f.console.store(),
        bulk["id"].as_i64().unwrap(),
        &["waiting"],
        0,
        10,
    );
    assert_eq!(items.await.unwrap()[0].seen, 1, "as the sender has seen it");
    let restored = ask(&f, &token, &format!("/bulks/{}/restore", bulk["id"]), &json!({})).await;
    assert!(restored.expect(409)["detail"].as_str().unwrap().contains("go on discarding"));
    request = json!({"kind": "requeue", "executions": [{"id": id}]});
    let requeue = ask(&f, &token, "/bulks", &request).await.expect(201);
    let path = format!("/bulks/{}/restore", requeue["id"]);
    let other = ask(&f, &token, &path, &json!({"rate": "1/s"})).await.expect(400);
    assert!(other["detail"].as_str().unwrap().contains("nothing to restore"), "{other}");
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_bulk_is_named_at_once() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let unknown = "01a21e8b-dbe2-7304-91c3-cd3c8aa248e3";
    let cases = [
        (
            json!({"kind": "cancel", "canary": 2_000, "rate": "soon", "pool": "A B", "no_verify": true}),
            vec!["/canary", "/canary", "/pool", "/no_verify", "/rate", "/pool"],
        ),
        (json!({"kind": "requeue", "filter": {"state": ["pending"]}}), vec!["/filter/state"]),
        (
            json!({"kind": "cancel", "filter": {"state": ["failed"], "muted": true}}),
            vec!["/filter/muted", "/filter/state"],
        ),
        (
            json!({"kind": "requeue", "filter": {"since": "x", "param": ["y"]}}),
            vec!["/filter/since", "/filter/param"],
        ),
        (json!({"kind": "requeue", "executions": [{"id": unknown}]}), vec!["/executions/0/id"]),
        (json!({"kind": "requeue", "filter": {"colour": "red"}}), vec!["/filter/colour"]),
        (
            json!({"kind": "requeue", "all": true, "previewed_at": "2999-01-01T00:00:00Z"}),
            vec!["/previewed_at"],
        ),
    ];
    for (body, pointers) in cases {
        for path in ["/bulks", "/bulks:preview"] {
            let refused = ask(&f, &token, path, &body).await.expect(400);
            let mut found: Vec<_> = refused["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["pointer"].as_str().unwrap().to_owned())
                .collect();
            let mut pointers = pointers.clone();
            found.sort_unstable();
            pointers.sort_unstable();
            assert_eq!(found, pointers, "{body}: {refused}");
        }
    }
    let large = json!({"kind": "requeue", "all": true, "canary": 2_000});
    let refused = ask(&f, &token, "/bulks", &large).await.expect(400);
    assert_eq!(refused["errors"][0]["detail"], "must be 1 to 1000", "{refused}");
    for nothing in
        [json!({"kind": "requeue"}), json!({"kind": "requeue", "filter": {"muted": true}})]
    {
        let refused = ask(&f, &token, "/bulks", &nothing).await.expect(400);
        assert!(refused["detail"].as_str().unwrap().contains("nothing is selected"), "{refused}");
    }
    ask(&f, &token, "/bulks", &json!({"kind": "requeue", "all": true})).await.expect(409);
    let pool = json!({"kind": "requeue", "all": true, "pool": "gpu"});
    assert_eq!(ask(&f, &token, "/bulks:preview", &pool).await.expect(404)["code"], "not_found");
    assert_eq!(f.get(&token, "/bulks").await.expect(200)["items"], json!([]));
}
