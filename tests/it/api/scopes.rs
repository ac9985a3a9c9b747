//! Tokens and accounts that are restricted to jobs. Those are `billing.*` here, and what failed is of `shop.charge`.

pub(super) mod others;
mod pages;
mod reach;
mod relabelled;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;

use super::Fixture;

/// A token that is restricted to jobs.
pub(super) async fn restricted(f: &Fixture, name: &str, role: &str, only: &str) -> String {
    let create = ["tokens", "create", name, "--role", role, "--only-jobs", only];
    f.console.json(&create).await["token"].as_str().unwrap().to_owned()
}

async fn count(f: &Fixture, table: &'static str) -> i64 {
    let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM sexton.{table}"));
    sqlx::query_scalar(count).fetch_one(f.console.store().pool()).await.unwrap()
}

/// Each route that changes something of a job, with a request that would change one of others.
fn requests(id: ExecutionId) -> Vec<(&'static str, Value)> {
    let because = json!({"reason": "mine"});
    let job = json!({"name": "shop.new", "task": "work"});
    let file = "[[job]]\nname = \"shop.new\"\ntask = \"work\"\n";
    let edit = json!({"merge": {"customer": 1}, "requeue": false, "reason": "x"});
    let range = json!({"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z"});
    let old =
        json!({"type": "cron", "cron": "0 8 * * *", "params_scheduler": "{\"type\": \"report\"}"});
    let ids = json!({"kind": "requeue", "executions": [{"id": id.to_string()}]});
    let filter = json!({"kind": "requeue", "filter": {"job_prefix": "shop."}});
    let check = "[[check]]\nname = \"mine\"\nevery = \"1h\"\ngrace = \"1m\"\n";
    let nothing = json!({});
    vec![
        ("POST /notifications:requeue", json!({"channel": "ops"})),
        ("POST /checks:apply", json!({"text": check})),
        // A check with the name of a job is none of the job's.
        ("DELETE /checks/{name}?reason=x", Value::Null),
        ("POST /failures/{id}/requeue", nothing.clone()),
        ("POST /failures/{id}/discard", because.clone()),
        ("POST /failures/{id}/edit", edit),
        ("POST /jobs/{name}/trigger", nothing.clone()),
        ("POST /jobs/{name}/trigger-each", json!({"items": [{"key": "a"}]})),
        ("POST /jobs/{name}/enqueue-each", json!({"items": [{"key": "a"}]})),
        ("POST /jobs/{name}/pause", because),
        ("POST /jobs/{name}/backfills", range),
        ("POST /jobs", job),
        ("PUT /jobs/{name}", json!({"task": "report"})),
        ("DELETE /jobs/{name}?reason=x", Value::Null),
        ("POST /jobs:apply", json!({"file": "my.toml", "text": file})),
        ("POST /schedulers", old),
        ("POST /enqueue", json!({"job": "shop.charge"})),
        ("POST /bulks", ids),
        ("POST /bulks", filter.clone()),
        ("POST /bulks:preview", filter),
        ("POST /bulks/1/stop", nothing.clone()),
        ("POST /bulks/2/restore", nothing.clone()),
        ("POST /executions/{id}/cancel", nothing),
    ]
}

/// The route of a request, as the description of the API has it.
fn template(request: &str) -> String {
    let route = request.split('?').next().unwrap();
    route.replace("bulks/1", "bulks/{id}").replace("bulks/2", "bulks/{id}")
}

/// The other routes that change something. Behind each is the audit of an action that the first ones do as well, or one of no job,
/// as a decision about catch-ups is.
const OTHERS: &str = "POST /approvals/{id}/approve POST /approvals/{id}/reject POST /bulks/{id}/resume POST /catch-up
    POST /channels/{name}/test POST /checks/{name}/pause POST /checks/{name}/resume POST /failure-groups/{fingerprint}/remark
    POST /failures/{id}/restore POST /flows/{id}/cancel POST /incidents/{id}/acknowledge POST /incidents/{id}/resolve
    POST /incidents/{id}/silence POST /incidents/{id}/unsilence POST /jobs/{name}/resume POST /jobs:trigger
    POST /lock-keys/{name}/assign POST /lock-keys/{name}/remove POST /lock-keys:import
    POST /locks/{name}/break POST /unknown-messages/{id}/discard POST /unknown-messages/{id}/restore";

