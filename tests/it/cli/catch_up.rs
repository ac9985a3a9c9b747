//! `sexton jobs catch-up`, and what `status` says of a hold.

use serde_json::{Value, json};

use super::{Console, keys};

/// An hourly job that is ten hours and some minutes late.
const LATE: &str = r#"
[[job]]
name = "reports.hourly"
schedule = "0 * * * *"
task = "report"
misfire = { policy = "fire_all", limit = 3, rate = "2/m" }
"#;

impl Console {
    async fn late() -> Self {
        let console = Self::new().await;
        let file = console.file("late.toml", LATE);
        console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
        console
            .execute(
                "UPDATE sexton.jobs SET next_fire_at = date_trunc('hour', now()) - interval '9 hours'",
            )
            .await;
        console
    }

    async fn execute(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.store().pool()).await.unwrap();
    }

    /// Ten firings are set aside, as a scheduler would have done five minutes after the newest.
    async fn hold(&self) {
        self.execute(
            "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
             VALUES ('forward', now() - interval '10 hours', now(), 'test:1')",
        )
        .await;
        self.execute(
            "INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
             SELECT id, next_fire_at, next_fire_at + interval '9 hours', 10,
                    next_fire_at + interval '9 hours 5 minutes' FROM sexton.jobs",
        )
        .await;
        self.execute("UPDATE sexton.jobs SET next_fire_at = now() + interval '30 minutes'").await;
    }

    async fn count(&self, table: &'static str) -> i64 {
        let statement = format!("SELECT count(*) FROM {table}");
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(statement));
        count.fetch_one(self.store().pool()).await.unwrap()
    }
}

#[tokio::test]
async fn a_dry_run_says_what_would_run_and_changes_nothing() {
    let console = Console::late().await;
    let shown = console.json(&["jobs", "catch-up", "--dry-run"]).await;
    assert_eq!(keys(&shown), ["hold", "is_cut", "jobs", "now", "unreadable"]);
    assert_eq!(shown["is_cut"], false);
    assert_eq!(shown["hold"], Value::Null);
    let job = &shown["jobs"][0];
    let fields =
        ["gaps", "job_name", "judged_at", "policy", "runs", "skipped", "spread_ms", "state"];
    assert_eq!(keys(job), fields);
    assert_eq!((&job["state"], &job["policy"]), (&json!("due"), &json!("fire_all")));
    // The newest may be on time, in the first minute of an hour.
    let runs = job["runs"].as_array().unwrap().len();
    assert!((3..=4).contains(&runs), "{job}");
    assert_eq!(job["gaps"][0]["count"], 10 - runs);
    assert_eq!(job["gaps"][0]["reason"], "over_limit");
    assert_eq!(job["spread_ms"], 60_000);
    let text = console.run(&["jobs", "catch-up", "--dry-run", "reports.hourly"]).await.expect(0);
    assert!(text.stdout.contains("reports.hourly"), "{}", text.stdout);
    assert_eq!(
        (console.count("sexton.executions").await, console.count("sexton.gaps").await),
        (0, 0)
    );
}

