//! What is examined and changes nothing: cron expressions, jobs of a file or the database, names of locks. The answers are the documents
//! of the command line.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sexton_model::lock_key::KeyFormula;

use super::{Answer, Fixture};

const FROM: &str = "2027-01-01T00:00:00Z";
const ALERTS: &str = r#"[[channel]]
name = "ops"
webhook = { url = "https://hooks.example/ops" }

[[route]]
labels = { team = "billing" }
channels = ["ops"]
"#;
/// The expression of the first has two meanings, two are due in one minute, and nobody misses the important one.
const DOUBTFUL: &str = r#"[[job]]
name = "a.days"
task = "t"
schedule = "0 0 13 * FRI"

[[job]]
name = "b.bare"
task = "t"
severity = "high"

[[job]]
name = "c.one"
task = "t"
schedule = "0 3 * * *"

[[job]]
name = "c.two"
task = "t"
schedule = "0 3 * * *"
"#;
/// Four problems, each on a line of its own.
const WRONG: &str = r#"[[job]]
name = "a b"
tusk = "t"
schedule = "99 * * * *"
"#;

/// The pointers of a refusal.
#[track_caller]
fn pointers(answer: Answer) -> BTreeSet<String> {
    let refused = answer.expect(400);
    let errors = refused["errors"].as_array().unwrap().iter();
    errors.map(|one| one["pointer"].as_str().unwrap().to_owned()).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

async fn post(f: &Fixture, token: &str, path: &str, body: &Value) -> Answer {
    f.ask(token, "POST", path, &body.to_string()).await
}

#[tokio::test]
async fn the_firings_of_an_expression_are_those_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let vienna = json!({"expression": "30 2 * * *", "zone": "Europe/Vienna", "dst": "skip", "count": 1000, "anomalies": true});
    let pairs: [(Value, &[&str]); 4] = [
        (json!({"expression": "0 8 * * MON-FRI"}), &["0 8 * * MON-FRI"]),
        (
            vienna,
            &[
                "30 2 * * *",
                "--tz",
                "Europe/Vienna",
                "--dst",
                "skip",
                "--count",
                "1000",
                "--anomalies",
            ],
        ),
        (
            json!({"expression": "0 0 13 * FRI", "days": "both", "count": 2}),
            &["0 0 13 * FRI", "--days", "both", "--count", "2"],
        ),
        (json!({"expression": "H H * * *", "job": "a.b"}), &["H H * * *", "--job", "a.b"]),
    ];
    for (mut body, options) in pairs {
        body["from"] = json!(FROM);
        let answer = post(&f, &token, "/cron:next", &body).await.expect(200);
        let command = [&["cron", "next", "--from", FROM], options].concat();
        assert_eq!(answer, f.console.json(&command).await, "{body}");
        assert!(!answer["next"].as_array().unwrap().is_empty(), "{answer}");
        let kind = &answer["anomalies"][0]["kind"];
        assert_eq!(*kind == json!("skipped"), body["dst"] == "skip", "{answer}");
    }
    let never = json!({"expression": "0 0 30 2 *", "from": FROM});
    let never = post(&f, &token, "/cron:next", &never).await.expect(200);
    assert_eq!((&never["next"], never.get("anomalies")), (&json!([]), None));
}

