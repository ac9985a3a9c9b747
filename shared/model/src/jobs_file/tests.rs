//! Whole files: the accepted ones, and the messages of refused ones.

mod heartbeat;
mod when;

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cron::{DayRule, Dst};
use crate::heartbeat::{HeartbeatEvent, HeartbeatUrl, JobHeartbeat};
use crate::job::{
    Exclusions, Expectations, MAX_EXCLUSIONS, Misfire, MisfirePolicy, OnLocked, Overlap,
    PastPolicy, RetryOverrides, RowLock, Schedule, ScheduleConstraints,
};
use crate::moment::Moment;
use crate::pool::PoolName;
use crate::secret_ref::SecretRef;
use crate::zone::Zone;

/// Parses the one job of a file that has `lines` besides its name and task.
fn one(lines: &str) -> JobSpec {
    let text = format!("[[job]]\nname = \"a.b\"\ntask = \"t\"\n{lines}\n");
    parse("jobs.toml", &text).unwrap_or_else(|problems| panic!("{problems:?}")).remove(0)
}

/// Returns the problems of a file, as people see them.
fn problems(text: &str) -> Vec<String> {
    parse("jobs.toml", text).unwrap_err().iter().map(ToString::to_string).collect()
}

/// Returns the problems of the fourth line of a job.
fn refused(line: &str) -> Vec<String> {
    problems(&format!("[[job]]\nname = \"a.b\"\ntask = \"t\"\n{line}\n"))
}

#[test]
fn a_full_job_is_read_field_by_field() {
    let text = r#"
        [[job]]
        name = "billing.monthlyInvoices"
        description = "Invoices of the month before."
        target = 25
        schedule = "0 1 1 * *"
        timezone = "Europe/Vienna"
        dst = "skip"
        days = "both"
        start = 2026-01-01T00:00:00
        end = "2026-12-31T23:00:00Z"
        exclude = ["2026-12-24..2026-12-26", 2026-08-15]
        jitter = "10m"
        max_runs = 5
        task = "report"
        params = { report = "invoices", since = 2025-12-01, deep = { list = [1, 2.5, true] } }
        pool = "batch"
        overlap = "skip"
        misfire = { policy = "fire_all", window = "1h", limit = 7, rate = "10/m" }
        retry = { max_retries = 3, max_timeouts = 2, max_crashes = 1, delay = "30s", multiplier = 2, max_delay = "1h", jitter = 0.1, permanent = ["exit_3", "http_404"] }
        timeout = "45m"
        lease = "20s"
        lock = { row = "billing.monthlyInvoices", at_most = "1h", at_least = "30s" }
        on_locked = "wait"
        idempotency_key = "inv-{job}-{execution_key}"
        expect_within = "2h"
        heartbeat = { url = { env = "HC_INVOICES" }, on = ["failure", "success"] }
        stale_after = "3h"
        pause_after_failures = 5
        verify = "charge-was-made"
        paused = true
        labels = { team = "billing" }
    "#;
    let seconds = |s| Some(Duration::from_secs(s));
    let expected = JobSpec {
        name: "billing.monthlyInvoices".into(),
        description: "Invoices of the month before.".into(),
        target: Some("25".into()),
        schedule: Schedule::Cron { expression: "0 1 1 * *".into() },
        timezone: Zone::parse("Europe/Vienna").unwrap(),
        dst: Dst::Skip,
        days: Some(DayRule::Both),
        constraints: ScheduleConstraints {
            start: Some(Moment::parse("2026-01-01T00:00:00").unwrap()),
            end: Some(Moment::parse("2026-12-31T23:00:00Z").unwrap()),
            exclude: Exclusions::from_texts(&["2026-08-15", "2026-12-24..2026-12-26"]).unwrap(),
            jitter: Some(Duration::from_mins(10)),
            max_runs: Some(5),
        },
        past: PastPolicy::Refuse,
        paused: true,
        task_type: "report".into(),
        params: json!({
            "report": "invoices", "since": "2025-12-01", "deep": {"list": [1, 2.5, true]}
        }),
        pool: PoolName::new("batch").unwrap(),
        overlap: Overlap::Skip,
        misfire: Misfire {
            policy: MisfirePolicy::FireAll,
            window: Duration::from_hours(1),
            limit: 7,
            rate: "10/m".parse().ok(),
        },
        retry: RetryOverrides {
            max_retries: Some(3),
            max_timeouts: Some(2),
            max_crashes: Some(1),
            delay: seconds(30),
            multiplier: Some(2.0),
            max_delay: seconds(3_600),
            jitter: Some(0.1),
            permanent: Some(vec!["exit_3".into(), "http_404".into()]),
        },
        timeout: Duration::from_mins(45),
        lease: seconds(20),
        lock_key: None,
        lock_row: Some(RowLock {
            name: "billing.monthlyInvoices".into(),
            at_most: Duration::from_hours(1),
            at_least: Duration::from_secs(30),
        }),
        on_locked: OnLocked::Wait,
        idempotency_template: Some("inv-{job}-{execution_key}".into()),
        expectations: Expectations { expect_within: seconds(7_200), ..Expectations::default() },
        heartbeat: Some(JobHeartbeat {
            url: HeartbeatUrl::Secret(SecretRef::Env("HC_INVOICES".into())),
            on: vec![HeartbeatEvent::Success, HeartbeatEvent::Failure],
            allow_private: false,
        }),
        stale_after: seconds(10_800),
        pause_after_failures: Some(5),
        verify_task: Some("charge-was-made".to_owned()),
        flow: Vec::new(),
        labels: [("team".to_owned(), "billing".to_owned())].into(),
    };
    assert_eq!(parse("jobs.toml", text), Ok(vec![expected]));
}

