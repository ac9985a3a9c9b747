//! Jobs that leave a scope because somebody changes their labels: what the team has under way.

use serde_json::{Value, json};

use super::{count, restricted};
use crate::api::Fixture;

/// Applies `shop.charge` with a label.
async fn label(f: &Fixture, team: &str) {
    let text = format!(
        "[[job]]\nname = \"shop.charge\"\ntask = \"work\"\nlabels = {{ team = \"{team}\" }}\n"
    );
    f.console.run(&["jobs", "apply", "-f", &f.console.file("shop.toml", &text)]).await.expect(0);
}

#[tokio::test]
async fn a_team_stops_its_bulk_though_a_job_has_left_and_does_not_resume_it() {
    let f = Fixture::new().await;
    label(&f, "billing").await;
    let (one, other) = (f.console.failed().await, f.console.failed().await);
    let maker = restricted(&f, "maker", "operator", "team=billing").await;
    let colleague = restricted(&f, "colleague", "operator", "team=billing").await;
    let stranger = restricted(&f, "stranger", "operator", "team=shop").await;
    let post = async |token: &str, path: &str, body: Value| {
        f.ask(token, "POST", path, &body.to_string()).await
    };
    let slow = json!({"kind": "requeue", "all": true, "rate": "1/h"});
    let by_filter = post(&maker, "/bulks", slow).await.expect(201)["id"].clone();
    let ids = json!([{"id": one.to_string()}, {"id": other.to_string()}]);
    let slow = json!({"kind": "requeue", "executions": ids, "rate": "1/h"});
    let by_ids = post(&maker, "/bulks", slow).await.expect(201)["id"].clone();
    // As a scheduler selects the items of a filter.
    let select = "INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
        SELECT $1, row_number() OVER (), id, attempt, 'waiting' FROM sexton.executions WHERE state = 'failed'";
    let pool = f.console.store().pool();
    sqlx::query(select).bind(by_filter.as_i64()).execute(pool).await.unwrap();
    let control = async |token: &str, bulk: &Value, action: &str| {
        post(token, &format!("/bulks/{bulk}/{action}"), json!({"reason": "x"})).await
    };
    control(&stranger, &by_filter, "stop").await.expect(403);
    label(&f, "shop").await;
    control(&colleague, &by_ids, "stop").await.expect(204);
    control(&stranger, &by_filter, "stop").await.expect(403);
    control(&colleague, &by_filter, "stop").await.expect(204);
    for bulk in [&by_filter, &by_ids] {
        control(&maker, bulk, "resume").await.expect(403);
    }
    label(&f, "billing").await;
    control(&colleague, &by_filter, "resume").await.expect(204);
}

#[tokio::test]
async fn a_team_stops_the_bulk_that_it_requested_and_somebody_else_approved() {
    let f = Fixture::new().await;
    label(&f, "billing").await;
    f.console.run(&["approvals", "rules", "set", "all", "--above", "1"]).await.expect(0);
    let (one, other) = (f.console.failed().await, f.console.failed().await);
    let team = restricted(&f, "team", "operator", "team=billing").await;
    let ids = json!([{"id": one.to_string()}, {"id": other.to_string()}]);
    let slow = json!({"kind": "requeue", "executions": ids, "rate": "1/h", "reason": "x"});
    let request = f.ask(&team, "POST", "/bulks", &slow.to_string()).await.expect(202);
    let approver = f.session("eve", "editor").await;
    let approve = format!("/approvals/{}/approve", request["id"]);
    let done = f.visit(&approver, "POST", &approve, "{}").await.expect(200);
    assert_eq!(done["state"], "carried_out", "{done}");
    label(&f, "shop").await;
    let stranger = restricted(&f, "stranger", "operator", "team=transport").await;
    let reason = r#"{"reason": "x"}"#;
    f.ask(&stranger, "POST", "/bulks/1/stop", reason).await.expect(403);
    f.ask(&team, "POST", "/bulks/1/stop", reason).await.expect(204);
    f.ask(&team, "POST", "/bulks/1/resume", reason).await.expect(403);
}