#[tokio::test]
async fn everything_that_is_wrong_with_an_expression_is_refused_at_once() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let wrong = json!({"expression": "61 * * * *", "zone": "Mars/Base", "count": 1001, "job": "a".repeat(201)});
    let refused = post(&f, &token, "/cron:next", &wrong).await;
    assert_eq!(pointers(refused), set(&["/expression", "/zone", "/count", "/job"]));
    let refused =
        post(&f, &token, "/cron:next", &json!({"expression": "61 * * * *"})).await.expect(400);
    let detail = refused["errors"][0]["detail"].as_str().unwrap();
    let printed = f.console.run(&["cron", "next", "61 * * * *"]).await.expect(1).text();
    assert!(printed.contains(detail), "{printed}: {detail}");
    let wrong = json!({"expression": "@daily", "zone": "Mars/Base", "job": "a".repeat(201)});
    assert_eq!(pointers(post(&f, &token, "/cron:lint", &wrong).await), set(&["/zone", "/job"]));
    for (path, body, pointer) in [
        ("/cron:next", json!({"expression": "@daily", "count": 0}), "/count"),
        ("/cron:next", json!({"expression": "@daily", "count": "5"}), "/count"),
        ("/cron:next", json!({"expression": "@daily", "anomalies": "true"}), "/anomalies"),
        ("/cron:next", json!({"expression": "@daily", "dst": "often"}), "/dst"),
        ("/cron:next", json!({"expression": "@daily", "from": "soon"}), "/from"),
        ("/cron:next", json!({"expression": "@daily", "tz": "UTC"}), "/tz"),
        ("/cron:next", json!({"expression": "*,".repeat(600)}), "/expression"),
        ("/cron:lint", json!({"expression": 7}), "/expression"),
        ("/cron:lint", json!({"expression": "@daily", "severity": "fatal"}), "/severity"),
    ] {
        assert_eq!(pointers(post(&f, &token, path, &body).await), set(&[pointer]), "{body}");
    }
    post(&f, &token, "/cron:next", &json!({})).await.expect(400);
    let long = json!({"expression": "*".repeat(5_000_000)});
    post(&f, &token, "/cron:next", &long).await.expect(413);
}

#[tokio::test]
async fn the_findings_about_an_expression_are_those_of_the_command_line_and_it_is_put_in_words() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let words = json!("at 07:30 from Monday to Friday");
    let cases: [(Value, &[&str], Option<&str>, Value); 4] = [
        (json!({"expression": "30 7 * * MON-FRI"}), &["30 7 * * MON-FRI"], None, words),
        (json!({"expression": "61 * * * *"}), &["61 * * * *"], Some("unreadable"), Value::Null),
        (
            json!({"expression": "30 2 * * *", "zone": "Europe/Vienna"}),
            &["30 2 * * *", "--tz", "Europe/Vienna"],
            Some("clock_change"),
            json!("every day at 02:30"),
        ),
        (
            json!({"expression": "30 23 * * *", "zone": "Africa/Cairo", "severity": "note", "job": "a.b"}),
            &["30 23 * * *", "--tz", "Africa/Cairo", "--severity", "note", "--job", "a.b"],
            Some("clock_change"),
            json!("every day at 23:30"),
        ),
    ];
    for (mut body, options, code, words) in cases {
        body["from"] = json!(FROM);
        let mut answer = post(&f, &token, "/cron:lint", &body).await.expect(200);
        assert_eq!(answer.as_object_mut().unwrap().remove("words"), Some(words), "{body}");
        let command = [&["--json", "cron", "lint", "--from", FROM], options].concat();
        assert_eq!(answer, f.console.run(&command).await.json(), "{body}");
        assert_eq!(answer["findings"][0]["code"].as_str(), code, "{answer}");
    }
}

/// Lints by the API and by the command line. Returns what both answer.
async fn lint_both(f: &Fixture, token: &str, mut body: Value, options: &[&str]) -> Value {
    body["from"] = json!(FROM);
    let mut answer = post(f, token, "/jobs:lint", &body).await.expect(200);
    assert_eq!(answer.as_object_mut().unwrap().remove("complete"), Some(json!(true)));
    let command = [&["--json", "jobs", "lint", "--from", FROM], options].concat();
    assert_eq!(answer, f.console.run(&command).await.json(), "{options:?}");
    answer
}

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_findings_about_a_file_are_those_of_the_command_line_and_nothing_is_written() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let jobs = f.console.json(&["jobs", "list"]).await;
    let (file, alerts) =
        (f.console.file("doubtful.toml", DOUBTFUL), f.console.file("alerts.toml", ALERTS));
    let body = |more: Value| {
        let mut body = json!({"text": DOUBTFUL, "file": file});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let found = lint_both(&f, &token, body(json!({})), &["-f", &file]).await;
    assert_eq!((codes(&found), &found["looked_at"]), (vec!["day_fields"], &json!(4)));
    assert_eq!(
        (&found["findings"][0]["line"], &found["findings"][0]["job"]),
        (&json!(2), &json!("a.days"))
    );
    let options = ["-f", &file, "--same-minute", "2", "--policy"];
    let found = lint_both(&f, &token, body(json!({"same_minute": 2, "policy": true})), &options);
    let all = ["day_fields", "no_deadline", "no_destination", "same_minute"];
    assert_eq!(codes(&found.await), all, "no route is applied");
    // By the routes of a file; those that are applied do not count.
    let options = ["-f", &file, "--policy", "--alerts", &alerts];
    let by_file = body(json!({"policy": true, "alerts": ALERTS}));
    let found = lint_both(&f, &token, by_file, &options).await;
    assert_eq!(codes(&found), ["day_fields", "no_deadline", "no_destination"]);
    let wrong = body(json!({"policy": true, "alerts": "[[channel]]\nname = 7\n"}));
    let found = post(&f, &token, "/jobs:lint", &wrong).await.expect(200);
    let of_alerts = |one: &Value| one["file"] == "alerts.toml" && one["code"] == "unreadable";
    assert!(found["findings"].as_array().unwrap().iter().any(of_alerts), "{found}");
    // All problems of a file, each with its line.
    let file = f.console.file("wrong.toml", WRONG);
    let wrong = json!({"text": WRONG, "file": file});
    let found = lint_both(&f, &token, wrong, &["-f", &file]).await;
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.len() >= 3, "{found}");
    let lines: BTreeSet<u64> =
        findings.iter().map(|finding| finding["line"].as_u64().unwrap()).collect();
    assert!([2, 3, 4].iter().all(|line| lines.contains(line)), "{found}");
    assert_eq!(f.console.json(&["jobs", "list"]).await, jobs);
}