#[test]
fn what_is_not_said_is_at_its_default() {
    assert_eq!(one(""), JobSpec::new("a.b", "t", Schedule::None));
    assert_eq!(parse("jobs.toml", ""), Ok(vec![]));
}

#[test]
fn a_job_fires_by_cron_by_period_once_or_by_trigger_only() {
    let at = Moment::parse("2025-12-15T15:00:00Z").unwrap();
    for (lines, schedule) in [
        ("", Schedule::None),
        ("schedule = \"@daily\"", Schedule::Cron { expression: "@daily".into() }),
        ("every = \"1m30s\"", Schedule::every(Duration::from_secs(90))),
        ("at = \"2025-12-15T16:00:00+01:00\"", Schedule::At { at }),
        (
            "every = \"15m\"\nphase = \"5m\"",
            Schedule::Every { period: Duration::from_mins(15), phase: Duration::from_mins(5) },
        ),
        ("at = 2025-12-15T15:00:00", Schedule::At { at }),
        ("at = 2025-12-15T15:00:00\ntimezone = \"Etc/UTC\"", Schedule::At { at }),
    ] {
        assert_eq!(one(lines).schedule, schedule, "{lines}");
    }
}

#[test]
fn all_problems_of_a_file_are_reported_at_once_each_in_its_place() {
    let text = r#"
[[job]]
name = "billing.run"
task = "report"
schedule = "0 1 1 * *"
timezone = "Europe/Viena"
lease = "500ms"

[[job]]
task = "re port"
every = "10ms"

[[job]]
name = "billing.run"
task = "x"
retry = { delay = "2h", max_retries = -1 }
[job.params]
ok = 1
bad = [1.5, { deep = inf }]

[[jobs]]
"#;
    assert_eq!(
        problems(text),
        [
            r#"jobs.toml:6: job "billing.run": timezone: "Europe/Viena" is not a time zone; did you mean Europe/Vienna?"#,
            r#"jobs.toml:7: job "billing.run": lease: 500ms is not between 1s and 1h"#,
            "jobs.toml:9: name: is missing; every job needs one",
            "jobs.toml:10: task: holds ' '; letters, digits, '.', '_' and '-' are allowed",
            "jobs.toml:11: every: 10ms is not between 1s and 366d",
            r#"jobs.toml:14: job "billing.run": name: this name is already used by the job in line 3"#,
            r#"jobs.toml:16: job "billing.run": retry.max_retries: -1 is not between 0 and 1000"#,
            r#"jobs.toml:16: job "billing.run": retry.delay: is longer than the default max_delay of 1h; set a larger max_delay"#,
            r#"jobs.toml:19: job "billing.run": params.bad[1].deep: inf has no counterpart in JSON"#,
            r#"jobs.toml:21: jobs: is not a field; did you mean "job"?"#,
        ]
    );
}

