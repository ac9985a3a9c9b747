//! `sexton jobs apply`: all or nothing, and what it says.

use serde_json::json;
use sexton_model::id::JobId;
use sexton_model::job::{Expectations, JobSpec, Schedule};
use sexton_store::jobs::{self, Apply, JobFilter, apply};
use uuid::Uuid;

use super::{Console, JOBS, keys};

#[tokio::test]
async fn applying_twice_changes_nothing_the_second_time() {
    let console = Console::new().await;
    let file = console.file("jobs.toml", JOBS);
    let first = console.json(&["jobs", "apply", "-f", &file]).await;
    let names = json!(["billing.invoices", "shop.charge", "shop.mail"]);
    assert_eq!(
        keys(&first),
        [
            "ambiguous_days",
            "changed",
            "created",
            "dry_run",
            "not_paused",
            "paused",
            "schema_mismatches",
            "still_paused",
            "unchanged"
        ]
    );
    assert_eq!(first["created"], names);
    let second = console.json(&["jobs", "apply", "-f", &file]).await;
    assert_eq!((&second["created"], &second["unchanged"]), (&json!([]), &names));
    let job = console.json(&["jobs", "show", "billing.invoices"]).await;
    assert_eq!(job["revision"], 1);
    assert_eq!(job["operator_actions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dry_run_shows_the_difference_and_writes_nothing() {
    let console = Console::with_jobs().await;
    let edited = JOBS.replace("0 1 1 * *", "0 2 1 * *").replace("shop.mail", "shop.post");
    let file = console.file("changed.toml", &edited);
    let before = console.items(&["jobs", "list"]).await;
    let plan = console.json(&["jobs", "apply", "-f", &file, "--dry-run", "--prune"]).await;
    assert_eq!(plan["created"], json!(["shop.post"]));
    assert_eq!(plan["paused"], json!(["shop.mail"]));
    let changes = &plan["changed"][0]["changes"];
    assert_eq!(changes["schedule_expression"], json!({"from": "0 1 1 * *", "to": "0 2 1 * *"}));
    assert_eq!(console.items(&["jobs", "list"]).await, before);
}

#[tokio::test]
async fn every_problem_of_every_file_is_reported_and_nothing_is_applied() {
    let console = Console::new().await;
    let good = console.file("good.toml", JOBS);
    let bad = console.file(
        "bad.toml",
        "[[job]]\nname = \"a.b\"\nschedule = \"61 * * * *\"\ntask = \"t\"\n\n\
         [[job]]\nname = \"shop.mail\"\ntask = \"t\"\ntimezone = \"Mars/Base\"\n",
    );
    let ended = console.run(&["jobs", "apply", "-f", &good, &bad]).await.expect(1);
    for part in ["bad.toml:3: job \"a.b\": schedule", "bad.toml:9: job \"shop.mail\": timezone"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let ended = console.run(&["--json", "jobs", "apply", "-f", &good, &bad]).await.expect(1);
    let answer = ended.json();
    assert_eq!((&answer["exit_status"], &answer["problems"][0]["line"]), (&json!(1), &json!(3)));
    assert_eq!(console.items(&["jobs", "list"]).await, json!([]));
}

#[tokio::test]
async fn problems_that_only_the_time_shows_have_their_line_too() {
    let console = Console::new().await;
    let file = console.file(
        "late.toml",
        "[[job]]\nname = \"a.late\"\ntask = \"t\"\nat = \"2020-01-01T00:00:00Z\"\n\n\
         [[job]]\nname = \"a.never\"\ntask = \"t\"\nschedule = \"0 0 30 2 *\"\n",
    );
    let ended = console.run(&["jobs", "apply", "-f", &file]).await.expect(1);
    for part in ["late.toml:2: job \"a.late\"", "late.toml:7: job \"a.never\"", "never fires"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_eq!(console.items(&["jobs", "list"]).await, json!([]));
}

#[tokio::test]
async fn one_name_in_two_files_is_refused() {
    let console = Console::new().await;
    let (one, two) = (console.file("one.toml", JOBS), console.file("two.toml", JOBS));
    let ended = console.run(&["jobs", "apply", "-f", &one, "-f", &two]).await.expect(1);
    assert!(ended.stderr.contains("already used by a job in"), "{}", ended.stderr);
}

#[tokio::test]
async fn pruning_asks_first_and_without_a_terminal_refuses() {
    let console = Console::with_jobs().await;
    let fewer = console.file("fewer.toml", "[[job]]\nname = \"shop.mail\"\ntask = \"work\"\n");
    let ended = console.run(&["jobs", "apply", "-f", &fewer, "--prune"]).await.expect(7);
    assert!(ended.stderr.contains("2 active jobs") && ended.stderr.contains("--yes"));
    assert_eq!(console.items(&["jobs", "list", "--status", "paused"]).await, json!([]));
    let done = console.json(&["jobs", "apply", "-f", &fewer, "--prune", "--yes"]).await;
    assert_eq!(done["paused"], json!(["billing.invoices", "shop.charge"]));
    // Applying a paused job again does not start it, and says so.
    let file = console.file("jobs.toml", JOBS);
    let done = console.json(&["jobs", "apply", "-f", &file]).await;
    assert_eq!(done["still_paused"], json!(["billing.invoices", "shop.charge"]));
}

#[tokio::test]
async fn a_job_that_its_file_creates_paused_fires_only_when_it_is_resumed_and_then_stays_so() {
    let console = Console::new().await;
    let text = "[[job]]\nname = \"a.b\"\ntask = \"t\"\nevery = \"1s\"\npaused = true\n";
    let file = console.file("paused.toml", text);
    let dry = console.json(&["jobs", "apply", "-f", &file, "--dry-run"]).await;
    assert_eq!((&dry["created"], &dry["still_paused"]), (&json!(["a.b"]), &json!(["a.b"])));
    let stdout = console.run(&["jobs", "apply", "-f", &file]).await.expect(0).stdout;
    assert!(stdout.contains("1 of these jobs are paused") && stdout.contains("resume"), "{stdout}");
    let job = console.json(&["jobs", "show", "a.b"]).await;
    let why = "the jobs file creates it paused";
    assert_eq!((&job["status"], &job["paused_why"]), (&json!("paused"), &json!(why)));
    assert!(job["paused_by"].as_str().unwrap().starts_with("tester"), "{job}");
    let actions = job["operator_actions"].as_array().unwrap();
    let mut actions: Vec<_> = actions.iter().map(|a| a["action"].as_str().unwrap()).collect();
    actions.sort_unstable();
    assert_eq!(actions, ["apply", "pause"]);
    // Once an operator has resumed it, the file has no say in that any more, and apply tells so.
    console.run(&["jobs", "resume", "a.b"]).await.expect(0);
    let again = console.json(&["jobs", "apply", "-f", &file]).await;
    assert_eq!((&again["unchanged"], &again["not_paused"]), (&json!(["a.b"]), &json!(["a.b"])));
    assert_eq!(console.json(&["jobs", "show", "a.b"]).await["status"], "active");
    let stdout = console.run(&["jobs", "apply", "-f", &file]).await.expect(0).stdout;
    assert!(stdout.contains("counts only when a job is created"), "{stdout}");
}

#[tokio::test]
async fn a_schedule_that_stays_keeps_its_cursor_and_a_new_one_starts_after_now() {
    let console = Console::new().await;
    let period = |seconds| Schedule::every(std::time::Duration::from_secs(seconds));
    let spec = |schedule, task: &str| JobSpec::new("a.b", task, schedule);
    let apply_at = async |spec: JobSpec, second: i64| {
        let request = Apply { specs: &[spec], actor: "t", dry_run: false, prune: false };
        let now = chrono::DateTime::from_timestamp(second, 0);
        apply(console.store(), request, || JobId::new(Uuid::now_v7()), now).await.unwrap();
        let job = jobs::find(console.store(), "a.b").await.unwrap().unwrap();
        (job.next_fire_at.unwrap().timestamp(), job.revision)
    };
    assert_eq!(apply_at(spec(period(60), "t"), 1_000_000_020).await, (1_000_000_080, 1));
    // Late, and with another task: the firings that are due stay due.
    assert_eq!(apply_at(spec(period(60), "u"), 1_000_000_300).await, (1_000_000_080, 2));
    // Under another schedule they are recorded as not executed.
    assert_eq!(apply_at(spec(period(3_600), "u"), 1_000_000_300).await, (1_000_000_800, 3));
    let job = jobs::find(console.store(), "a.b").await.unwrap().unwrap();
    let gaps = sexton_store::gaps::list_by_job(console.store(), job.id, 10).await.unwrap();
    assert_eq!((gaps.len(), gaps[0].count, gaps[0].reason.as_str()), (1, 4, "rescheduled"));
    assert_eq!(gaps[0].first_firing.timestamp(), 1_000_000_080);
}

#[tokio::test]
async fn a_job_says_its_zone_and_one_whose_zone_changes_starts_after_now() {
    let console = Console::new().await;
    let apply = async |more: &str| {
        let text =
            format!("[[job]]\nname = \"a.b\"\ntask = \"t\"\nschedule = \"30 2 29 3 *\"\n{more}\n");
        let file = console.file("zones.toml", &text);
        console.run(&["jobs", "apply", "-f", &file]).await
    };
    let shown = async || console.json(&["jobs", "show", "a.b"]).await;
    apply("").await.expect(0);
    let utc = shown().await;
    assert_eq!((&utc["timezone"], &utc["dst"]), (&json!("UTC"), &json!("vixie")));
    let applied = apply("timezone = \"Europe/Vienna\"\ndst = \"skip\"").await.expect(0);
    assert!(applied.stdout.contains("timezone"), "{}", applied.stdout);
    let vienna = shown().await;
    assert_eq!((&vienna["timezone"], &vienna["dst"]), (&json!("Europe/Vienna"), &json!("skip")));
    assert_ne!(vienna["next_fire_at"], utc["next_fire_at"]);
    assert_eq!(vienna["next_firings"][0], vienna["next_fire_at"]);
    let listed = console.run(&["jobs", "list"]).await.expect(0).stdout;
    assert!(listed.contains("Europe/Vienna"), "{listed}");
    let ended = apply("timezone = \"Europe/Viena\"\ndst = \"never\"").await.expect(1);
    for part in ["did you mean Europe/Vienna?", "write one of vixie, skip, wall"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_eq!(shown().await["revision"], vienna["revision"], "nothing was applied");
}

#[tokio::test]
async fn twenty_thousand_jobs_are_applied_at_once() {
    let console = Console::new().await;
    let specs: Vec<JobSpec> = (0..20_000)
        .map(|n| {
            JobSpec::new(
                format!("many.job{n}"),
                "t",
                Schedule::Cron { expression: "0 8 * * *".into() },
            )
        })
        .collect();
    let request = Apply { specs: &specs, actor: "t", dry_run: false, prune: false };
    let fresh = || JobId::new(Uuid::now_v7());
    let done = apply(console.store(), request, fresh, None).await.unwrap();
    assert_eq!(done.created.len(), 20_000);
    let done = apply(console.store(), request, fresh, None).await.unwrap();
    assert_eq!(done.unchanged.len(), 20_000);
    let listed = jobs::list(console.store(), &JobFilter::default(), 30_000).await.unwrap();
    assert_eq!(listed.len(), 20_000);
    assert!(listed.iter().all(|job| job.next_fire_at.is_some()));
}

/// A statement for each batch of a thousand, whatever is applied: that is what makes ten thousand jobs
/// a matter of seconds.
#[tokio::test]
async fn ten_thousand_jobs_are_written_in_a_statement_for_each_thousand() {
    let console = Console::new().await;
    let pool = console.db.pool();
    for statement in [
        "CREATE TABLE statements (what text)",
        "CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO statements VALUES (TG_TABLE_NAME || ' ' || TG_OP); RETURN NULL; END $$",
        "CREATE TRIGGER counted AFTER INSERT OR UPDATE ON sexton.jobs
         FOR EACH STATEMENT EXECUTE FUNCTION count_it()",
        "CREATE TRIGGER counted AFTER INSERT ON sexton.operator_actions
         FOR EACH STATEMENT EXECUTE FUNCTION count_it()",
        "CREATE TRIGGER counted AFTER INSERT ON sexton.gaps
         FOR EACH STATEMENT EXECUTE FUNCTION count_it()",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    let jobs = |hour: u32| -> Vec<JobSpec> {
        let spec = |n| {
            let expression = format!("{} {hour} * * *", n % 60);
            JobSpec::new(format!("many.job{n}"), "t", Schedule::Cron { expression })
        };
        (0..10_000).map(spec).collect()
    };
    let apply_them = async |specs: &[JobSpec]| {
        let request = Apply { specs, actor: "t", dry_run: false, prune: false };
        let started = std::time::Instant::now();
        let fresh = || JobId::new(Uuid::now_v7());
        // At midnight: in the hour for which they are planned, their change would leave out those of its first minutes.
        let midnight = Some("2026-01-05T00:00:00Z".parse().unwrap());
        apply(console.store(), request, fresh, midnight).await.unwrap();
        println!("{} jobs applied in {:?}", specs.len(), started.elapsed());
        let counted: Vec<(String, i64)> = sqlx::query_as(
            "WITH gone AS (DELETE FROM statements RETURNING what)
             SELECT what, count(*) FROM gone GROUP BY what ORDER BY what",
        )
        .fetch_all(pool)
        .await
        .unwrap();
        counted.into_iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>()
    };
    // Each write passes by `prune`, which finds nothing to update.
    let created = ["jobs INSERT 10", "jobs UPDATE 1", "operator_actions INSERT 10"];
    assert_eq!(apply_them(&jobs(8)).await, created);
    // And by what a hold had set aside of them, which is nothing.
    let changed = ["gaps INSERT 1", "jobs UPDATE 11", "operator_actions INSERT 10"];
    assert_eq!(apply_them(&jobs(9)).await, changed);
    assert_eq!(apply_them(&jobs(9)).await, [""; 0], "nothing is written where nothing changes");
}

#[tokio::test]
async fn every_field_of_a_job_comes_back_as_it_was_applied() {
    let console = Console::new().await;
    let mut spec = JobSpec::new("a.b", "t", Schedule::None);
    spec.description = "what it does".into();
    spec.target = Some("25".into());
    spec.params = json!({"n": 1e17, "deep": {"list": [1, "x", null, 0.5]}});
    spec.pool = "batch".parse().unwrap();
    spec.overlap = sexton_model::job::Overlap::Skip;
    spec.misfire.limit = 7;
    spec.retry.max_retries = Some(9);
    spec.retry.multiplier = Some(1.5);
    spec.retry.jitter = Some(0.25);
    spec.lease = Some(std::time::Duration::from_millis(7_500));
    spec.lock_key = Some(-1);
    spec.idempotency_template = Some("{job}/{execution_key}".into());
    spec.expectations = Expectations {
        start_within: Some(std::time::Duration::from_secs(5)),
        expect_within: Some(std::time::Duration::from_mins(1)),
        max_runtime: Some(std::time::Duration::from_secs(40)),
        alert_after: Some(2),
        recover_after: Some(3),
        remind_every: Some(std::time::Duration::from_hours(1)),
        severity: Some(sexton_model::incident::Severity::High),
    };
    spec.labels.insert("group".into(), "billing".into());
    spec.timezone = sexton_model::zone::Zone::parse("Australia/Lord_Howe").unwrap();
    spec.dst = sexton_model::cron::Dst::Wall;
    spec.days = Some(sexton_model::cron::DayRule::Either);
    let request = Apply { specs: &[spec], actor: "t", dry_run: false, prune: false };
    let fresh = || JobId::new(Uuid::now_v7());
    apply(console.store(), request, fresh, None).await.unwrap();
    let again = apply(console.store(), request, fresh, None).await.unwrap();
    assert_eq!((again.changed, again.unchanged), (vec![], vec!["a.b".to_owned()]));
}
