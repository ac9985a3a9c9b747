//! `days` in files and commands: how a job combines its two day fields, and the warning where it does not say.

use serde_json::json;

use super::{Console, keys, run};

const AMBIGUOUS: &str = "\
[[job]]
name = \"a.thirteenth\"
schedule = \"0 6 13 * FRI\"
timezone = \"Europe/Vienna\"
task = \"t\"

[[job]]
name = \"b.odd\"
schedule = \"0 0 */2 * MON\"
task = \"t\"

[[job]]
name = \"c.stated\"
schedule = \"0 0 13 * FRI\"
days = \"both\"
task = \"t\"

[[job]]
name = \"d.plain\"
schedule = \"0 0 * * FRI\"
task = \"t\"
";

#[tokio::test]
async fn cron_next_combines_the_day_fields_as_days_says() {
    let next = async |expression: &str, options: &[&str]| {
        let from = ["--json", "cron", "next", expression, "--from", "2026-01-01T00:00:00Z"];
        let ended = run(&[&from[..], &["--count", "1"], options].concat(), &[], "").await;
        ended.expect(0).json()
    };
    let first = |answer: &serde_json::Value| answer["next"][0].as_str().unwrap().to_owned();
    let both = next("0 0 13 * FRI", &["--days", "both"]).await;
    assert_eq!((first(&both), &both["days"]), ("2026-02-13T00:00:00Z".into(), &json!("both")));
    let either = next("0 0 13 * FRI", &["--days", "either"]).await;
    assert_eq!(first(&either), "2026-01-02T00:00:00Z");
    let silent = next("0 0 13 * FRI", &[]).await;
    assert_eq!((first(&silent), &silent["days"]), ("2026-01-02T00:00:00Z".into(), &json!(null)));
    assert_eq!(first(&next("0 0 */2 * MON", &[]).await), "2026-01-05T00:00:00Z");
    let either = ["--days", "either"];
    assert_eq!(first(&next("0 0 */2 * MON", &either).await), "2026-01-03T00:00:00Z");
    // People read the meaning in force, unless they chose it.
    for (expression, more, shown_rule) in [
        ("0 0 13 * FRI", &[][..], Some("--days either")),
        ("0 0 */2 * MON", &[], Some("--days both")),
        ("0 0 13 * FRI", &either, None),
        ("0 0 13 * *", &[], None),
    ] {
        let args = [&["cron", "next", expression], more].concat();
        let shown = run(&args, &[], "").await.expect(0).stdout;
        assert_eq!(shown.contains("Both day fields"), shown_rule.is_some(), "{shown}");
        assert!(shown_rule.is_none_or(|rule| shown.contains(rule)), "{shown}");
    }
    let ended = run(&["cron", "next", "@daily", "--days", "or"], &[], "").await.expect(2);
    assert!(ended.stderr.contains("both, either"), "{}", ended.stderr);
    let linted = ["cron", "lint", "0 12 13 * FRI", "--days", "both"];
    run(&linted, &[], "").await.expect(0);
}

