//! `sexton jobs explain|backfill|delete`.

use serde_json::{Value, json};

use super::{Console, keys};

/// A job that fires each hour and is a week old; nothing has claimed its firings.
const HOURLY: &str = r#"
[[job]]
name = "shop.hourly"
schedule = "0 * * * *"
timezone = "Europe/Vienna"
task = "work"
params = { a = 1 }
"#;

impl Console {
    /// With [`HOURLY`] as if it had been applied at an instant, and its schedulers had stood still since.
    async fn with_hourly(more: &str) -> Self {
        let console = Self::new().await;
        let file = console.file("hourly.toml", &format!("{HOURLY}{more}\n"));
        console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
        for statement in [
            "UPDATE sexton.jobs SET created_at = '2026-01-05T00:30:00Z', updated_at = '2026-01-05T00:30:00Z',
                 next_fire_at = '2026-01-05T01:00:00Z', planned_until = '2026-01-05T00:30:00Z'",
            "UPDATE sexton.job_revisions SET valid_from = '2026-01-05T00:30:00Z'",
        ] {
            sqlx::query(statement).execute(console.db.pool()).await.unwrap();
        }
        console
    }

    async fn explained(&self, at: &str) -> Value {
        self.json(&["jobs", "explain", "shop.hourly", "--at", at]).await
    }

    pub(super) async fn rows(&self, count_of: &'static str) -> i64 {
        sqlx::query_scalar(count_of).fetch_one(self.db.pool()).await.unwrap()
    }
}

const EXPECTED_OUTPUT: [&str; 11] = [
    "at",
    "deleted_at",
    "firings",
    "job_id",
    "job_name",
    "next_cursor",
    "no_firing",
    "now",
    "since",
    "timezone",
    "until",
];

const FIRING: [&str; 11] = [
    "actor",
    "disposition",
    "due_at",
    "execution",
    "execution_key",
    "into_key",
    "reason",
    "revision",
    "scheduled_for",
    "timeline",
    "why",
];

#[tokio::test]
async fn explain_shows_the_disposition_of_an_instant_or_its_neighbours() {
    let console = Console::with_hourly("").await;
    let due = console.explained("2026-01-05T08:00").await;
    assert_eq!(keys(&due), EXPECTED_OUTPUT);
    assert_eq!(keys(&due["firings"][0]), FIRING);
    let firing = &due["firings"][0];
    assert_eq!(firing["scheduled_for"], "2026-01-05T07:00:00Z", "by the clocks of the job's zone");
    assert_eq!((&firing["disposition"], &firing["revision"]), (&json!("due"), &json!(1)));
    let none = console.explained("2026-01-05T07:00:01Z").await;
    let around = &none["no_firing"];
    assert_eq!(keys(around), ["after", "before", "disposition", "why"]);
    assert_eq!(around["disposition"], "not_a_firing");
    assert_eq!(around["before"], "2026-01-05T07:00:00Z");
    assert_eq!(around["after"], "2026-01-05T08:00:00Z");
    let before = console.explained("2026-01-04T07:00:00Z").await;
    assert_eq!(before["no_firing"]["disposition"], "before_job");
    let ahead = console.explained("2999-01-01T00:00:00Z").await;
    assert_eq!(ahead["firings"][0]["disposition"], "not_yet");
    assert_eq!(ahead["firings"][0]["due_at"], "2999-01-01T00:00:00Z");
    console.run(&["jobs", "pause", "shop.hourly", "--reason", "tax audit"]).await.expect(0);
    let paused = console.explained("2026-01-05T07:00:00Z").await;
    let firing = &paused["firings"][0];
    assert_eq!(
        (&firing["disposition"], &firing["reason"]),
        (&json!("paused"), &json!("tax audit"))
    );
    let people = console
        .run(&["jobs", "explain", "shop.hourly", "--at", "2026-01-05T07:00:00Z"])
        .await
        .expect(0);
    assert!(people.stdout.contains("the job was paused by tester@"), "{}", people.stdout);
}

#[tokio::test]
async fn an_unexplainable_request_is_a_usage_error() {
    let console = Console::with_hourly("").await;
    for more in [
        &[][..],
        &["--at", "2026-03-29T02:30"],
        &["--at", "2026-10-25T02:30"],
        &["--at", "yesterday"],
        &["--at", "2026-01-05", "--since", "2026-01-05"],
        &["--until", "2026-01-05"],
        &["--since", "2026-01-05", "--cursor", "2026-01-05"],
        &["--since", "2026-01-05", "--until", "2026-01-05"],
        &["--since", "2026-01-05", "--limit", "1001"],
        &["--since", "2026-01-05", "--tz", "Europe/Wien"],
    ] {
        let args = [&["jobs", "explain", "shop.hourly"][..], more].concat();
        let ended = console.run(&args).await;
        assert_eq!(ended.code, 2, "{more:?}: {}{}", ended.stdout, ended.stderr);
    }
    console.run(&["jobs", "explain", "shop.daily", "--at", "36h"]).await.expect(3);
}

