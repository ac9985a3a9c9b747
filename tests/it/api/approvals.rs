//! Actions that wait for another person.

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_store::approvals;
use sexton_store::operator::AuditContext;

use super::Fixture;

/// Three people who may act, and one who may edit.
pub(super) async fn people(f: &Fixture) -> [String; 3] {
    let mut all = Vec::new();
    for name in ["ann", "bob", "eve"] {
        all.push(f.session(name, "editor").await);
    }
    all.try_into().unwrap()
}

pub(super) async fn rule(f: &Fixture, options: &[&str]) {
    f.console.run(&[&["approvals", "rules", "set", "all"], options].concat()).await.expect(0);
}

pub(super) async fn discard(f: &Fixture, cookie: &str, id: ExecutionId) -> Value {
    let path = format!("/failures/{id}/discard");
    f.visit(cookie, "POST", &path, r#"{"reason": "paid in cash"}"#).await.expect(202)
}

pub(super) async fn executions_of(f: &Fixture, job: &str) -> i64 {
    let count = "SELECT count(*) FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = $1";
    sqlx::query_scalar(count).bind(job).fetch_one(f.console.store().pool()).await.unwrap()
}

pub(super) async fn approve(f: &Fixture, cookie: &str, request: &Value, status: u16) -> Value {
    let path = format!("/approvals/{}/approve", request["id"]);
    f.visit(cookie, "POST", &path, "{}").await.expect(status)
}

#[tokio::test]
async fn another_person_approves_what_one_has_requested_and_then_it_is_done_once() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &["--people", "3"]).await;
    let id = f.console.failed().await;
    let request = discard(&f, &ann, id).await;
    assert_eq!((&request["state"], &request["people"]), (&json!("waiting"), &json!(3)));
    assert_eq!(f.console.state(id).await, "failed/2");
    let refused = approve(&f, &ann, &request, 409).await;
    assert!(refused["detail"].as_str().unwrap().contains("requested by you"), "{refused}");
    assert_eq!(approve(&f, &bob, &request, 200).await["state"], "waiting");
    let twice = approve(&f, &bob, &request, 409).await;
    assert!(twice["detail"].as_str().unwrap().contains("your approval already"), "{twice}");
    assert_eq!(f.console.state(id).await, "failed/2");
    assert_eq!(approve(&f, &eve, &request, 200).await["state"], "carried_out");
    assert_eq!(f.console.state(id).await, "discarded/2");
    approve(&f, &eve, &request, 409).await;
    let last = f.console.audit(id).await.pop().unwrap();
    assert_eq!(last, "discard by account ann because paid in cash (approval 1)");
}

#[tokio::test]
async fn of_two_who_approve_at_the_same_time_one_carries_it_out() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    for round in 1..=5 {
        let id = f.console.failed().await;
        discard(&f, &ann, id).await;
        let path = format!("/approvals/{round}/approve");
        let (one, other) =
            tokio::join!(f.visit(&bob, "POST", &path, "{}"), f.visit(&eve, "POST", &path, "{}"));
        assert!([one.status, other.status].contains(&200), "{} {}", one.body, other.body);
        assert_eq!(f.console.state(id).await, "discarded/2");
        let discards = f.console.audit(id).await;
        assert_eq!(discards.iter().filter(|line| line.starts_with("discard")).count(), 1);
    }
}

#[tokio::test]
async fn what_has_changed_since_the_request_is_not_done_and_the_request_says_why() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let request = discard(&f, &ann, id).await;
    f.console.run(&["failed", "requeue", &id.to_string()]).await.expect(0);
    let open = f.console.open(id, 2).await;
    f.console.fail(open, "card stolen", None).await;
    let failed = approve(&f, &bob, &request, 200).await;
    assert_eq!(failed["state"], "failed");
    assert!(failed["outcome"].as_str().unwrap().contains("at attempt 3"), "{failed}");
    assert_eq!(f.console.state(id).await, "failed/3");
}

#[tokio::test]
async fn edits_bulks_and_backfills_wait_and_are_carried_out_as_they_were_requested() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let ids = [f.console.failed().await, f.console.failed().await];
    let edit =
        r#"{"merge": {"customer": 7, "password": "hunter2"}, "requeue": false, "reason": "typo"}"#;
    let path = format!("/failures/{}/edit", ids[0]);
    let request = f.visit(&ann, "POST", &path, edit).await.expect(202);
    assert!(!request.to_string().contains("hunter2"), "{request}");
    assert_eq!(approve(&f, &bob, &request, 200).await["state"], "carried_out");
    let shown = f.console.json(&["executions", "show", &ids[0].to_string()]).await;
    assert_eq!((&shown["params"]["customer"], &shown["state"]), (&json!(7), &json!("failed")));
    let bulk = r#"{"kind": "requeue", "all": true}"#;
    let request = f.visit(&ann, "POST", "/bulks", bulk).await.expect(202);
    assert_eq!(request["proposal"]["count"], 2);
    let done = approve(&f, &bob, &request, 200).await;
    assert_eq!((&done["state"], &done["bulk_id"]), (&json!("carried_out"), &json!(1)));
    let path = "/jobs/billing.invoices/backfills";
    let range = r#"{"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z"}"#;
    let request = f.visit(&ann, "POST", path, range).await.expect(202);
    assert_eq!(executions_of(&f, "billing.invoices").await, 0);
    assert_eq!(approve(&f, &bob, &request, 200).await["state"], "carried_out");
    assert_eq!(executions_of(&f, "billing.invoices").await, 3);
    // Of one firing it is no backfill that waits, and of one execution no bulk.
    let range = r#"{"since": "2024-04-01T00:00:00Z", "until": "2024-04-02T00:00:00Z"}"#;
    f.visit(&ann, "POST", path, range).await.expect(200);
    let one = json!({"kind": "requeue", "executions": [{"id": ids[0].to_string()}]}).to_string();
    f.visit(&ann, "POST", "/bulks", &one).await.expect(201);
}