#[tokio::test]
async fn apply_warns_of_two_day_fields_without_days_and_refuses_them_if_strict() {
    let console = Console::new().await;
    let file = console.file("jobs.toml", AMBIGUOUS);
    let refused = console.run(&["jobs", "apply", "-f", &file, "--strict"]).await.expect(1);
    assert!(refused.stderr.contains("a.thirteenth"), "{}", refused.stderr);
    assert_eq!(console.items(&["jobs", "list"]).await, json!([]), "nothing was applied");
    let applied = console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    assert!(applied.stdout.contains("4 created"), "{}", applied.stdout);
    for part in [
        "jobs.toml:2: job \"a.thirteenth\": schedule: both day fields restrict the days, and days is missing",
        "a day fires that either selects (",
        "write days = \"either\" to keep this, or days = \"both\"",
        "jobs.toml:8: job \"b.odd\": schedule: ",
        "only a day fires that both select (Mon ",
    ] {
        assert!(applied.stderr.contains(part), "{part}: {}", applied.stderr);
    }
    assert_eq!(applied.stderr.matches("warning: ").count(), 2, "{}", applied.stderr);
    // Programs get the firings of both meanings.
    let document = console.json(&["jobs", "apply", "-f", &file, "--dry-run"]).await;
    let found = document["ambiguous_days"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(keys(&found[0]), ["both", "either", "in_force", "job"]);
    assert_eq!(
        (&found[0]["job"], &found[0]["in_force"]),
        (&json!("a.thirteenth"), &json!("either"))
    );
    assert_eq!((&found[1]["job"], &found[1]["in_force"]), (&json!("b.odd"), &json!("both")));
    for one in found {
        for meaning in ["both", "either"] {
            assert_eq!(one[meaning].as_array().unwrap().len(), 3, "{one}");
        }
        let in_force = one["in_force"].as_str().unwrap();
        let shown = console.json(&["jobs", "show", one["job"].as_str().unwrap()]).await;
        let firings = shown["next_firings"].as_array().unwrap();
        assert_eq!(one[in_force].as_array().unwrap()[..], firings[..3], "{one}");
    }
    // What the warning says to write is accepted without it.
    let stated = AMBIGUOUS
        .replace("schedule = \"0 6 13", "days = \"either\"\nschedule = \"0 6 13")
        .replace("schedule = \"0 0 */2", "days = \"both\"\nschedule = \"0 0 */2");
    let file = console.file("stated.toml", &stated);
    let ended = console.run(&["jobs", "apply", "-f", &file, "--strict"]).await.expect(0);
    assert!(ended.stdout.contains("2 changed") && ended.stderr.is_empty(), "{}", ended.text());
}

#[tokio::test]
async fn commands_show_and_follow_the_days_of_a_job() {
    let console = Console::new().await;
    let file = console.file("jobs.toml", AMBIGUOUS);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let shown = console.json(&["jobs", "show", "c.stated"]).await;
    assert_eq!(shown["days"], "both");
    let shown = console.run(&["jobs", "show", "c.stated"]).await.expect(0).stdout;
    let line = shown.lines().find(|line| line.trim_start().starts_with("days"));
    assert!(line.is_some_and(|line| line.contains("both")), "{shown}");
    assert_eq!(console.json(&["jobs", "show", "d.plain"]).await["days"], json!(null));
    let next = ["jobs", "next", "c.stated", "--count", "2", "--from", "2028-01-01T00:00:00Z"];
    let next = console.json(&next).await;
    assert_eq!(next["next"][0]["at"], "2028-10-13T00:00:00Z");
    assert_eq!(next["next"][1]["at"], "2029-04-13T00:00:00Z");
    let linted = console.run(&["--json", "cron", "lint", "--database"]).await.expect(8).json();
    let jobs: Vec<_> =
        linted["findings"].as_array().unwrap().iter().map(|one| &one["job"]).collect();
    assert_eq!(jobs, ["a.thirteenth", "b.odd"]);
}

#[tokio::test]
async fn a_preview_of_clock_changes_looks_at_the_days_that_a_job_says() {
    let console = Console::new().await;
    // The clocks of Vienna go forward on Sunday, 2027-03-28, at 2:00.
    let job = |name: &str, days: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nschedule = \"30 2 1 * SUN\"\ndays = \"{days}\"\n\
             timezone = \"Europe/Vienna\"\ntask = \"t\"\n"
        )
    };
    let text = job("a.both", "both") + &job("b.either", "either");
    let file = console.file("jobs.toml", &text);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let preview = console.json(&["jobs", "preview", "--from", "2027-03-01T00:00:00Z"]).await;
    let anomalies = preview["anomalies"].as_array().unwrap();
    assert!(!anomalies.is_empty());
    assert!(anomalies.iter().all(|one| one["job_name"] == "b.either"), "{preview}");
}

#[tokio::test]
async fn the_past_of_a_job_is_explained_by_the_days_that_it_said_then() {
    let console = Console::new().await;
    let file = console.file("jobs.toml", AMBIGUOUS);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    // As if it had been applied long ago, by a version that knew no days.
    for statement in [
        "UPDATE sexton.job_revisions SET valid_from = '2026-01-01', definition = definition - 'days'",
        "UPDATE sexton.jobs SET planned_until = '2026-01-01', next_fire_at = '2026-01-02T05:00:00Z'
         WHERE name = 'a.thirteenth'",
    ] {
        sqlx::query(statement).execute(console.db.pool()).await.unwrap();
    }
    let stated = AMBIGUOUS.replace("schedule = \"0 6 13", "days = \"both\"\nschedule = \"0 6 13");
    let file = console.file("stated.toml", &stated);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let explained =
        async |at: &str| console.json(&["jobs", "explain", "a.thirteenth", "--at", at]).await;
    let friday = explained("2026-01-09T05:00:00Z").await;
    let firing = &friday["firings"][0];
    assert_eq!((&firing["revision"], &firing["disposition"]), (&json!(1), &json!("rescheduled")));
    // Fridays that are not the 13th are no firings any more; 2036-06-13 is one.
    let friday = explained("2036-06-06T04:00:00Z").await;
    assert_eq!(friday["no_firing"]["disposition"], "not_a_firing");
    let friday = explained("2036-06-13T04:00:00Z").await;
    assert_eq!(friday["firings"][0]["revision"], 2);
}
