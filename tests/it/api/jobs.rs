//! Jobs and executions.

use serde_json::{Value, json};

use super::Fixture;

#[tokio::test]
async fn lists_are_those_of_the_command_line_page_by_page() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let all = f.get(&token, "/jobs").await.expect(200);
    assert_eq!(all, f.console.json(&["jobs", "list"]).await);
    let first = f.get(&token, "/jobs?limit=2&contains=s").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let linked = f.get(&token, "/jobs?limit=2&contains=s").await;
    let link = format!("<?limit=2&contains=s&cursor={cursor}>; rel=\"next\"");
    assert_eq!(linked.header("link"), Some(&*link));
    let second =
        f.get(&token, &format!("/jobs?limit=2&contains=s&cursor={cursor}")).await.expect(200);
    assert_eq!(
        (&second["items"], &second["next_cursor"]),
        (&json!([all["items"][2]]), &Value::Null)
    );
    let path = format!("/jobs?limit=2&contains=s&cursor={cursor}");
    let back = "<?limit=2&contains=s>; rel=\"first\"";
    assert_eq!(f.get(&token, &path).await.header("link"), Some(back), "it is the last page");
    assert_eq!(f.get(&token, "/jobs").await.header("link"), None, "it is the only one");
    let shown = f.get(&token, "/jobs/shop.charge").await.expect(200);
    assert_eq!(shown, f.console.json(&["jobs", "show", "shop.charge"]).await);
    let missing = f.get(&token, "/jobs/shop.charg").await.expect(404);
    assert!(missing["detail"].as_str().unwrap().contains("similar: shop.charge"), "{missing}");
}

#[tokio::test]
async fn a_job_is_triggered_once_for_each_key_paused_and_resumed() {
    let f = Fixture::new().await;
    let token = f.token("ops", "operator").await;
    let body =
        r#"{"params": {"customer": 9007199254740993}, "key": "order-7", "reason": "by hand"}"#;
    let post = async |path: &str, body: &str| f.ask(&token, "POST", path, body).await;
    let first = post("/jobs/shop.charge/trigger", body).await.expect(200);
    let again = post("/jobs/shop.charge/trigger", body).await.expect(200);
    assert_eq!((&first["created"], &again["created"]), (&json!(true), &json!(false)));
    assert_eq!(first["execution_id"], again["execution_id"]);
    let id = first["execution_id"].as_str().unwrap();
    let shown = f.get(&token, &format!("/executions/{id}")).await.expect(200);
    assert_eq!(shown, f.console.json(&["executions", "show", id]).await);
    assert_eq!(shown["params"]["customer"], 9_007_199_254_740_993_u64, "not rounded");
    let long = r#"{"params": {"customer": 123456789012345678901234567890}}"#;
    let refused = post("/jobs/shop.charge/trigger", long).await.expect(400);
    let problem = "the integer 123456789012345678901234567890 does not fit into 64 bits and would be rounded; write it as a text";
    assert_eq!(refused["errors"][0]["detail"], problem);
    let action = &shown["operator_actions"][0];
    assert_eq!(
        (&action["actor"], &action["from_where"]),
        (&"token ops".into(), &"api 127.0.0.1".into())
    );
    let listed =
        f.get(&token, "/executions?state=pending&state=running&job=shop.charge").await.expect(200);
    assert_eq!(
        (listed["items"].as_array().unwrap().len(), &listed["items"][0]["id"]),
        (1, &id.into())
    );
    let paused = post("/jobs/shop.charge/pause", r#"{"reason": "bank is down"}"#).await.expect(200);
    assert_eq!(paused, json!({"name": "shop.charge", "status": "paused"}));
    let twice = post("/jobs/shop.charge/pause", r#"{"reason": "again"}"#).await.expect(409);
    assert!(twice["detail"].as_str().unwrap().contains("by token ops: bank is down"), "{twice}");
    let resumed = post("/jobs/shop.charge/resume", "").await.expect(200);
    assert_eq!((&resumed["status"], &resumed["missed"]), (&"active".into(), &json!(0)));
    let cancelled =
        post(&format!("/executions/{id}/cancel"), r#"{"reason": "wrong"}"#).await.expect(200);
    assert_eq!(cancelled, json!({"id": id, "ended": true}));
    post(&format!("/executions/{id}/cancel"), "").await.expect(409);
}

#[tokio::test]
async fn what_looks_like_a_secret_in_a_job_is_masked() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let file = f.console.file(
        "secret.toml",
        "[[job]]\nname = \"a.secret\"\ntask = \"work\"\nparams = { api_token = \"hunter2\", order = 7 }\n",
    );
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    f.console.run(&["jobs", "trigger", "a.secret"]).await.expect(0);
    for path in ["/jobs", "/jobs/a.secret", "/executions", "/audit"] {
        let answer = f.get(&token, path).await.expect(200).to_string();
        assert!(!answer.contains("hunter2"), "{path}: {answer}");
    }
    let shown = f.get(&token, "/jobs/a.secret").await.expect(200);
    assert_eq!(shown["params"], json!({"api_token": "***", "order": 7}));
}
