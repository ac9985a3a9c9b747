//! Jobs that are applied and deleted, firings that are explained, executions that are enqueued.

use serde_json::{Value, json};

use super::Fixture;

const FILE: &str = "[[job]]\nname = \"a.new\"\nschedule = \"0 2 * * *\"\ntask = \"work\"\n";

fn apply(text: &str, more: &Value) -> String {
    let mut request = json!({"text": text, "file": "my.toml"});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request.to_string()
}

#[tokio::test]
async fn a_file_is_applied_as_a_whole_or_not_at_all() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let post = async |body: String| f.ask(&token, "POST", "/jobs:apply", &body).await;
    let dry = post(apply(FILE, &json!({"dry_run": true}))).await.expect(200);
    assert_eq!((&dry["created"], &dry["dry_run"]), (&json!(["a.new"]), &json!(true)));
    f.get(&token, "/jobs/a.new").await.expect(404);
    post(apply(FILE, &json!({}))).await.expect(200);
    let changed = post(apply(&FILE.replace("0 2", "0 3"), &json!({}))).await.expect(200);
    let field = &changed["changed"][0]["changes"]["schedule_expression"];
    assert_eq!(field, &json!({"from": "0 2 * * *", "to": "0 3 * * *"}));
    let wrong = FILE.replace("task", "tusk") + &FILE.replace("a.new", "b").replace("0 2", "99 2");
    let refused = post(apply(&wrong, &json!({}))).await.expect(400);
    let errors = refused["errors"].as_array().unwrap();
    assert!(errors.len() >= 2, "{refused}");
    assert!(errors.iter().all(|one| one["line"].is_u64()), "{refused}");
    assert!(errors[0]["detail"].as_str().unwrap().contains("my.toml"), "{refused}");
    // Each problem would repeat it.
    let long = post(apply(&wrong, &json!({"file": "a".repeat(256)}))).await.expect(400);
    assert_eq!(long["errors"][0]["pointer"], "/file", "{long}");
    let audit = f.console.json(&["audit", "list", "--job", "a.new"]).await;
    assert_eq!(audit["items"][0]["actor"], "token ed");
    let path = "/jobs/a.new?reason=moved";
    let deleted = f.ask(&token, "DELETE", &format!("{path}&dry_run=true"), "").await.expect(200);
    assert_eq!((&deleted["dry_run"], &deleted["waiting"]), (&json!(true), &json!(0)));
    f.ask(&token, "DELETE", "/jobs/a.new", "").await.expect(400);
    assert_eq!(f.ask(&token, "DELETE", path, "").await.status, 428);
    let delete = async |seen: &str| f.ask_with(&token, ("DELETE", path), &[seen], "").await;
    let stale = delete("If-Match: \"1\"").await.expect(412);
    assert!(stale["detail"].as_str().unwrap().contains("revision 2"), "{stale}");
    delete("If-Match: 2").await.expect(400);
    delete("If-Match: \"2\"").await.expect(200);
    delete("If-Match: \"2\"").await.expect(404);
    // What it was can still be looked up.
    assert!(f.get(&token, "/jobs/a.new").await.expect(200)["deleted_at"].is_string());
}

#[tokio::test]
async fn firings_are_explained_as_on_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let (since, until) = ("2020-01-01T00:00:00Z", "2020-03-01T00:00:00Z");
    let path = format!("/jobs/billing.invoices/firings?since={since}&until={until}");
    let mut answer = f.get(&token, &path).await.expect(200);
    let command = ["jobs", "explain", "billing.invoices", "--since", since, "--until", until];
    let mut expected = f.console.json(&command).await;
    for document in [&mut answer, &mut expected] {
        document["now"] = Value::Null;
    }
    assert_eq!(answer, expected);
    let one =
        f.get(&token, "/jobs/billing.invoices/firings?at=2020-01-02T00:00:00Z").await.expect(200);
    assert!(one["no_firing"]["why"].is_string(), "{one}");
    let refused =
        f.get(&token, "/jobs/billing.invoices/firings?at=2020&zone=Mars").await.expect(400);
    assert_eq!(refused["errors"][0]["parameter"], "zone");
    f.get(&token, "/jobs/billing.invoices/firings").await.expect(400);
}

#[tokio::test]
async fn an_execution_is_enqueued_once_for_each_key_and_its_output_shown() {
    let f = Fixture::new().await;
    let token = f.token("shop", "operator").await;
    let enqueue = async |body: Value| f.ask(&token, "POST", "/enqueue", &body.to_string()).await;
    let mut order = json!({"job": "shop.charge", "params": {"customer": 7}, "key": "order-7", "unique_for": "1h", "labels": {"team": "a"}});
    let (first, again) =
        (enqueue(order.clone()).await.expect(200), enqueue(order.clone()).await.expect(200));
    assert_eq!((&first["created"], &again["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["execution_id"], again["execution_id"]);
    let later = enqueue(json!({"job": "shop.charge", "delay_s": 3600})).await.expect(200);
    assert_eq!(later["state"], "pending");
    let (entry, count) = f.audited("enqueue").await;
    // The known key changes nothing.
    assert_eq!((&entry["actor"], count), (&json!("token shop"), 2));
    assert_eq!(entry["execution_id"], later["execution_id"], "{entry}");
    let replacing = json!({"if_exists": "replace", "params": {"customer": 8}});
    order.as_object_mut().unwrap().extend(replacing.as_object().unwrap().clone());
    let replaced = enqueue(order).await.expect(200);
    assert_eq!(replaced["created"], json!(false));
    let (entry, count) = f.audited("enqueue").await;
    assert_eq!((&entry["execution_id"], count), (&first["execution_id"], 3));
    let after = &entry["after"];
    assert_eq!((&after["created"], &after["state"]), (&json!(false), &json!("pending")));
    for (body, pointer) in [
        (json!({"job": "shop.charge", "unique_for": "1h"}), "/unique_for"),
        (json!({"job": "shop.charge", "key": "a", "unique_for": "soon"}), "/unique_for"),
        (json!({"job": "shop.charge", "delay_s": 1, "run_at": "2030-01-01T00:00:00Z"}), "/delay_s"),
        (json!({"job": "shop.charge", "delay_s": 99_999_999}), "/delay_s"),
    ] {
        assert_eq!(enqueue(body).await.expect(400)["errors"][0]["pointer"], pointer);
    }
    enqueue(json!({"job": "shop.chage"})).await.expect(404);
    f.console.run(&["jobs", "pause", "shop.charge", "--reason", "down"]).await.expect(0);
    let paused = enqueue(json!({"job": "shop.charge"})).await.expect(409);
    assert!(paused["detail"].as_str().unwrap().contains("paused"), "{paused}");
    let id = f.console.failed().await;
    let output = f.get(&token, &format!("/executions/{id}/output")).await.expect(200);
    assert_eq!(output, f.console.json(&["executions", "logs", &id.to_string()]).await);
    f.get(&token, &format!("/executions/{id}/output?attempt=9")).await.expect(404);
}