#[tokio::test]
async fn the_jobs_of_the_database_are_linted_as_on_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let file = f.console.file("doubtful.toml", DOUBTFUL);
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let alerts = f.console.file("alerts.toml", ALERTS);
    f.console.run(&["alerts", "apply", "-f", &alerts]).await.expect(0);
    let body = json!({"database": true, "policy": true});
    let found = lint_both(&f, &token, body, &["--database", "--policy"]).await;
    assert_eq!(codes(&found), ["day_fields", "no_deadline", "no_destination"]);
    assert_eq!(found["looked_at"], 7, "with those of the fixture");
}

#[tokio::test]
async fn a_request_to_lint_that_contradicts_itself_is_refused_with_each_place() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let wrong = json!({"text": "", "database": true, "file": "a".repeat(256), "alerts": "", "same_minute": 1});
    let refused = pointers(post(&f, &token, "/jobs:lint", &wrong).await);
    assert_eq!(refused, set(&["/database", "/file", "/alerts", "/same_minute"]));
    for (body, pointer) in [
        (json!({}), "/text"),
        (json!({"text": "", "same_minute": 20_001}), "/same_minute"),
        (json!({"text": "", "database": "yes"}), "/database"),
        (json!({"text": "", "dry_run": true}), "/dry_run"),
    ] {
        assert_eq!(pointers(post(&f, &token, "/jobs:lint", &body).await), set(&[pointer]));
    }
    let long = json!({"text": "#".repeat(5_000_000)});
    post(&f, &token, "/jobs:lint", &long).await.expect(413);
}

#[tokio::test]
async fn what_will_happen_to_jobs_is_what_the_command_line_previews() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let jobs = r#"[[job]]
name = "a.nightly"
task = "t"
schedule = "30 2 * * *"
timezone = "Europe/Vienna"
params = { day = "{{ scheduled_for | date(\"%Y-%m-%d\") }}" }

[[job]]
name = "a.order"
task = "t"
idempotency_key = "order:{{ params.customer }}:{{ params.api_token }}"
params = { api_token = "hunter2", header = "Bearer {{ params.api_token }}", copy = "{{ params.api_token }}" }
"#;
    let file = f.console.file("templates.toml", jobs);
    f.console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let body = json!({"names": ["a.nightly"], "from": FROM, "count": 2});
    let answer = post(&f, &token, "/jobs:preview", &body).await.expect(200);
    let command = ["jobs", "preview", "a.nightly", "--from", FROM, "--count", "2"];
    assert_eq!(answer, f.console.json(&command).await);
    assert_eq!(answer["anomalies"][0]["kind"], "moved", "{answer}");
    let templates = answer["templates"].as_array().unwrap();
    assert_eq!(templates.len(), 2, "{answer}");
    assert!(templates[0]["params"]["day"].as_str().unwrap().starts_with("20"), "{answer}");
    // All active ones, with a caller's params; what looks like a secret is masked.
    let body = json!({"count": 1, "params": {"customer": 7}});
    let answer = post(&f, &token, "/jobs:preview", &body).await.expect(200);
    let templates = answer["templates"].as_array().unwrap();
    let order = templates.iter().find(|one| one["job_name"] == "a.order").unwrap();
    assert_eq!(order["idempotency_key"], "order:7:***", "{answer}");
    let masked = json!({"api_token": "***", "header": "Bearer ***", "copy": "***", "customer": 7});
    assert_eq!(order["params"], masked);
    assert_eq!(order["problem"], Value::Null);
    let without = json!({"names": ["a.order"]});
    let answer = post(&f, &token, "/jobs:preview", &without).await.expect(200);
    let problem = answer["templates"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("params.customer is missing"), "{answer}");
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
}

