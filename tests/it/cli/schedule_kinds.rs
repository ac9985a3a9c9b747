//! Kinds and terms of schedules as people write them: what is refused, shown and changed.

use serde_json::json;

use super::Console;

const BAD: &str = r#"
[[job]]
name = "a.twice"
task = "t"
at = "2026-10-25T02:30:00"
timezone = "Europe/Vienna"

[[job]]
name = "a.end"
task = "t"
schedule = "0 8 * * *"
start = "2027-01-01T00:00:00Z"
end = "2026-01-01T00:00:00Z"
exclude = ["2026-02-30", "2026-12-25"]
max_runs = 0

[[job]]
name = "a.window"
task = "t"
every = "1d"
phase = "1d"
misfire = { window = "6h" }
timezone = "Europe/Viena"
"#;

#[tokio::test]
async fn apply_reports_every_problem_of_kinds_and_terms_at_once_and_applies_nothing() {
    let console = Console::with_jobs().await;
    let before = console.items(&["jobs", "list"]).await;
    let file = console.file("bad.toml", BAD);
    let ended = console.run(&["jobs", "apply", "-f", &file]).await.expect(1);
    for part in [
        "bad.toml:5: job \"a.twice\": at: 2026-10-25T02:30:00 is there twice in Europe/Vienna",
        "write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
        "bad.toml:13: job \"a.end\": end: 2026-01-01T00:00:00Z is before start",
        "bad.toml:14: job \"a.end\": exclude: \"2026-02-30\" is not a date",
        "bad.toml:15: job \"a.end\": max_runs: 0 is not between",
        "bad.toml:21: job \"a.window\": phase: 1d is not less than every = 1d",
        "bad.toml:22: job \"a.window\": misfire.window: 6h is shorter than every = 1d",
        "did you mean Europe/Vienna?",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert_eq!(console.items(&["jobs", "list"]).await, before);
}

#[tokio::test]
async fn a_dry_run_shows_terms_and_their_changes() {
    let console = Console::new().await;
    let job = |more: &str| {
        let file = "[[job]]\nname = \"a.b\"\ntask = \"t\"\nevery = \"1h\"\nphase = \"5m\"\n";
        console.file("jobs.toml", &format!("{file}{more}"))
    };
    let none = job("");
    console.json(&["jobs", "apply", "-f", &none]).await;
    let terms = job(
        "timezone = \"Europe/Vienna\"\nstart = \"2026-01-01T00:00:00\"\nend = \"2090-01-01T00:00:00\"\n\
         exclude = [\"2026-12-25\", \"2026-12-24\"]\njitter = \"10m\"\nmax_runs = 3\n",
    );
    let plan = console.json(&["jobs", "apply", "-f", &terms, "--dry-run"]).await;
    let changes = &plan["changed"][0]["changes"];
    assert_eq!(changes["exclude"], json!({"from": [], "to": ["2026-12-24..2026-12-25"]}));
    assert_eq!(changes["jitter_ms"], json!({"from": null, "to": 600_000}));
    assert_eq!(changes["start_at"]["to"], "2026-01-01T00:00:00");
    console.json(&["jobs", "apply", "-f", &terms]).await;
    let again = console.json(&["jobs", "apply", "-f", &terms]).await;
    assert_eq!(again["unchanged"], json!(["a.b"]));
    let shown = console.json(&["jobs", "show", "a.b"]).await;
    assert_eq!(shown["schedule_expression"], "1h+5m");
    assert_eq!((&shown["max_runs"], &shown["runs_used"]), (&json!(3), &json!(0)));
    // No more firings are promised than may run.
    assert_eq!(shown["next_firings"].as_array().unwrap().len(), 3);
    let shown = console.run(&["jobs", "show", "a.b"]).await.expect(0).stdout;
    for part in ["2026-12-24..2026-12-25", "by up to 10m", "0 of 3 claimed", "2090-01-01T00:00:00"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn a_past_instant_is_refused_by_the_databases_clock_unless_it_is_to_run() {
    let console = Console::new().await;
    let job = |more: &str| {
        let job = "[[job]]\nname = \"a.once\"\ntask = \"t\"\nat = \"2020-01-01T09:00:00\"\n";
        console.file("once.toml", &format!("{job}timezone = \"Europe/Vienna\"\n{more}"))
    };
    let ended = console.run(&["jobs", "apply", "-f", &job("")]).await.expect(1);
    let message = "once.toml:2: job \"a.once\": at: 2020-01-01T09:00:00 is past; it is 20";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    let done = console.json(&["jobs", "apply", "-f", &job("past = \"run\"\n")]).await;
    assert_eq!(done["created"], json!(["a.once"]));
    let again = console.json(&["jobs", "apply", "-f", &job("")]).await;
    assert_eq!(again["unchanged"], json!(["a.once"]));
}
