//! Single jobs that are created and replaced, and schedulers of the older system.

use serde_json::{Value, json};

use super::Fixture;

fn job() -> Value {
    json!({"name": "a.new", "schedule": "0 2 * * *", "task": "work", "params": {"order": 7}, "labels": {"team": "billing"}})
}

#[tokio::test]
async fn a_job_is_created_once_and_replaced_by_who_has_seen_it() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let dry = f.ask(&token, "POST", "/jobs?dry_run=true", &job().to_string()).await.expect(201);
    assert_eq!((&dry["created"], &dry["dry_run"]), (&json!(["a.new"]), &json!(true)));
    f.get(&token, "/jobs/a.new").await.expect(404);
    let created = f.ask(&token, "POST", "/jobs", &job().to_string()).await;
    assert_eq!(created.header("etag"), Some("\"1\""));
    assert_eq!(created.header("location"), Some("/api/v1/jobs/a.new"));
    created.expect(201);
    let again = f.ask(&token, "POST", "/jobs", &job().to_string()).await.expect(409);
    assert!(again["detail"].as_str().unwrap().contains("already"), "{again}");
    let shown = f.get(&token, "/jobs/a.new").await;
    let seen = format!("If-Match: {}", shown.header("etag").unwrap());
    assert_eq!(shown.expect(200)["params"], json!({"order": 7}));
    let mut changed = job();
    changed["schedule"] = json!("0 3 * * *");
    let put = async |headers: &[&str], body: &Value| {
        f.ask_with(&token, ("PUT", "/jobs/a.new"), headers, &body.to_string()).await
    };
    let missing = put(&[], &changed).await.expect(428);
    assert_eq!(missing["errors"][0]["parameter"], "If-Match");
    let done = put(&[&seen], &changed).await;
    assert_eq!(done.header("etag"), Some("\"2\""));
    let field = &done.expect(200)["changed"][0]["changes"]["schedule_expression"];
    assert_eq!(field, &json!({"from": "0 2 * * *", "to": "0 3 * * *"}));
    // Somebody else has seen the first one.
    changed["schedule"] = json!("0 4 * * *");
    assert_eq!(put(&[&seen], &changed).await.expect(412)["code"], "conflict");
    changed["name"] = json!("a.other");
    assert_eq!(put(&[&seen], &changed).await.expect(400)["errors"][0]["pointer"], "/name");
    let other =
        f.ask_with(&token, ("PUT", "/jobs/no.such"), &[&seen], "{\"task\": \"work\"}").await;
    other.expect(404);
    let audit = f.console.json(&["audit", "list", "--job", "a.new"]).await;
    assert_eq!(audit["items"].as_array().unwrap().len(), 2, "{audit}");
}

/// As after `GET`, a change, and `PUT`.
#[tokio::test]
async fn a_mask_does_not_overwrite_a_secret_and_a_changed_secret_is_not_shown() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let mut job = job();
    job["params"] = json!({"order": 7, "api_token": "hunter2", "login": {"password": "x"}});
    f.ask(&token, "POST", "/jobs", &job.to_string()).await.expect(201);
    let shown = f.get(&token, "/jobs/a.new").await;
    let seen = format!("If-Match: {}", shown.header("etag").unwrap());
    let put = async |params: &Value| {
        let mut changed = job.clone();
        changed["params"] = params.clone();
        f.ask_with(&token, ("PUT", "/jobs/a.new"), &[&seen], &changed.to_string()).await
    };
    let refused = put(&shown.expect(200)["params"]).await.expect(400);
    let pointers: Vec<_> =
        refused["errors"].as_array().unwrap().iter().map(|it| &it["pointer"]).collect();
    assert_eq!(pointers, ["/params/api_token", "/params/login/password"]);
    let done = put(&json!({"order": 8, "api_token": "hunter3"})).await.expect(200);
    let field = &done["changed"][0]["changes"]["params"];
    assert_eq!(field["to"], json!({"order": 8, "api_token": "***"}));
    assert!(!done.to_string().contains("hunter"), "{done}");
}

#[tokio::test]
async fn of_two_who_create_a_job_at_the_same_time_one_is_refused() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let (one, two) = (job(), json!({"name": "a.new", "task": "work"}));
    let (first, second) = (one.to_string(), two.to_string());
    let (a, b) = tokio::join!(
        f.ask(&token, "POST", "/jobs", &first),
        f.ask(&token, "POST", "/jobs", &second)
    );
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409], "{} {}", a.body, b.body);
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_job_is_named_by_its_field() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let wrong = json!({"name": "a b", "schedule": "99 * * * *", "params": {"order": {"id": null}}, "retry": {"max_retries": -1}, "colour": "red"});
    let refused = f.ask(&token, "POST", "/jobs", &wrong.to_string()).await.expect(400);
    let mut pointers: Vec<_> = refused["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    let expected =
        ["/colour", "/name", "/params/order/id", "/retry/max_retries", "/schedule", "/task"];
    assert_eq!(pointers, expected, "{refused}");
    let past = json!({"name": "a.past", "task": "work", "at": "2020-01-01T00:00:00Z"});
    let refused = f.ask(&token, "POST", "/jobs", &past.to_string()).await.expect(400);
    assert_eq!(refused["errors"][0]["pointer"], "/at", "{refused}");
    f.ask(&token, "POST", "/jobs", "[]").await.expect(400);
}

#[tokio::test]
async fn a_scheduler_of_the_older_system_becomes_a_job() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let post = async |body: &Value| f.ask(&token, "POST", "/schedulers", &body.to_string()).await;
    let cron = json!({
        "type": "cron", "cron": "0 8 * * *", "params_scheduler": "{\"type\": \"report\", \"year\": 2025}", "active": false,
        "stay_alive": false, "user": 17, "group": "finance", "language": "de",
    });
    let created = post(&cron).await.expect(201);
    let name = created["name"].as_str().unwrap();
    assert!(name.starts_with("schedulers.report-"), "{name}");
    assert_eq!(created["active"], false);
    let job = f.get(&token, &format!("/jobs/{name}")).await.expect(200);
    for (field, value) in [
        ("schedule_expression", json!("0 8 * * *")),
        ("task_type", json!("report")),
        ("params", json!({"type": "report", "year": 2025})),
        ("status", json!("paused")),
        ("max_runs", json!(1)),
        ("labels", json!({"user": "17", "group": "finance", "language": "de"})),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    // The same one twice is one job.
    post(&cron).await.expect(409);
    let date = json!({
        "type": "date", "date_time": "2999-01-01T00:00:00Z", "params_scheduler": {"type": "report", "name": "reports.once"},
    });
    let created = post(&date).await.expect(201);
    assert_eq!((&created["name"], &created["active"]), (&json!("reports.once"), &json!(true)));
    let wrong = json!({
        "type": "cron", "date_time": "x", "params_scheduler": {"name": "a b"}, "user": [], "group": {},
    });
    let refused = post(&wrong).await.expect(400);
    let mut pointers: Vec<_> = refused["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pointer"].as_str().unwrap())
        .collect();
    pointers.sort_unstable();
    let expected = [
        "/cron",
        "/date_time",
        "/group",
        "/params_scheduler/name",
        "/params_scheduler/type",
        "/user",
    ];
    assert_eq!(pointers, expected, "{refused}");
    let mut never = cron.clone();
    never["cron"] = json!("0 0 30 2 *");
    assert_eq!(post(&never).await.expect(400)["errors"][0]["pointer"], "/cron");
    never["params_scheduler"] = json!("{");
    assert_eq!(post(&never).await.expect(400)["errors"][0]["pointer"], "/params_scheduler");
}