#[tokio::test]
async fn a_preview_is_refused_with_each_place() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let deep = (0..70).fold(json!(1), |inside, _| json!({"a": inside}));
    let wrong = json!({"names": vec!["a"; 1_001], "count": 21, "params": deep});
    let refused = pointers(post(&f, &token, "/jobs:preview", &wrong).await);
    assert_eq!(refused, set(&["/names", "/count", "/params"]));
    let wrong = json!({"names": ["shop.mail", "a".repeat(201), "a\u{0}"]});
    let refused = pointers(post(&f, &token, "/jobs:preview", &wrong).await);
    assert_eq!(refused, set(&["/names/1", "/names/2"]));
    for (body, pointer) in [
        (json!({"names": "shop.mail"}), "/names"),
        (json!({"count": "3"}), "/count"),
        (json!({"params": []}), "/params"),
        (json!({"params": {"a": "x".repeat(300_000)}}), "/params"),
        (json!({"text": ""}), "/text"),
    ] {
        assert_eq!(pointers(post(&f, &token, "/jobs:preview", &body).await), set(&[pointer]));
    }
    let missing = json!({"names": ["mail"]});
    let missing = post(&f, &token, "/jobs:preview", &missing).await.expect(404);
    assert!(missing["detail"].as_str().unwrap().contains("similar: shop.mail"), "{missing}");
}

#[tokio::test]
async fn the_key_of_a_name_is_that_of_the_command_line_by_each_formula() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for formula in KeyFormula::ALL {
        let like = formula.as_str();
        let name = if formula == KeyFormula::Integer { "-5101" } else { "nightly" };
        let namespace = formula.takes_namespace().then_some("billing");
        let mut command = vec!["keys", "derive", name, "--like", like];
        command.extend(namespace.iter().flat_map(|&namespace| ["--namespace", namespace]));
        let body = json!({"name": name, "like": like, "namespace": namespace});
        let answer = post(&f, &token, "/lock-keys:derive", &body).await.expect(200);
        assert_eq!(answer, f.console.json(&command).await, "{like}");
        assert_eq!(answer["pg_locks"].is_null(), answer["kind"] == "row", "{answer}");
    }
}

#[tokio::test]
async fn a_name_without_a_key_is_refused_with_its_place() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for (body, places) in [
        (json!({"name": "five", "like": "integer"}), &["/name"][..]),
        (json!({"name": "9007199254740993", "like": "integer"}), &["/name"]),
        (json!({"name": "a", "like": "sexton"}), &["/namespace"]),
        (json!({"name": "a", "like": "sexton", "namespace": "b/c"}), &["/namespace"]),
        (json!({"name": "a", "like": "hashtext", "namespace": "b"}), &["/namespace"]),
        (json!({"name": "a", "like": "md5"}), &["/like"]),
        (json!({"name": 7, "like": "sexton"}), &["/name"]),
        (
            json!({"name": "a".repeat(10_001), "like": "sexton", "namespace": "b\u{0}"}),
            &["/name", "/namespace"],
        ),
    ] {
        assert_eq!(pointers(post(&f, &token, "/lock-keys:derive", &body).await), set(places));
    }
    let missing = json!({"name": "a", "like": "sexton"});
    let refused = post(&f, &token, "/lock-keys:derive", &missing).await.expect(400);
    assert_eq!(refused["errors"][0]["detail"], "sexton needs a namespace");
}