#[tokio::test]
async fn a_request_is_taken_back_by_its_requester_though_its_job_has_left() {
    let f = Fixture::new().await;
    label(&f, "billing").await;
    f.console.run(&["approvals", "rules", "set", "all"]).await.expect(0);
    let id = f.console.failed().await;
    let team = restricted(&f, "team", "operator", "team=billing").await;
    let discard = format!("/failures/{id}/discard");
    let reason = r#"{"reason": "x"}"#;
    f.ask(&team, "POST", &discard, reason).await.expect(202);
    label(&f, "shop").await;
    let colleague = restricted(&f, "colleague", "operator", "team=billing").await;
    f.ask(&colleague, "POST", "/approvals/1/reject", reason).await.expect(403);
    f.ask(&team, "POST", "/approvals/1/approve", reason).await.expect(403);
    let rejected = f.ask(&team, "POST", "/approvals/1/reject", reason).await.expect(200);
    assert_eq!(rejected["state"], "rejected", "{rejected}");
}

#[tokio::test]
async fn a_file_with_unchanged_jobs_of_others_is_applied() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let token = restricted(&f, "team", "editor", "billing.*").await;
    let once = "[[job]]\nname = \"shop.once\"\ntask = \"work\"\nat = \"2024-03-01T00:00:00Z\"\npast = \"run\"\n";
    let mine = "[[job]]\nname = \"billing.new\"\ntask = \"work\"\n";
    let apply = async |token: &str, text: &str| {
        let body = json!({"file": "all.toml", "text": text}).to_string();
        f.ask(token, "POST", "/jobs:apply", &body).await
    };
    apply(&admin, once).await.expect(200);
    // It has fired, days ago: what the file contains is kept, which is written once a day.
    let pool = f.console.store().pool();
    let fired = "UPDATE sexton.jobs SET next_fire_at = NULL, next_nominal_at = NULL, updated_at = updated_at - interval '3 days',
            applied_at = applied_at - interval '3 days' WHERE name = 'shop.once'";
    sqlx::query(fired).execute(pool).await.unwrap();
    let kept =
        "SELECT applied_at > now() - interval '1 hour' FROM sexton.jobs WHERE name = 'shop.once'";
    let kept = async || sqlx::query_scalar::<_, Option<bool>>(kept).fetch_one(pool).await.unwrap();
    assert_ne!(kept().await, Some(true));
    let jobs = count(&f, "jobs").await;
    apply(&token, &format!("{once}{mine}")).await.expect(200);
    assert_eq!((kept().await, count(&f, "jobs").await), (Some(true), jobs + 1));
    let changed = once.replace("\"work\"", "\"report\"");
    apply(&token, &format!("{changed}{mine}")).await.expect(403);
}

#[tokio::test]
async fn a_page_that_somebody_has_overtaken_takes_no_restriction_away() {
    let f = Fixture::new().await;
    let create = ["accounts", "create", "ann", "--role", "operator", "--generate"];
    f.console.run(&create).await.expect(0);
    let authorization = format!("Authorization: Bearer {}", f.token("root", "admin").await);
    let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
    let get = async || {
        let page = f.send_to("GET", "/settings/accounts", &headers, "").await.expect(200);
        page.as_str().unwrap().to_owned()
    };
    let post =
        async |form: &str| f.send_to("POST", "/settings/accounts/ann/role", &headers, form).await;
    let only_jobs =
        async || f.console.json(&["accounts", "list"]).await["items"][0]["only_jobs"].clone();
    assert!(get().await.contains(r#"name="seen_jobs" value="all""#));
    f.console
        .run(&["accounts", "set-role", "ann", "operator", "--only-jobs", "a.*"])
        .await
        .expect(0);
    let refused = post("role=editor&only_jobs=&seen_role=operator&seen_jobs=all").await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let why = refused.body.as_str().unwrap();
    assert!(why.contains("somebody has changed what the account"), "{why}");
    // A page of an older version has no such field.
    assert_eq!(post("role=editor&only_jobs=").await.status, 400);
    assert_eq!(only_jobs().await, "a.*");
    assert!(get().await.contains(r#"name="seen_jobs" value="a.*""#));
    let stale = "role=editor&only_jobs=&seen_role=viewer&seen_jobs=a.*";
    assert_eq!(post(stale).await.status, 409);
    assert_eq!(post(&stale.replace("viewer", "operator")).await.status, 303);
    assert_eq!(only_jobs().await, Value::Null);
}