/// The routes by which an editor changes something.
async fn routes_of_editors(f: &Fixture) -> BTreeSet<String> {
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let mut routes = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "get"
                && matches!(operation["x-role"].as_str(), Some("operator" | "editor"))
            {
                let path = path.strip_prefix("/api/v1").unwrap();
                routes.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    routes
}

/// Applies a channel to which a notification is parked, and a check.
async fn channel_and_check(f: &Fixture) {
    let channel = "[[channel]]\nname = \"ops\"\nslack = { url = { env = \"SLACK_URL\" } }\n";
    let check = "[[check]]\nname = \"shop.charge\"\nevery = \"1h\"\ngrace = \"1m\"\n";
    for (what, file, text) in [("alerts", "alerts.toml", channel), ("checks", "checks.toml", check)]
    {
        f.console.run(&[what, "apply", "-f", &f.console.file(file, text)]).await.expect(0);
    }
    let parked = "INSERT INTO sexton.notifications (id, channel, kind, detail, created_at, due_at, state, finished_at)
        SELECT gen_random_uuid(), 'ops', 'test', 'a test', now(), now(), 'parked', now()";
    sqlx::query(parked).execute(f.console.store().pool()).await.unwrap();
}

#[tokio::test]
async fn who_is_restricted_to_jobs_changes_no_other_by_any_route() {
    let f = Fixture::new().await;
    let nightly = "[[job]]\nname = \"shop.nightly\"\nschedule = \"0 1 1 * *\"\ntask = \"report\"\n";
    let ed = f.token("ed", "editor").await;
    let apply = json!({"file": "nightly.toml", "text": nightly}).to_string();
    f.ask(&ed, "POST", "/jobs:apply", &apply).await.expect(200);
    let (id, other) = (f.console.failed().await, f.console.failed().await.to_string());
    let waiting = f.console.json(&["jobs", "trigger", "shop.mail"]).await["id"].clone();
    let slowly =
        ["failed", "discard", &other, "--reason", "x", "--rate", "1/h", "--detach", "--yes"];
    f.console.run(&slowly).await.expect(0);
    f.console.run(&slowly).await.expect(0);
    // As a scheduler ends it.
    let end = "UPDATE sexton.bulks SET state = 'done', prepared_at = now(), done = 1, ended_at = now() WHERE id = 2";
    sqlx::query(end).execute(f.console.store().pool()).await.unwrap();
    channel_and_check(&f).await;
    let token = restricted(&f, "team", "editor", "billing.*").await;
    let me = f.get(&token, "/me").await.expect(200);
    assert_eq!((&me["only_jobs"], &me["role"]), (&json!("billing.*"), &json!("editor")));
    let before = (
        count(&f, "operator_actions").await,
        count(&f, "executions").await,
        count(&f, "jobs").await,
    );
    let mut left = routes_of_editors(&f).await;
    let ordinary: BTreeSet<&str> = OTHERS.split_whitespace().collect();
    left.retain(|route| !ordinary.contains(route.split_once(' ').unwrap().1));
    for (route, body) in requests(id) {
        left.remove(&*template(route));
        let (method, path) = route.split_once(' ').unwrap();
        let number = match path.split('/').nth(1) {
            Some("executions") => waiting.as_str().unwrap().to_owned(),
            _ => id.to_string(),
        };
        let name = if path.ends_with("backfills") { "shop.nightly" } else { "shop.charge" };
        let path = path.replace("{id}", &number).replace("{name}", name);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let etag: &[&str] =
            if matches!(method, "PUT" | "DELETE") { &["If-Match: \"1\""] } else { &[] };
        let answer = f.ask_with(&token, (method, &path), etag, &body).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.contains("your token or account is restricted to the jobs billing.*"),
            "{detail}"
        );
    }
    assert!(left.is_empty(), "nobody has looked at {left:?}");
    let after = (
        count(&f, "operator_actions").await,
        count(&f, "executions").await,
        count(&f, "jobs").await,
    );
    assert_eq!(before, after, "nothing was changed");
    assert_eq!(f.console.state(id).await, "failed/2");
    // Beside the routes of jobs: what belongs to no job, or to many.
    let each = json!({"jobs": ["shop.charge", "billing.invoices"], "key": "evening"});
    let done = f.ask(&token, "POST", "/jobs:trigger", &each.to_string()).await.expect(200);
    let made: Vec<_> = done["items"].as_array().unwrap().iter().map(|it| &it["created"]).collect();
    assert_eq!(made, [&json!(false), &json!(true)], "{done}");
    let groups = f.get(&token, "/failure-groups").await.expect(200);
    let path =
        format!("/failure-groups/{}/remark", groups["items"][0]["fingerprint"].as_str().unwrap());
    f.ask(&token, "POST", &path, r#"{"state": "muted", "reason": "x"}"#).await.expect(403);
}

#[tokio::test]
async fn who_is_restricted_to_jobs_changes_those() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "editor", "shop.*").await;
    let id = f.console.failed().await;
    let other = f.console.failed().await;
    let post = async |path: &str, body: Value| f.ask(&token, "POST", path, &body.to_string()).await;
    post("/jobs/shop.mail/trigger", json!({})).await.expect(200);
    post("/jobs/shop.mail/pause", json!({"reason": "x"})).await.expect(200);
    post("/enqueue", json!({"job": "shop.charge"})).await.expect(200);
    post("/jobs", json!({"name": "shop.new", "task": "work"})).await.expect(201);
    post(&format!("/failures/{id}/requeue"), json!({})).await.expect(200);
    // All: those of its jobs.
    let preview = post("/bulks:preview", json!({"kind": "discard", "all": true})).await.expect(200);
    assert_eq!(preview["count"], 1, "{preview}");
    let bulk = json!({"kind": "discard", "all": true, "reason": "test orders"});
    let created = post("/bulks", bulk).await.expect(201);
    assert_eq!(created["selector"]["filter"]["job_prefix"], "shop.", "{created}");
    let stop = format!("/bulks/{}/stop", created["id"]);
    post(&stop, json!({})).await.expect(204);
    let ids = json!({"kind": "requeue", "executions": [{"id": other.to_string()}]});
    post("/bulks", ids).await.expect(201);
    let deleted =
        f.ask_with(&token, ("DELETE", "/jobs/shop.new?reason=x"), &["If-Match: \"1\""], "").await;
    assert!(deleted.status < 300, "{}", deleted.body);
}

