//! `sexton jobs policy` and `sexton jobs lint --policy`: the same gaps, from files and from the database.

use serde_json::{Value, json};
use sexton_tests::platform::Platform;

use super::{Console, keys, run};

/// A job of each kind: complete, without both, and one that is not important.
const JOBS: &str = r#"[[job]]
name = "a.complete"
task = "t"
severity = "high"
expect_within = "1h"
labels = { team = "billing" }

[[job]]
name = "b.bare"
task = "t"
severity = "high"

[[job]]
name = "c.medium"
task = "t"
"#;

/// Only incidents of one team go anywhere.
const ALERTS: &str = r#"[[channel]]
name = "ops"
webhook = { url = "https://hooks.example/ops" }

[[route]]
labels = { team = "billing" }
channels = ["ops"]
"#;

/// Job, code and line of each finding.
fn findings(answer: &Value) -> Vec<(Option<&str>, &str, Option<u64>)> {
    let findings = answer["findings"].as_array().unwrap();
    let of = |one| {
        let one: &Value = one;
        (one["job"].as_str(), one["code"].as_str().unwrap(), one["line"].as_u64())
    };
    findings.iter().map(of).collect()
}

#[tokio::test]
async fn lint_finds_the_gaps_of_files_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (jobs, alerts) = (file("jobs.toml", JOBS), file("alerts.toml", ALERTS));
    let lint = |more: &[&str]| {
        let args: Vec<String> = ["--json", "jobs", "lint", "-f", &jobs]
            .iter()
            .chain(more)
            .map(ToString::to_string)
            .collect();
        async move {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            run(&args, &[], "").await
        }
    };
    lint(&[]).await.expect(0);
    let found = lint(&["--policy", "--alerts", &alerts]).await.expect(8).json();
    assert_eq!(
        findings(&found),
        [(Some("b.bare"), "no_deadline", Some(9)), (Some("b.bare"), "no_destination", Some(9)),]
    );
    let text = run(&["jobs", "lint", "-f", &jobs, "--policy", "--alerts", &alerts], &[], "").await;
    let text = text.expect(8).text();
    for part in [
        "jobs.toml:9: job \"b.bare\": warning no_deadline: no deadline: nobody is notified",
        "    write expect_within = \"1h\"",
        "the severity high, so nobody is notified of its incidents",
        "2 findings",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    // Problems of the alerts file, and what can be judged without it, are found at once.
    let wrong = file("wrong.toml", &ALERTS.replace("[\"ops\"]", "[\"pos\"]"));
    let found = lint(&["--policy", "--alerts", &wrong]).await.expect(8).json();
    assert_eq!(
        findings(&found),
        [(Some("b.bare"), "no_deadline", Some(9)), (None, "unreadable", Some(7))]
    );

    // Without `--alerts` the routes are those of the database, so there must be one.
    lint(&["--policy"]).await.expect(2);
    lint(&["--alerts", &alerts]).await.expect(2);
    lint(&["--policy", "--alerts", "/does/not/exist"]).await.expect(1);
    run(&["jobs", "lint"], &[], "").await.expect(2);
}

#[tokio::test]
async fn lint_and_the_sheet_read_jobs_and_routes_of_the_database() {
    let console = Console::new().await;
    let jobs = console.file("jobs.toml", JOBS);
    console.run(&["jobs", "apply", "-f", &jobs]).await.expect(0);
    let lint = ["--json", "jobs", "lint", "--database", "--policy"];
    let found = console.run(&lint).await.expect(8).json();
    let expected = [
        (Some("a.complete"), "no_destination", None),
        (Some("b.bare"), "no_deadline", None),
        (Some("b.bare"), "no_destination", None),
    ];
    assert_eq!(findings(&found), expected);
    let alerts = console.file("alerts.toml", ALERTS);
    let with_file = [&lint[..], &["--alerts", &alerts]].concat();
    let found = console.run(&with_file).await.expect(8).json();
    assert_eq!(findings(&found), &expected[1..]);
    console.run(&["alerts", "apply", "-f", &alerts]).await.expect(0);
    let found = console.run(&lint).await.expect(8).json();
    assert_eq!(findings(&found), &expected[1..]);
    // A file's jobs, judged by the routes of the database.
    let file = ["--json", "jobs", "lint", "-f", &jobs, "--policy"];
    assert_eq!(findings(&console.run(&file).await.expect(8).json()).len(), 2);

    let sheet = console.json(&["jobs", "policy", "a.complete"]).await;
    assert_eq!(keys(&sheet), ["job", "sections", "severity"]);
    assert_eq!((&sheet["job"], &sheet["severity"]), (&json!("a.complete"), &json!("high")));
    let detection = &sheet["sections"][2];
    assert_eq!(keys(detection), ["missing", "statements", "title"]);
    assert_eq!(
        (&detection["title"], &detection["missing"]),
        (&json!("Missed-run detection"), &json!([]))
    );
    let statements = detection["statements"].to_string();
    assert!(statements.contains("It is sent to ops."), "{statements}");
    let missing =
        console.json(&["jobs", "policy", "b.bare"]).await["sections"][2]["missing"].take();
    assert_eq!(missing.as_array().unwrap().len(), 2, "{missing}");
    console.run(&["jobs", "policy", "no.such"]).await.expect(3);
}

#[tokio::test]
async fn the_sheet_knows_who_runs_the_task_and_whether_the_job_is_paused() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.t]\ncommand = [\"true\"]\n");
    platform.apply(JOBS).await.unwrap();
    let sheet = async || platform.sexton(&["jobs", "policy", "a.complete"]).await.stdout;
    let before = sheet().await;
    assert!(
        before.contains("  MISSING  No live worker of pool default offers the task t"),
        "{before}"
    );
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    let running = sheet().await;
    assert!(running.contains("  The task t runs on w1.\n"), "{running}");
    for title in [
        "Guarantee\n",
        "\n\nLock and lease\n",
        "\n\nMissed-run detection\n",
        "\n\nIdempotency key\n",
        "\n\nFailure and dead letter\n",
    ] {
        assert!(running.contains(title), "{title}: {running}");
    }
    let pause = ["jobs", "pause", "a.complete", "--reason", "the bank is down"];
    assert!(platform.sexton(&pause).await.status.success());
    let paused = sheet().await;
    assert!(
        paused.contains("It is paused, so no firing runs. Run `sexton jobs resume a.complete`."),
        "{paused}"
    );
}