#[test]
fn a_syntax_error_names_line_and_column() {
    let found = problems("[[job]]\nname = \"a\"\ntask = = 1\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("jobs.toml:3: column 8: "), "{found:?}");
}

#[test]
fn each_field_is_refused_in_words_that_say_what_to_write() {
    for (line, problem) in [
        ("schedule = \"* * * *\"", "schedule: "),
        ("schedule = 5", "schedule: must be text in quotes, not a whole number"),
        ("every = 15", "every: must be a duration in quotes, such as \"30s\""),
        ("every = \"15\"", "every: \"15\" lacks a unit"),
        ("at = \"tomorrow\"", "at: \"tomorrow\" is not an instant"),
        ("at = 2025-12-15", "at: \"2025-12-15\" is not an instant"),
        ("at = 5", "at: must be an instant, not a whole number"),
        ("every = \"1h\"\nat = 2025-12-15T15:00:00Z", "at: the job has every and at"),
        (
            "timezone = \"utc\"",
            "timezone: \"utc\" is not a time zone; did you mean UTC or Etc/UTC?",
        ),
        (
            "every = \"1h\"\ntimezone = \"Europe/Vienna\"",
            "timezone: has a meaning only with schedule, with exclude, or with at, start or end without an offset",
        ),
        ("every = \"1h\"\ndst = \"skip\"", "dst: has a meaning only with schedule"),
        ("every = \"1h\"\ndays = \"both\"", "days: has a meaning only with schedule"),
        (
            "schedule = \"@daily\"\ndays = \"or\"",
            "days: \"or\" is not known; write one of both, either",
        ),
        (
            "schedule = \"@daily\"\ndst = \"often\"",
            "dst: \"often\" is not known; write one of vixie, skip, wall",
        ),
        (
            "overlap = \"never\"",
            "overlap: \"never\" is not known; write one of allow, skip, queue, replace",
        ),
        ("misfire = \"skip\"", "misfire: must be a table, not text"),
        ("paused = \"yes\"", "paused: must be true or false, not text"),
        ("suspend = true", "suspend: is not a field; write paused = true"),
        ("misfire = { policy = \"all\" }", "misfire.policy: \"all\" is not known"),
        ("misfire = { limit = 5 }", "misfire.limit: has a meaning only with"),
        (
            "misfire = { policy = \"fire_all\", limit = 1001 }",
            "misfire.limit: 1001 is not between 1 and 100",
        ),
        (
            "misfire = { polcy = \"skip\" }",
            "misfire.polcy: is not a field; did you mean \"policy\"?",
        ),
        ("retry = { multiplier = 0.5 }", "retry.multiplier: is not between 1 and 100"),
        ("retry = { multiplier = nan }", "retry.multiplier: is not between 1 and 100"),
        ("retry = { jitter = 2 }", "retry.jitter: is not between 0 and 1"),
        ("retry = { delay = \"5m\", max_delay = \"1m\" }", "retry.delay: is longer than max_delay"),
        ("retry = { max_timeouts = 0 }", "retry.max_timeouts: 0 is not between 1 and 1000"),
        ("retry = { max_crashes = 0 }", "retry.max_crashes: 0 is not between 1 and 1000"),
        (
            "retry = { permanent = \"exit_3\" }",
            "retry.permanent: must be a list such as [\"exit_3\"], not text",
        ),
        (
            "retry = { permanent = [3] }",
            "retry.permanent: a class must be text in quotes, not a whole number",
        ),
        ("retry = { permanent = [\"a\", \"a\"] }", "retry.permanent: \"a\" stands there twice"),
        (
            "retry = { permanent = [\"lost\"] }",
            "retry.permanent: \"lost\" says nothing of the task: nobody saw its end; write max_crashes = 1 instead",
        ),
        ("timeout = \"31d\"", "timeout: 31d is not between 1s and 30d"),
        ("timeout = \"0s\"", "timeout: 0s is not between 1s and 30d"),
        ("lease = \"2h\"", "lease: 2h is not between 1s and 1h"),
        ("lock_key = \"1301\"", "lock_key: must be a whole number, not text"),
        ("lock_key = 9223372036854775808", "lock_key: 9223372036854775808 is not between"),
        (
            "lock_key = 5\nlock = { row = \"a\", at_most = \"1h\" }",
            "lock: stands beside lock_key; a job holds one lock",
        ),
        ("on_locked = \"skip\"", "on_locked: has a meaning only with lock_key or lock"),
        (
            "lock_key = 5\non_locked = \"queue\"",
            "on_locked: \"queue\" is not known; write one of skip, wait",
        ),
        ("lock = { row = \"a\" }", "lock.at_most: is missing; write lock ="),
        ("lock = { at_most = \"1h\" }", "lock.row: is missing; write lock ="),
        ("lock = { row = \"\", at_most = \"1h\" }", "lock.row: is empty"),
        ("lock = { row = \"a\", at_most = \"9s\" }", "lock.at_most: 9s is not between 10s and 30d"),
        (
            "lock = { row = \"a\", at_most = \"1m\", at_least = \"61s\" }",
            "lock.at_least: 1m1s is longer than at_most = 1m",
        ),
        ("lock = { row = \"a\", at_most = \"1m\", atMost = 1 }", "lock.atMost: is not a field"),
        ("pool = \"Batch\"", "pool: \"Batch\" is not a pool name"),
        ("target = 1.5", "target: must be text in quotes, not a number"),
        ("target = \"\"", "target: is empty"),
        ("idempotency_key = \"{job}\"", "idempotency_key: must contain {execution_key}"),
        (
            "idempotency_key = \"{execution_key}-{day}\"",
            "idempotency_key: only {job}, {execution_key} and placeholders in {{ }} are replaced",
        ),
        ("description = \"a\\u0000b\"", "description: holds a NUL character"),
        ("params = 5", "params: must be a table, not a whole number"),
        ("params = { a = \"\\u0000\" }", "params.a: holds a NUL character"),
        ("params = { \"\\u0000\" = 1 }", "\"params.\\0\": its name holds a NUL character"),
        ("params = { a = [{ b = 1e999 }] }", "params.a[0].b: 1e999 has no counterpart in JSON"),
        ("params = { a = 9223372036854775808 }", "params.a: does not fit into 64 bits"),
        ("labels = { team = 5 }", "labels.team: must be text in quotes, not a whole number"),
        ("labels = { \"\" = \"x\" }", "labels.: a label needs a name"),
        (
            "labels = { \"$serde_json::private::RawValue\" = \"x\" }",
            "labels.$serde_json::private::RawValue: no program could",
        ),
        (
            "params = { a = [{ \"$serde_json::private::RawValue\" = 1 }] }",
            "params: hold the name $serde_json",
        ),
        ("on_success = [\"x\"]", "on_success: is not supported yet"),
        ("priority = 5", "priority: is not supported yet"),
        ("command = [\"rm\"]", "command: is not a field; a job names a task type"),
        ("shedule = \"* * * * *\"", "shedule: is not a field; did you mean \"schedule\"?"),
        ("colour = \"red\"", "colour: is not a field; the fields are name, description"),
        ("name.first = 1", ""),
    ] {
        let found = refused(line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        let place = if problem.is_empty() { "jobs.toml:" } else { "jobs.toml:4: job \"a.b\": " };
        let place = place.replace(":4:", if line.contains('\n') { ":5:" } else { ":4:" });
        assert!(found[0].starts_with(&format!("{place}{problem}")), "{line}: {found:?}");
    }
}

#[test]
fn sizes_are_limited() {
    for (line, problem) in [
        (format!("params = {{ a = \"{}\" }}", "x".repeat(262_137)), "has 262145 bytes as JSON"),
        (format!("description = \"{}\"", "x".repeat(2_001)), "has 2001 bytes; 2000 at most"),
    ] {
        assert!(refused(&line)[0].contains(problem), "{problem}");
    }
    assert_eq!(
        one(&format!("params.a = \"{}\"", "x".repeat(262_136))).params.to_string().len(),
        262_144
    );
    let many = "[[job]]\n".repeat(MAX_JOBS + 1);
    assert_eq!(problems(&many), ["jobs.toml: the file has 20001 jobs; 20000 at most"]);
    let long = "#".repeat(MAX_FILE_BYTES + 1);
    assert_eq!(problems(&long), ["jobs.toml: the file has 4194305 bytes; 4194304 at most"]);
}

#[test]
fn of_very_many_problems_only_the_number_is_reported() {
    let found = parse("jobs.toml", &"[[job]]\n".repeat(MAX_JOBS)).unwrap_err();
    assert_eq!(found.len(), MAX_PROBLEMS + 1);
    let last = &found[MAX_PROBLEMS];
    assert_eq!(last.to_string(), "jobs.toml: and 39000 more problems");
    assert_eq!(last.unlisted, 39_000);
    assert!(found[..MAX_PROBLEMS].iter().all(|problem| problem.unlisted == 0));
}

#[test]
fn a_hostile_name_is_shortened_and_escaped_before_it_reaches_a_terminal() {
    let found =
        problems(&format!("[[job]]\nname = \"\\u001b[2J{}\"\ntask = \"t\"\n", "x".repeat(500)));
    assert!(found[0].len() < 250 && !found[0].contains('\u{1b}'), "{found:?}");
}

#[test]
fn the_largest_file_is_read_in_its_order() {
    let job = |n| format!("[[job]]\nname = \"j{n}\"\ntask = \"t\"\nevery = \"1m\"\n");
    let text = (0..MAX_JOBS).map(job).collect::<Vec<_>>().concat();
    let jobs = parse("jobs.toml", &text).unwrap();
    assert_eq!(jobs.len(), MAX_JOBS);
    assert!(jobs.iter().enumerate().all(|(n, job)| job.name == format!("j{n}")));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(lines in prop::collection::vec(
        prop_oneof![
            "\\[\\[job\\]\\]",
            "(name|task|every|at|params|retry|labels|target|schedule) = (\"[a-z0-9*: ]{0,8}\"|[0-9.e-]{1,6}|\\{[a-z =0-9,\"]{0,12}\\})",
            "\\PC{0,20}",
        ],
        0..12,
    )) {
        if let Err(problems) = parse("jobs.toml", &lines.join("\n")) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.line.is_some_and(|line| line <= lines.len())));
        }
    }
}
