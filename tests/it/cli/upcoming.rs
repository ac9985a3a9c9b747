//! `sexton jobs next` and `sexton jobs preview`.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sexton_operations::jobs::preview::{PreviewRequest, preview};

use super::{Console, keys};

const JOBS: &str = r#"
[[job]]
name = "a.nightly"
schedule = "30 2 * * *"
timezone = "Europe/Vienna"
task = "t"

[[job]]
name = "b.nightly"
schedule = "30 2 * * *"
timezone = "Europe/Vienna"
dst = "skip"
task = "t"

[[job]]
name = "c.quarters"
schedule = "*/30 2 * * *"
timezone = "Europe/Vienna"
task = "t"

[[job]]
name = "d.twice"
schedule = "30 2 * * *"
timezone = "Europe/Vienna"
dst = "wall"
task = "t"

[[job]]
name = "e.noon"
schedule = "0 12 * * *"
task = "t"

[[job]]
name = "f.triggered"
task = "t"
"#;

async fn console() -> Console {
    let console = Console::new().await;
    let file = console.file("jobs.toml", JOBS);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    console
}

fn column<'v>(rows: &'v Value, field: &str) -> Vec<&'v str> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap_or("-")).collect()
}

#[tokio::test]
async fn the_next_firings_of_named_jobs_and_of_all_come_soonest_first() {
    let console = console().await;
    let from = ["--from", "2027-03-27T12:00:00Z"];
    let next =
        async |args: &[&str]| console.json(&[&["jobs", "next"], args, &from[..]].concat()).await;
    let named = next(&["e.noon", "a.nightly", "--count", "4"]).await;
    assert_eq!(keys(&named), ["complete", "from", "next"]);
    assert_eq!(keys(&named["next"][0]), ["at", "job_name", "status", "tz", "wall"]);
    assert_eq!(
        column(&named["next"], "at"),
        [
            "2027-03-28T01:00:00Z",
            "2027-03-28T12:00:00Z",
            "2027-03-29T00:30:00Z",
            "2027-03-29T12:00:00Z"
        ]
    );
    assert_eq!(column(&named["next"], "job_name"), ["a.nightly", "e.noon", "a.nightly", "e.noon"]);
    assert_eq!(named["next"][0]["wall"], "2027-03-28T03:00:00+02:00");
    let shown = next(&["e.noon", "--count", "1", "--tz", "Asia/Kathmandu"]).await;
    assert_eq!(shown["next"][0]["wall"], "2027-03-28T17:45:00+05:45");
    // The whole database: d fires at 3:00, too, b not at all, c not before the day after.
    let all = next(&["--count", "3"]).await;
    assert_eq!(column(&all["next"], "job_name"), ["a.nightly", "d.twice", "e.noon"]);
    // Without an instant: the cursors, soonest first, the same as each job shows.
    let soonest = console.json(&["jobs", "next", "--count", "20"]).await;
    let at = column(&soonest["next"], "at");
    assert!(at.len() == 20 && at.is_sorted(), "{soonest}");
    let shown = console.json(&["jobs", "show", "e.noon"]).await;
    let of_noon = console.json(&["jobs", "next", "e.noon", "--count", "5"]).await;
    let five = shown["next_firings"].as_array().unwrap().iter();
    assert_eq!(
        column(&of_noon["next"], "at"),
        five.map(|at| at.as_str().unwrap()).collect::<Vec<_>>()
    );
    let none = console.run(&["jobs", "next", "f.triggered"]).await.expect(0);
    assert!(none.stdout.contains("Nothing fires"), "{}", none.stdout);
    console.run(&["jobs", "next", "noon"]).await.expect(3);
    console.run(&["jobs", "next", "--count", "1001"]).await.expect(2);
}

#[tokio::test]
async fn a_paused_job_is_among_all_only_if_it_is_named() {
    let console = console().await;
    console.run(&["jobs", "pause", "e.noon", "--reason", "x"]).await.expect(0);
    let all = console.json(&["jobs", "next", "--count", "100"]).await;
    assert!(!column(&all["next"], "job_name").contains(&"e.noon"));
    let named = console.json(&["jobs", "next", "e.noon", "--count", "1"]).await;
    assert_eq!(named["next"][0]["status"], "paused");
    let shown = console.run(&["jobs", "next", "e.noon"]).await.expect(0);
    assert!(shown.stdout.contains("if resumed"), "{}", shown.stdout);
}

#[tokio::test]
async fn a_preview_marks_what_every_change_of_clocks_does_within_two_years() {
    let console = console().await;
    let preview = console.json(&["jobs", "preview", "--from", "2027-01-01T00:00:00Z"]).await;
    assert_eq!(keys(&preview), ["anomalies", "complete", "from", "templates", "until"]);
    assert_eq!(preview["until"], "2029-01-01T00:00:00Z");
    let anomalies = preview["anomalies"].as_array().unwrap();
    assert_eq!(anomalies.len(), 4 * 4, "four jobs, four changes");
    let of = |job: &str| -> Vec<&str> {
        let of_job = anomalies.iter().filter(|anomaly| anomaly["job_name"] == job);
        of_job.map(|anomaly| anomaly["kind"].as_str().unwrap()).take(2).collect()
    };
    assert_eq!(of("a.nightly"), ["moved", "first_pass"]);
    assert_eq!(of("b.nightly"), ["skipped", "first_pass"]);
    assert_eq!(of("c.quarters"), ["skipped", "doubled"]);
    assert_eq!(of("d.twice"), ["moved", "doubled"]);
    let first = &anomalies[0];
    assert_eq!(
        keys(first),
        [
            "again_at",
            "change_at",
            "fires_at",
            "first_wall",
            "job_name",
            "kind",
            "last_wall",
            "merged",
            "offset_after_s",
            "offset_before_s",
            "tz",
            "walls"
        ]
    );
    assert_eq!(
        (&first["first_wall"], &first["fires_at"], &first["change_at"]),
        (
            &json!("2027-03-28T02:30:00"),
            &json!("2027-03-28T01:00:00Z"),
            &json!("2027-03-28T01:00:00Z")
        )
    );
    let shown = console.run(&["jobs", "preview", "a.nightly"]).await.expect(0);
    assert!(shown.stdout.contains("moved") && shown.stdout.contains("02:30"), "{}", shown.stdout);
    let none = console.run(&["jobs", "preview", "e.noon"]).await.expect(0);
    assert!(none.stdout.contains("No clock change"), "{}", none.stdout);
}