#[tokio::test]
async fn a_rejected_and_an_expired_request_is_never_carried_out() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let request = discard(&f, &ann, id).await;
    let reject = format!("/approvals/{}/reject", request["id"]);
    let rejected = f.visit(&bob, "POST", &reject, r#"{"reason": "no"}"#).await.expect(200);
    assert_eq!(rejected["state"], "rejected");
    approve(&f, &bob, &request, 409).await;
    let request = discard(&f, &ann, id).await;
    let past = "UPDATE sexton.approval_requests SET requested_at = now() - interval '2 days', expires_at = now()
        WHERE state = 'waiting'";
    sqlx::query(past).execute(f.console.store().pool()).await.unwrap();
    approve(&f, &bob, &request, 409).await;
    assert_eq!(f.console.state(id).await, "failed/2");
    let all = f.visit(&bob, "GET", "/approvals?all=true", "").await.expect(200);
    assert_eq!(all["items"][0]["state"], "expired");
}

#[tokio::test]
async fn a_stricter_rule_that_is_set_meanwhile_holds_for_what_waits() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let request = discard(&f, &ann, id).await;
    rule(&f, &["--people", "3"]).await;
    assert_eq!(approve(&f, &bob, &request, 200).await["state"], "waiting");
    assert_eq!(f.console.state(id).await, "failed/2");
    assert_eq!(approve(&f, &eve, &request, 200).await["state"], "carried_out");
    // Also for one that enough people have approved, and that nobody carries out yet.
    let id = f.console.failed().await;
    rule(&f, &[]).await;
    let request = discard(&f, &ann, id).await;
    let by = AuditContext { actor: "account bob", reason: None };
    let (number, names) = (request["id"].as_i64().unwrap(), ["bob".to_owned()]);
    approvals::approve(f.console.store(), number, 2, &names, by, None).await.unwrap();
    rule(&f, &["--people", "3"]).await;
    let twice = approve(&f, &bob, &request, 409).await;
    assert!(twice["detail"].as_str().unwrap().contains("your approval already"), "{twice}");
    assert_eq!(f.console.state(id).await, "failed/2");
    assert_eq!(approve(&f, &eve, &request, 200).await["state"], "carried_out");
}

#[tokio::test]
async fn a_token_counts_as_the_person_who_created_it() {
    let f = Fixture::new().await;
    rule(&f, &[]).await;
    // Both tokens are of `tester`, who runs the command.
    let (deploy, other) = (f.token("deploy", "operator").await, f.token("other", "operator").await);
    let id = f.console.failed().await;
    let path = format!("/failures/{id}/discard");
    let request = f.ask(&deploy, "POST", &path, r#"{"reason": "x"}"#).await.expect(202);
    let path = format!("/approvals/{}/approve", request["id"]);
    f.ask(&other, "POST", &path, "{}").await.expect(409);
    let waits =
        f.console.run(&["failed", "discard", &id.to_string(), "--yes", "--reason", "x"]).await;
    let waits = waits.expect(11);
    assert!(waits.text().contains("waits for approval 2"), "{}", waits.text());
    f.console.run(&["approvals", "approve", "1", "--yes"]).await.expect(4);
    let env = [("USER", "bob")];
    let done =
        f.console.run_with(&["approvals", "approve", "1", "--yes"], &env, "").await.expect(0);
    assert!(done.text().contains("is carried out"), "{}", done.text());
}

#[tokio::test]
async fn a_rule_by_label_concerns_no_other_job() {
    let f = Fixture::new().await;
    let [ann, ..] = people(&f).await;
    rule(&f, &["--label", "team=billing"]).await;
    let id = f.console.failed().await;
    let path = format!("/failures/{id}/discard");
    let body = r#"{"reason": "x"}"#;
    f.visit(&ann, "POST", &path, body).await.expect(200);
    let id = f.console.failed().await;
    let label =
        r#"UPDATE sexton.jobs SET labels = '{"team": "billing"}' WHERE name = 'shop.charge'"#;
    sqlx::query(label).execute(f.console.store().pool()).await.unwrap();
    discard(&f, &ann, id).await;
}