#[tokio::test]
async fn nobody_takes_a_job_of_others_by_giving_it_a_label() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "editor", "team=billing").await;
    let put = async |name: &str, body: Value| {
        let etag = f.get(&token, &format!("/jobs/{name}")).await.header("etag").unwrap().to_owned();
        let seen = format!("If-Match: {etag}");
        f.ask_with(&token, ("PUT", &format!("/jobs/{name}")), &[&seen], &body.to_string()).await
    };
    let mine = json!({"task": "work", "labels": {"team": "billing"}});
    put("shop.charge", mine.clone()).await.expect(403);
    f.ask(&token, "POST", "/jobs", r#"{"name": "a.new", "task": "work"}"#).await.expect(403);
    let new = json!({"name": "a.new", "task": "work", "labels": {"team": "billing"}});
    f.ask(&token, "POST", "/jobs", &new.to_string()).await.expect(201);
    // Nor is one given away.
    put("a.new", json!({"task": "work", "labels": {"team": "shop"}})).await.expect(403);
    let labels = f.get(&token, "/jobs/shop.charge").await.expect(200)["labels"].clone();
    assert!(labels.get("team").is_none(), "{labels}");
}

#[tokio::test]
async fn an_account_is_restricted_in_its_sessions_until_its_role_is_set_anew() {
    let f = Fixture::new().await;
    let cookie = f.session("ann", "operator").await;
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(200);
    let restrict = ["accounts", "set-role", "ann", "operator", "--only-jobs", "billing.*"];
    let done = f.console.run(&restrict).await.expect(0);
    assert!(done.text().contains("the role operator for the jobs billing.*"), "{}", done.text());
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(401);
    let accounts = f.console.json(&["accounts", "list"]).await;
    assert_eq!(accounts["items"][0]["only_jobs"], "billing.*");
    let password = "correct horse battery";
    let admin = f.token("root", "admin").await;
    let body = json!({"password": password}).to_string();
    f.ask(&admin, "POST", "/accounts/ann/password", &body).await.expect(200);
    let cookie = f.log_in("ann", password).await.cookie();
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(403);
    f.visit(&cookie, "POST", "/jobs/billing.invoices/trigger", "{}").await.expect(200);
    let replaced = json!({"current": password, "password": "a battery of horses"}).to_string();
    f.visit(&cookie, "POST", "/me/password", &replaced).await.expect(204);
    f.console.run(&["accounts", "set-role", "ann", "operator", "--all-jobs"]).await.expect(0);
    let cookie = f.log_in("ann", "a battery of horses").await.cookie();
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(200);
}