#[tokio::test]
async fn a_preview_whose_time_is_up_has_the_effects_of_no_other_job_and_is_incomplete() {
    let console = console().await;
    let now = "2027-01-01T00:00:00Z".parse().unwrap();
    let within = async |time_limit| {
        let names = ["a.nightly", "b.nightly"].map(str::to_owned).to_vec();
        let request =
            PreviewRequest { names, from: Some(now), count: 1, given: Map::new(), time_limit };
        let previewed = preview(console.store(), &request, now).await.unwrap();
        (previewed.complete, previewed.job_count, previewed.anomalies.len())
    };
    assert_eq!(within(None).await, (true, 2, 8));
    assert_eq!(within(Some(Duration::from_hours(1))).await, (true, 2, 8));
    assert_eq!(within(Some(Duration::ZERO)).await, (false, 0, 0));
}

#[tokio::test]
async fn the_anomalies_of_an_expression_need_no_server() {
    let args = ["--json", "cron", "next", "30 2 * * *", "--tz", "Europe/Vienna", "--anomalies"];
    let from = ["--from", "2027-01-01T00:00:00Z", "--count", "1"];
    let answer = super::run(&[&args[..], &from].concat(), &[], "").await.expect(0).json();
    assert_eq!(
        column(&answer["anomalies"], "kind"),
        ["moved", "first_pass", "moved", "first_pass"]
    );
    let shown = super::run(&[&args[1..], &from].concat(), &[], "").await.expect(0).stdout;
    assert!(shown.contains("fires at 2027-03-28T01:00:00Z instead"), "{shown}");
}

#[tokio::test]
async fn a_preview_shows_what_templates_become() {
    let console = Console::new().await;
    let jobs = r#"
[[job]]
name = "a.charge"
task = "t"
idempotency_key = "b:{{ params.customer }}"

[[job]]
name = "a.nightly"
schedule = "30 0 1 * *"
timezone = "Europe/Vienna"
task = "t"
params = { from = "{{ previous_scheduled_for }}", month = "{{ scheduled_for | date(\"%Y-%m\") }}" }
"#;
    let file = console.file("jobs.toml", jobs);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let shown =
        console.json(&["jobs", "preview", "--count", "2", "--params", "{\"customer\": 7}"]).await;
    let templates = shown["templates"].as_array().unwrap();
    assert_eq!(templates.len(), 3, "{shown}");
    assert_eq!(templates[0]["idempotency_key"], "b:7");
    let [first, second] = &templates[1..] else { panic!("{shown}") };
    assert_eq!(second["params"]["from"], first["scheduled_for"], "{shown}");
    // At half past midnight in Vienna it is still the month before in UTC.
    let local = second["scheduled_for"].as_str().unwrap();
    assert_ne!(second["params"]["month"].as_str().unwrap(), &local[..7]);
    let text = console.run(&["jobs", "preview", "a.charge"]).await.expect(0).text();
    assert!(text.contains("The templates of a.charge become:"), "{text}");
    assert!(text.contains("params.customer is missing"), "{text}");
    let wrong = jobs.replace("previous_scheduled_for", "last_scheduled_for");
    let file = console.file("wrong.toml", &wrong);
    let text = console.run(&["jobs", "apply", "-f", &file]).await.text();
    assert!(
        text.contains(
            "wrong.toml:12: job \"a.nightly\": params.from: \"last_scheduled_for\" is none of job"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_preview_without_the_templates_of_all_jobs_is_incomplete() {
    let console = Console::new().await;
    let names: Vec<String> = (10..31).map(|n| format!("a.job{n}")).collect();
    let job = |name: &String| {
        format!(
            "[[job]]\nname = \"{name}\"\ntask = \"t\"\nparams = {{ key = \"{{{{ execution_key }}}}\" }}\n"
        )
    };
    let file = console.file("jobs.toml", &names.iter().map(job).collect::<Vec<_>>().concat());
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let all = console.json(&["jobs", "preview"]).await;
    assert_eq!(column(&all["templates"], "job_name"), names[..20]);
    assert_eq!(all["complete"], false, "one is left out");
    let printed = console.run(&["jobs", "preview"]).await.expect(0).text();
    assert!(printed.contains("the templates of 1 more"), "{printed}");
    let command = ["jobs", "preview"].into_iter().chain(names[1..].iter().map(String::as_str));
    let preview = console.json(&command.collect::<Vec<_>>()).await;
    assert_eq!(column(&preview["templates"], "job_name"), names[1..]);
    assert_eq!(preview["complete"], true);
}
