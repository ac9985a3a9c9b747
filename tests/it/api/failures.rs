//! Failed executions: found, understood, requeued.

use serde_json::json;

use super::Fixture;

#[tokio::test]
async fn a_failure_is_found_shown_and_requeued_by_one_of_two_people() {
    let f = Fixture::new().await;
    let (ann, bob) = (f.token("ann", "operator").await, f.token("bob", "operator").await);
    let failed = f.console.failed().await;
    let id = failed.to_string();
    let found = f.get(&ann, "/failures?text=card%20decl&label=&param=customer=4891").await;
    assert_eq!(found.status, 400, "an empty label");
    let found = f.get(&ann, "/failures?text=card%20decl&param=customer=4891").await.expect(200);
    assert_eq!(found, f.console.json(&["failed", "list"]).await);
    assert_eq!(found["items"][0]["id"], id);
    let shown = f.get(&ann, &format!("/failures/{id}")).await.expect(200);
    assert_eq!(shown, f.console.json(&["failed", "show", &id]).await);
    assert_eq!((&shown["attempts"][0]["exit_code"], &shown["attempt"]), (&json!(1), &json!(2)));
    let requeue = format!("/failures/{id}/requeue");
    let seen = r#"{"attempt": 2, "reason": "bank is back"}"#;
    let done = f.ask(&ann, "POST", &requeue, seen).await.expect(200);
    assert_eq!(done, json!({"id": id, "state": "pending"}));
    let late = f.ask(&bob, "POST", &requeue, seen).await.expect(409);
    let detail = late["detail"].as_str().unwrap();
    assert!(
        detail.contains("it is pending") && detail.contains("requeue by token ann"),
        "{detail}"
    );
    // It fails again, for another reason perhaps; who saw the first failure requeues nothing.
    let open = f.console.open(failed, 2).await;
    f.console.fail(open, "card stolen", None).await;
    f.ask(&bob, "POST", &requeue, seen).await.expect(409);
    assert_eq!(f.console.state(failed).await, "failed/3");
    let actions = ["trigger by tester because ", "requeue by token ann because bank is back"];
    assert_eq!(f.console.audit(failed).await, actions);
}

#[tokio::test]
async fn a_failure_is_discarded_with_a_reason_and_restored() {
    let f = Fixture::new().await;
    let token = f.token("ann", "operator").await;
    let id = f.console.failed().await;
    let path = |action: &str| format!("/failures/{id}/{action}");
    let refused = f.ask(&token, "POST", &path("discard"), "{}").await.expect(400);
    assert!(refused["detail"].as_str().unwrap().starts_with("missing field `reason`"), "{refused}");
    f.ask(&token, "POST", &path("discard"), r#"{"reason": "paid in cash"}"#).await.expect(200);
    let listed = f.get(&token, "/failures?discarded=true").await.expect(200);
    assert_eq!(listed["items"][0]["id"], id.to_string());
    f.ask(&token, "POST", &path("requeue"), "").await.expect(409);
    f.ask(&token, "POST", &path("restore"), "").await.expect(200);
    assert_eq!(f.console.state(id).await, "failed/2");
}

#[tokio::test]
async fn failures_are_counted_as_a_list_would_have_them_up_to_ten_thousand() {
    let f = Fixture::new().await;
    let token = f.token("ann", "viewer").await;
    f.console.failed().await;
    f.console.failed().await;
    let count = async |query: &str| f.get(&token, &format!("/failures:count{query}")).await;
    assert_eq!(count("").await.expect(200), json!({"value": 2, "exact": true}));
    assert_eq!(count("?error_class=other").await.expect(200), json!({"value": 0, "exact": true}));
    assert_eq!(count("?since=x").await.expect(400)["errors"][0]["parameter"], "since");
    // As after many failures of one kind.
    let copies = "INSERT INTO sexton.failures
        SELECT gen_random_uuid(), discarded, job_id, task_type, pool, failed_at, error_class, fingerprint, worker, words, params
        FROM (SELECT * FROM sexton.failures LIMIT 1) f, generate_series(1, 10000)";
    sqlx::query(copies).execute(f.console.store().pool()).await.unwrap();
    assert_eq!(count("").await.expect(200), json!({"value": 10_000, "exact": false}));
}