#[tokio::test]
async fn another_role_leaves_an_account_restricted_until_somebody_says_otherwise() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let create = ["accounts", "create", "ann", "--role", "operator", "--only-jobs", "billing.*"];
    f.console.run(&[&create[..], &["--generate"]].concat()).await.expect(0);
    let set = async |body: Value, status: u16| {
        f.ask(&admin, "POST", "/accounts/ann/role", &body.to_string()).await.expect(status)
    };
    let only_jobs =
        async || f.console.json(&["accounts", "list"]).await["items"][0]["only_jobs"].clone();
    f.console.run(&["accounts", "set-role", "ann", "editor"]).await.expect(0);
    assert_eq!(only_jobs().await, "billing.*");
    set(json!({"role": "operator"}), 200).await;
    assert_eq!(only_jobs().await, "billing.*");
    let refused = set(json!({"role": "admin"}), 400).await;
    assert_eq!(refused["errors"][0]["pointer"], "/only_jobs", "{refused}");
    set(json!({"role": "operator", "only_jobs": "shop.*"}), 200).await;
    let disable = ["accounts", "disable", "ann", "--reason", "x"];
    f.console.run(&disable).await.expect(0);
    f.console.run(&["accounts", "enable", "ann"]).await.expect(0);
    assert_eq!(only_jobs().await, "shop.*");
    set(json!({"role": "admin", "only_jobs": null}), 200).await;
    assert_eq!(only_jobs().await, Value::Null);
    let audit = f.console.json(&["audit", "list"]).await;
    let jobs =
        |entry: &Value| (entry["before"]["only_jobs"].clone(), entry["after"]["only_jobs"].clone());
    let roles = audit["items"].as_array().unwrap().iter();
    let roles: Vec<_> = roles.filter(|it| it["action"] == "set_account_role").map(jobs).collect();
    let (billing, shop) = (json!("billing.*"), json!("shop.*"));
    let expected =
        [(&shop, &Value::Null), (&billing, &shop), (&billing, &billing), (&billing, &billing)];
    assert_eq!(roles, expected.map(|(before, after)| (before.clone(), after.clone())), "{audit}");
}

#[tokio::test]
async fn an_admin_cannot_be_restricted_and_a_wrong_scope_is_refused() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    for (role, only, part) in
        [("admin", "billing.*", "cannot be restricted"), ("editor", "billing", "write billing.*")]
    {
        let command = ["tokens", "create", "t", "--role", role, "--only-jobs", only];
        let refused = f.console.run(&command).await.expect(2);
        assert!(refused.text().contains(part), "{}", refused.text());
        let body = json!({"name": "t", "role": role, "only_jobs": only}).to_string();
        let refused = f.ask(&admin, "POST", "/tokens", &body).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], "/only_jobs", "{refused}");
    }
}

#[tokio::test]
async fn who_is_restricted_approves_nothing_of_other_jobs() {
    let f = Fixture::new().await;
    f.console.run(&["approvals", "rules", "set", "all"]).await.expect(0);
    let id = f.console.failed().await.to_string();
    f.console.run(&["failed", "discard", &id, "--yes", "--reason", "x"]).await.expect(11);
    // Another person than the one of the command.
    let bob = [("USER", "bob")];
    let create =
        ["tokens", "create", "team", "--role", "editor", "--only-jobs", "billing.*", "--json"];
    let created = f.console.run_with(&create, &bob, "").await.expect(0);
    let created: Value = serde_json::from_str(&created.text()).unwrap();
    let token = created["token"].as_str().unwrap();
    for (action, body) in [("approve", "{}"), ("reject", r#"{"reason": "no"}"#)] {
        f.ask(token, "POST", &format!("/approvals/1/{action}"), body).await.expect(403);
    }
    let discard = format!("/failures/{id}/discard");
    f.ask(token, "POST", &discard, r#"{"reason": "x"}"#).await.expect(403);
    assert_eq!(f.get(token, "/approvals").await.expect(200)["items"].as_array().unwrap().len(), 1);
}
