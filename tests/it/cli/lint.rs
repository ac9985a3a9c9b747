//! `sexton cron lint`: each finding is created once, from each source that can have it.

use serde_json::{Value, json};

use super::{Console, keys, run};

const FROM: [&str; 2] = ["--from", "2027-01-01T00:00:00Z"];

fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

async fn expression(args: &[&str]) -> super::Ended {
    run(&[&["--json", "cron", "lint"], args, &FROM[..]].concat(), &[], "").await
}

#[tokio::test]
async fn lint_reports_findings_about_an_expression_with_codes_and_without_a_server() {
    for (text, code) in [
        ("61 * * * *", "unreadable"),
        ("0 0 30 2 *", "never_fires"),
        ("0 0 13 * FRI", "day_fields"),
        ("0 0 */2 * MON", "day_fields"),
        ("* 12 * * *", "every_minute"),
        ("*/25 * * * *", "uneven_step"),
        ("*/90 * * * *", "step_too_large"),
        ("*/4294967296 * * * *", "step_too_large"),
        ("0 12 31 * *", "missing_day"),
        ("30 2 * * *", "clock_change"),
    ] {
        let ended = expression(&[text, "--tz", "Europe/Vienna"]).await.expect(8);
        assert_eq!(codes(&ended.json()), [code], "{text}");
    }
    let sound = expression(&["0 12 * * *", "--tz", "Europe/Vienna"]).await.expect(0).json();
    assert_eq!(keys(&sound), ["count", "findings", "from", "looked_at"]);
    assert_eq!((&sound["count"], &sound["looked_at"]), (&json!(0), &json!(1)));
    // Notes appear only with `--severity note`.
    let note = ["0 1 * * *", "--tz", "Africa/Cairo", "--dst", "vixie"];
    expression(&note).await.expect(0);
    let note = ["30 23 * * *", "--tz", "Africa/Cairo"];
    expression(&note).await.expect(0);
    let notes = expression(&[&note[..], &["--severity", "note"]].concat()).await.expect(8).json();
    assert_eq!(
        (codes(&notes), &notes["findings"][0]["severity"]),
        (vec!["clock_change"], &json!("note"))
    );
    let shown = run(&["cron", "lint", "0 0 13 * FRI"], &[], "").await.expect(8);
    for part in ["warning day_fields: ", "\n    write ", "fires that either selects"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(shown.stderr.contains("1 finding"), "{}", shown.stderr);
    run(&["cron", "lint"], &[], "").await.expect(2);
    run(&["cron", "lint", "@daily", "--database"], &[], "").await.expect(2);
}

#[tokio::test]
async fn the_findings_of_files_have_their_line_and_job() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut jobs =
        "[[job]]\ntask = \"t\"\nname = \"a.b\"\nschedule = \"0 0 13 * FRI\"\n".to_owned();
    let many =
        |n| format!("[[job]]\nname = \"many.job{n}\"\ntask = \"t\"\nschedule = \"0 3 * * *\"\n");
    jobs.extend((0..10).map(many));
    let jobs = file("jobs.toml", &jobs);
    let answer = expression(&["-f", &jobs]).await.expect(8).json();
    assert_eq!(codes(&answer), ["day_fields", "same_minute"]);
    let first = &answer["findings"][0];
    assert_eq!(keys(first), ["code", "file", "instead", "job", "line", "message", "severity"]);
    assert_eq!(
        (&first["file"], &first["line"], &first["job"]),
        (&json!(jobs), &json!(3), &json!("a.b"))
    );
    let instead = answer["findings"][1]["instead"].as_str().unwrap();
    assert!(instead.contains("H 3 * * *"), "{instead}");
    assert_eq!(
        codes(&expression(&["-f", &jobs, "--same-minute", "11"]).await.expect(8).json()),
        ["day_fields"]
    );

    // What the checker refuses is a finding with its place.
    let wrong =
        file("wrong.toml", "[[job]]\nname = \"a.b\"\ntask = \"t\"\nschedule = \"0 8 * *\"\n");
    let answer = expression(&["-f", &wrong]).await.expect(8).json();
    assert_eq!((codes(&answer), &answer["findings"][0]["line"]), (vec!["unreadable"], &json!(4)));

    // Each of 1,500 jobs lacks its name and its task. A file lists 1,000 problems and counts the others.
    let many = file("many.toml", &"[[job]]\n".repeat(1_500));
    let answer = expression(&["-f", &many]).await.expect(8).json();
    assert_eq!((codes(&answer).len(), &answer["count"]), (1_000, &json!(3_000)));
    assert!(answer["findings"].as_array().unwrap().iter().all(|one| one["line"].is_u64()));

    let crontab = file(
        "crontab",
        "CRON_TZ=Europe/Vienna\n30 2 * * * root /x\n@reboot root /y\n*/7 * * * * root /z\n",
    );
    let answer = expression(&["-f", &crontab, &jobs, "--system"]).await.expect(8).json();
    assert_eq!(
        codes(&answer),
        ["clock_change", "unreadable", "uneven_step", "day_fields", "same_minute"]
    );
    assert_eq!(answer["findings"][0]["line"], 2);
    assert_eq!(answer["looked_at"], 13);
    run(&["cron", "lint", "-f", "/does/not/exist"], &[], "").await.expect(1);
}

#[tokio::test]
async fn the_findings_of_a_database_know_how_long_its_attempts_take() {
    let console = Console::new().await;
    let file = console.file(
        "jobs.toml",
        "[[job]]\nname = \"a.slow\"\ntask = \"t\"\nschedule = \"*/5 * * * *\"\n
         [[job]]\nname = \"b.quick\"\ntask = \"t\"\nschedule = \"*/5 * * * *\"\n
         [[job]]\nname = \"c.days\"\ntask = \"t\"\nschedule = \"0 0 13 * FRI\"\n",
    );
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    // Ten attempts of each, of 0 to 9 minutes and of as many seconds; a lost one says nothing.
    sqlx::query(
        "WITH e AS (
             INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                 params, idempotency_key, claimed_by, claimed_at, relay_after, finished_at)
             SELECT gen_random_uuid(), j.id, n::text, now(), 'succeeded', 't', 'default', '{}', n::text,
                 't:1', now(), now(), now()
             FROM sexton.jobs j, generate_series(0, 9) n WHERE j.name <> 'c.days' RETURNING id, job_id, execution_key)
         INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
         SELECT e.id, number, gen_random_uuid(), now(),
             now() + e.execution_key::int * CASE WHEN number = 2 THEN '9 h'::interval
                 WHEN j.name = 'a.slow' THEN '1 min'::interval ELSE '1 s'::interval END,
             CASE number WHEN 1 THEN 'succeeded' ELSE 'lost' END
         FROM e JOIN sexton.jobs j ON j.id = e.job_id, generate_series(1, 2) number",
    )
    .execute(console.db.pool())
    .await
    .unwrap();
    let ended = console.run(&["--json", "cron", "lint", "--database"]).await.expect(8);
    let answer = ended.json();
    assert_eq!(codes(&answer), ["too_often", "day_fields"]);
    let slow = &answer["findings"][0];
    assert_eq!((&slow["job"], &slow["file"]), (&json!("a.slow"), &Value::Null));
    let message = slow["message"].as_str().unwrap();
    assert!(message.contains("every 5m") && message.contains("up to 9m"), "{message}");
    assert_eq!(answer["looked_at"], 3);
}