#[tokio::test]
async fn a_release_does_what_its_dry_run_said_and_status_warns_before() {
    let console = Console::late().await;
    console.hold().await;
    let status = console.json(&["status"]).await;
    let warning = &status["warnings"][0];
    assert_eq!((&warning["kind"], &warning["firings"]), (&json!("catch_up_held"), &json!(10)));
    let stdout = console.run(&["status"]).await.expect(0).stdout;
    assert!(stdout.contains("sexton jobs catch-up --dry-run"), "{stdout}");
    let shown = console.json(&["jobs", "catch-up", "--dry-run"]).await;
    let job = &shown["jobs"][0];
    assert_eq!((&job["state"], job["runs"].as_array().unwrap().len()), (&json!("held"), 3));
    let refused = console.run(&["jobs", "catch-up", "--release"]).await;
    assert!(refused.code != 0 && refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert_eq!(console.count("sexton.held_firings").await, 1);
    let done = console.json(&["jobs", "catch-up", "--release", "--yes", "--reason", "seen"]).await;
    assert_eq!(
        (&done["claimed"], &done["missed"], &done["ended"]),
        (&json!(3), &json!(7), &json!(true))
    );
    let listed = console.items(&["executions", "list", "--job", "reports.hourly"]).await;
    let mut ran: Vec<_> =
        listed.as_array().unwrap().iter().map(|row| row["scheduled_for"].clone()).collect();
    ran.sort_by_key(ToString::to_string);
    assert_eq!(json!(ran), job["runs"]);
    assert_eq!(
        console.json(&["status"]).await["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|warning| warning["kind"] == "catch_up_held")
            .count(),
        0
    );
    console.run(&["jobs", "catch-up", "--release", "--yes"]).await.expect(4);
}

#[tokio::test]
async fn explain_shows_held_firings_and_the_later_decision() {
    let console = Console::late().await;
    console
        .execute(
            "UPDATE sexton.job_revisions SET valid_from = date_trunc('hour', now()) - interval '9h 5m'",
        )
        .await;
    console.hold().await;
    let dispositions = async || {
        let explained =
            console.json(&["jobs", "explain", "reports.hourly", "--since", "10h"]).await;
        let firings = explained["firings"].as_array().unwrap();
        let words = firings.iter().map(|it| it["disposition"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    assert_eq!(dispositions().await, ["held"; 10]);
    console.json(&["jobs", "catch-up", "--release", "--yes", "--reason", "seen"]).await;
    let mut decided = vec!["over_limit"; 7];
    decided.extend(["running"; 3]);
    assert_eq!(dispositions().await, decided);
}

#[tokio::test]
async fn discarded_firings_become_a_gap_and_catch_up_needs_one_action() {
    let console = Console::late().await;
    console.hold().await;
    let args = ["jobs", "catch-up", "--discard", "--yes", "reports.hourly"];
    let done = console.json(&args).await;
    assert_eq!((&done["missed"], &done["ended"]), (&json!(10), &json!(false)));
    assert_eq!(console.count("sexton.gaps WHERE reason = 'held' AND count = 10").await, 1);
    let ended = console.json(&["jobs", "catch-up", "--discard", "--yes"]).await;
    assert_eq!((&ended["missed"], &ended["ended"]), (&json!(0), &json!(true)));
    console.run(&["jobs", "catch-up"]).await.expect(2);
    console.run(&["jobs", "catch-up", "--discard", "--release"]).await.expect(2);
    let missing = console.run(&["jobs", "catch-up", "--dry-run", "hourly"]).await.expect(3);
    assert!(missing.stderr.contains("did you mean reports.hourly?"), "{}", missing.stderr);
}

#[tokio::test]
async fn a_discard_that_ends_the_hold_reports_late_firings_that_were_not_held() {
    let console = Console::late().await;
    console.hold().await;
    console.execute("UPDATE sexton.jobs SET next_fire_at = now() - interval '2 hours'").await;
    let done = console.run(&["jobs", "catch-up", "--discard", "--yes"]).await.expect(0);
    let warning = "1 jobs are late and no scheduler has set them aside";
    assert!(done.stdout.contains(warning), "{}", done.stdout);
    console.hold().await;
    let done = console.json(&["jobs", "catch-up", "--discard", "--yes"]).await;
    assert_eq!((&done["ended"], &done["late_jobs"]), (&json!(true), &json!(0)));
}

#[tokio::test]
async fn a_truncated_answer_still_counts_everything() {
    let console = Console::late().await;
    console.hold().await;
    console
        .execute(
            "INSERT INTO sexton.held_firings (job_id, first_firing, last_firing, count, held_at)
             SELECT id, at, at, 1, at + interval '5 minutes'
             FROM sexton.jobs, generate_series(1, 10000) AS n,
                  LATERAL (SELECT date_trunc('hour', now()) - (n + 9) * interval '1 hour' AS at) firing",
        )
        .await;
    let shown = console.run(&["jobs", "catch-up", "--dry-run"]).await.expect(0);
    assert!(shown.stdout.contains("More is left out"), "{}", shown.stdout);
    let refused = console.run(&["jobs", "catch-up", "--discard", "reports.hourly"]).await;
    assert!(refused.stderr.contains("10010 firings"), "{}", refused.stderr);
}