#[tokio::test]
async fn explain_shows_a_range_page_by_page() {
    let console = Console::with_hourly("").await;
    let range =
        ["--since", "2026-01-05T00:00:00Z", "--until", "2026-01-05T05:30:00Z", "--limit", "3"];
    let page = console.json(&[&["jobs", "explain", "shop.hourly"][..], &range].concat()).await;
    let instants = |page: &Value| -> Vec<String> {
        let firings = page["firings"].as_array().unwrap().iter();
        firings.map(|firing| firing["scheduled_for"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        instants(&page),
        ["2026-01-05T01:00:00Z", "2026-01-05T02:00:00Z", "2026-01-05T03:00:00Z"]
    );
    let cursor = ["--cursor", page["next_cursor"].as_str().unwrap()];
    let rest = [&["jobs", "explain", "shop.hourly"][..], &range, &cursor].concat();
    let rest = console.json(&rest).await;
    assert_eq!(instants(&rest), ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    // The end of a range is not in it.
    let hour = ["--since", "2026-01-05T01:00:00Z", "--until", "2026-01-05T02:00:00Z"];
    let hour = console.json(&[&["jobs", "explain", "shop.hourly"][..], &hour].concat()).await;
    assert_eq!(instants(&hour), ["2026-01-05T01:00:00Z"]);
}

#[tokio::test]
async fn repeated_backfills_run_each_missing_firing_once() {
    let console = Console::with_hourly("").await;
    let range =
        ["--since", "2026-01-05T01:00:00Z", "--until", "2026-01-05T13:00:00Z", "--rate", "2/h"];
    let command =
        [&["jobs", "backfill", "shop.hourly", "--reason", "late data"][..], &range].concat();
    let dry = console.json(&[&command[..], &["--dry-run"]].concat()).await;
    assert_eq!(
        (&dry["made"], &dry["known"], &dry["dry_run"]),
        (&json!(12), &json!(0), &json!(true))
    );
    assert_eq!(console.rows("SELECT count(*) FROM sexton.executions").await, 0);
    console.run(&command).await.expect(7);
    let done = console.json(&[&command[..], &["--yes"]].concat()).await;
    assert_eq!(
        keys(&done),
        [
            "approval",
            "dry_run",
            "firings",
            "firings_are_all",
            "first_due_at",
            "job_name",
            "known",
            "last_due_at",
            "made",
            "overlap_override",
            "rate",
            "since",
            "until",
        ]
    );
    assert_eq!(
        keys(&done["firings"][0]),
        ["due_at", "execution_id", "execution_key", "made", "scheduled_for"]
    );
    assert_eq!((&done["made"], &done["rate"]), (&json!(12), &json!("2/h")));
    assert_eq!(done["firings"][0]["execution_key"], "cron-2026-01-05T01:00:00Z");
    console.run(&[&command[..], &["--yes"]].concat()).await.expect(4);
    // Half an hour from one to the next; each ticket is unpublished from then on and not before.
    let spread = "SELECT count(*) FROM sexton.executions a JOIN sexton.executions b
                  ON b.scheduled_for = a.scheduled_for + interval '1 hour'
                  AND b.next_attempt_at = a.next_attempt_at + interval '30 minutes'
                  AND b.relay_after = b.next_attempt_at AND b.ticket_published_at IS NULL";
    assert_eq!(console.rows(spread).await, 11);
    let explained = console.explained("2026-01-05T03:00:00Z").await;
    let firing = &explained["firings"][0];
    assert_eq!(firing["disposition"], "running");
    assert_eq!(firing["execution"]["backfill_reason"], "late data");
    assert_eq!(firing["timeline"][0]["event"], "claimed");
    let shown = console.json(&["jobs", "show", "shop.hourly"]).await;
    let action = &shown["operator_actions"][0];
    assert_eq!((&action["action"], &action["reason"]), (&json!("backfill"), &json!("late data")));
    assert_eq!((&action["after"]["count"], &action["after"]["rate"]), (&json!(12), &json!("2/h")));
}

/// The times and dispositions of an answer.
fn instants_and_dispositions(answer: &Value) -> Vec<(&str, &str)> {
    let firings = answer["firings"].as_array().unwrap().iter();
    firings
        .map(|one| (one["scheduled_for"].as_str().unwrap(), one["disposition"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn explain_covers_backfilled_firings_from_before_the_job_and_nothing_else_of_that_time() {
    let console = Console::with_hourly("").await;
    let range = ["--since", "2026-01-04T20:00:00Z", "--until", "2026-01-05T01:30:00Z"];
    let nothing_yet = ["--since", "2026-01-04T20:00:00Z", "--until", "2026-01-05T00:30:00Z"];
    let explain =
        |range: &[&'static str]| [&["jobs", "explain", "shop.hourly"][..], range].concat();
    assert_eq!(
        instants_and_dispositions(&console.json(&explain(&nothing_yet)).await),
        [],
        "there was no job"
    );
    let backfill = ["jobs", "backfill", "shop.hourly", "--since", "2026-01-04T22:00:00Z"];
    let backfill = [&backfill[..], &["--until", "2026-01-05T00:00:01Z", "--yes"]].concat();
    let done = console.run(&backfill).await.expect(0).stdout;
    assert!(done.contains("3 firings are claimed"), "{done}");
    let claimed = [
        ("2026-01-04T22:00:00Z", "running"),
        ("2026-01-04T23:00:00Z", "running"),
        ("2026-01-05T00:00:00Z", "running"),
    ];
    let all = console.json(&explain(&range)).await;
    assert_eq!(
        instants_and_dispositions(&all),
        [&claimed[..], &[("2026-01-05T01:00:00Z", "due")]].concat()
    );
    let revisions: Vec<&Value> =
        all["firings"].as_array().unwrap().iter().map(|firing| &firing["revision"]).collect();
    assert_eq!(revisions, [&Value::Null, &Value::Null, &Value::Null, &json!(1)]);
    // What the backfill says to run is run as it stands.
    let command_line = done.split("How they go: sexton ").nth(1).unwrap().trim();
    let words: Vec<&str> = command_line.split_whitespace().collect();
    assert_eq!(instants_and_dispositions(&console.json(&words).await), claimed);
    // Page by page, each once.
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut page = [&explain(&range)[..], &["--limit", "1"]].concat();
        page.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let page = console.json(&page).await;
        pages.extend(instants_and_dispositions(&page).iter().map(|one| one.0.to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = Some(next.to_owned());
    }
    assert_eq!(pages, instants_and_dispositions(&all).iter().map(|one| one.0).collect::<Vec<_>>());
    let one = console.explained("2026-01-04T23:00:00Z").await;
    assert_eq!(instants_and_dispositions(&one), [("2026-01-04T23:00:00Z", "running")]);
    assert_eq!(one["firings"][0]["timeline"][0]["event"], "claimed");
    let none = console.explained("2026-01-04T21:00:00Z").await;
    assert_eq!(none["no_firing"]["disposition"], "before_job");
}

#[tokio::test]
async fn explain_covers_firings_of_forgotten_schedules_and_other_time_zone_data() {
    let console = Console::with_hourly("").await;
    let range = ["--since", "2026-01-05T01:00:00Z", "--until", "2026-01-05T04:30:00Z"];
    let backfill = [&["jobs", "backfill", "shop.hourly", "--yes"][..], &range].concat();
    console.run(&backfill).await.expect(0);
    // A trigger with a key like a firing's stays a trigger: its nominal time is when it was triggered.
    let key = ["--key", "cron-2026-01-05T02:45:00Z"];
    console.run(&[&["jobs", "trigger", "shop.hourly"][..], &key].concat()).await.expect(0);
    for statement in [
        // Retention has removed the first revision, which was in force until half past two.
        "UPDATE sexton.job_revisions SET revision = 2, valid_from = '2026-01-05T02:30:00Z'",
        "UPDATE sexton.jobs SET revision = 2",
        // By the data of then the clocks stood elsewhere.
        "UPDATE sexton.executions SET execution_key = 'cron-2026-01-05T03:20:00Z',
             scheduled_for = '2026-01-05T03:20:00Z' WHERE scheduled_for = '2026-01-05T03:00:00Z'",
    ] {
        sqlx::query(statement).execute(console.db.pool()).await.unwrap();
    }
    let answer = console.json(&[&["jobs", "explain", "shop.hourly"][..], &range].concat()).await;
    assert_eq!(
        instants_and_dispositions(&answer),
        [
            ("2026-01-05T01:00:00Z", "running"),
            ("2026-01-05T02:00:00Z", "running"),
            ("2026-01-05T03:00:00Z", "due"),
            ("2026-01-05T03:20:00Z", "running"),
            ("2026-01-05T04:00:00Z", "running"),
        ]
    );
}

#[tokio::test]
async fn a_backfill_is_refused_where_a_firing_could_run_twice_or_never() {
    let console = Console::with_hourly("overlap = \"skip\"").await;
    let backfill = async |more: &[&str]| {
        let args = [&["jobs", "backfill", "shop.hourly", "--yes"][..], more].concat();
        console.run(&args).await
    };
    let day = ["--since", "2026-01-05T00:00:00Z", "--until", "2026-01-06T00:00:00Z"];
    let refused = backfill(&day).await.expect(2);
    assert!(refused.stderr.contains("--overlap allow"), "{}", refused.stderr);
    for (more, code, message) in [
        (["--since", "2026-01-06", "--until", "2026-01-05"], 2, "--since is not before --until"),
        (["--since", "2026-01-06", "--until", "2999-01-05"], 2, "after the present"),
    ] {
        let refused = backfill(&[&more[..], &["--overlap", "allow"]].concat()).await.expect(code);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let allowed = [&day[..], &["--overlap", "allow"]].concat();
    sqlx::query("UPDATE sexton.retention SET pruned_before = '2026-01-05T12:00:00Z'")
        .execute(console.db.pool())
        .await
        .unwrap();
    let pruned = backfill(&allowed).await.expect(2);
    assert!(pruned.stderr.contains("2026-01-05 12:00:00"), "{}", pruned.stderr);
    assert_eq!(console.rows("SELECT count(*) FROM sexton.executions").await, 0);
    let unknown = console.explained("2026-01-04T23:00:00Z").await;
    assert_eq!(unknown["no_firing"]["disposition"], "before_job");
    let since = [
        "--since",
        "2026-01-05T12:00:00Z",
        "--until",
        "2026-01-05T14:30:00Z",
        "--overlap",
        "allow",
    ];
    backfill(&since).await.expect(0);
    let beside = "SELECT count(*) FROM sexton.executions WHERE overlap_override = 'allow'";
    assert_eq!(console.rows(beside).await, 3);
}

#[tokio::test]
async fn a_deleted_job_frees_its_name_and_can_still_be_explained() {
    let console = Console::with_hourly("").await;
    let delete = async |more: &[&str]| {
        let args = [&["jobs", "delete", "shop.hourly", "--reason", "in vain"][..], more].concat();
        console.run(&args).await
    };
    let id = console.trigger("shop.hourly").await;
    let busy = delete(&["--yes"]).await.expect(4);
    assert!(busy.stderr.contains("1 executions under way"), "{}", busy.stderr);
    let preview = delete(&["--cancel", "--dry-run"]).await.expect(0);
    assert!(
        preview.stdout.contains("1 waiting executions will be cancelled"),
        "{}",
        preview.stdout
    );
    delete(&["--cancel"]).await.expect(7);
    let args = ["jobs", "delete", "shop.hourly", "--reason", "in vain", "--cancel", "--yes"];
    let gone = console.json(&args).await;
    assert_eq!(keys(&gone), ["dry_run", "failed", "id", "name", "passed", "running", "waiting"]);
    assert_eq!(console.state(id).await, "cancelled/1");
    assert_eq!(console.audit(id).await[1], "cancel by tester because in vain");
    delete(&["--yes"]).await.expect(3);
    console.run(&["jobs", "trigger", "shop.hourly"]).await.expect(3);
    assert_eq!(console.items(&["jobs", "list"]).await, json!([]));
    let deleted = console.items(&["jobs", "list", "--deleted"]).await;
    assert_eq!(deleted[0]["name"], "shop.hourly");
    assert_ne!(deleted[0]["deleted_at"], Value::Null);
    let explained = console.explained("2026-01-05T07:00:00Z").await;
    assert_eq!(explained["firings"][0]["disposition"], "deleted");
    assert_eq!(explained["firings"][0]["reason"], "in vain");
    let later = console.explained("2999-01-01T00:00:00Z").await;
    assert_eq!(later["no_firing"]["disposition"], "after_deletion");
    let listed = console.items(&["executions", "list", "--job", "shop.hourly"]).await;
    assert_eq!(listed[0]["job_name"], "shop.hourly");
    // The name is free: another job takes it, and the name selects that job.
    let file = console.file("again.toml", HOURLY);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    assert_eq!(console.items(&["executions", "list", "--job", "shop.hourly"]).await, json!([]));
    assert_eq!(console.rows("SELECT count(*) FROM sexton.jobs").await, 2);
    // Bulks need the jobs of their questions; one of other programs' tasks is like any other, and is not there.
    console.run(&["jobs", "delete", "verify.x", "--reason", "y", "--yes"]).await.expect(2);
    console.run(&["jobs", "delete", "foreign.x", "--reason", "y", "--yes"]).await.expect(3);
}
