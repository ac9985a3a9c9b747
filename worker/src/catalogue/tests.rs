//! Goal: a catalogue is read exactly as written, or refused with all its problems.

mod commands;
mod mails;
mod requests;
mod schemas;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// Creates a folder with an executable `bin/tool` and a plain file `notes`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    let tool = folder.path().join("bin/tool");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("notes"), "").unwrap();
    folder
}

fn parse(text: &str) -> Result<Catalogue, Vec<String>> {
    let folder = folder();
    let search_path = Some(folder.path().join("bin").into_os_string());
    let shown = format!("{}/", folder.path().display());
    Catalogue::parse(text, folder.path(), search_path).map_err(|problems| {
        let errors = CatalogueErrors::new(Path::new("tasks.toml"), problems);
        errors.problems.iter().map(|problem| problem.to_string().replace(&shown, "")).collect()
    })
}

fn command<'c>(catalogue: &'c Catalogue, name: &str) -> &'c CommandTask {
    match &catalogue.get(name).unwrap().kind {
        TaskKind::Command(command) => command,
        other => panic!("no command: {other:?}"),
    }
}

#[test]
fn a_full_entry_and_a_short_one() {
    let text = r#"
        [tasks.report]
        command = ["bin/tool", "--quiet", ""]
        timeout = "45m"
        grace = "30s"
        retry = { max_retries = 7, max_timeouts = 1, max_crashes = 2, delay = "5s", multiplier = 2, max_delay = "1m", jitter = 0.5, permanent = ["exit_3"] }
        [tasks."billing.monthly-2"]
        command = ["tool"]
    "#;
    let catalogue = parse(text).unwrap();
    assert_eq!(catalogue.types().collect::<Vec<_>>(), ["billing.monthly-2", "report"]);
    assert_eq!(catalogue.get("report").unwrap().timeout, Some(Duration::from_mins(45)));
    let report = command(&catalogue, "report");
    assert!(report.line.program.is_absolute());
    assert!(report.line.program.ends_with("bin/tool"));
    assert_eq!(report.line.arguments, ["--quiet", ""]);
    assert_eq!(report.grace, Duration::from_secs(30));
    assert_eq!(catalogue.get("billing.monthly-2").unwrap().timeout, None);
    let retry = RetryOverrides {
        max_retries: Some(7),
        max_timeouts: Some(1),
        max_crashes: Some(2),
        delay: Some(Duration::from_secs(5)),
        multiplier: Some(2.0),
        max_delay: Some(Duration::from_mins(1)),
        jitter: Some(0.5),
        permanent: Some(vec!["exit_3".to_owned()]),
    };
    assert_eq!(catalogue.get("report").unwrap().retry, retry);
    let short = command(&catalogue, "billing.monthly-2");
    assert_eq!(short.line.program, report.line.program);
    assert_eq!(short.grace, Duration::from_secs(5));
    assert_eq!(catalogue.get("Report"), None);
}

#[test]
fn every_problem_is_reported_with_its_line_task_and_field() {
    let text = r#"
[tasks.missing]
command = ["/no/such/program"]
[tasks.folder]
command = ["./bin"]
[tasks.plain]
command = ["./notes"]
[tasks.nowhere]
command = ["no-such-tool"]
[tasks.shell]
command = "tool --flag"
timeout = 5
[tasks."bad name"]
command = ["tool", 7]
[tasks.empty]
command = []
grace = "1h"
retries = 3
[tasks.later]
sql = "SELECT 1"
[tasks.two]
command = ["tool"]
sql = "SELECT 1"
[tasks.nothing]
[tasks.retries]
command = ["tool"]
retry = { max_retries = -1, max_crashes = 0, delay = "2h", multiplier = "2", permanent = ["lost", 3], colour = 1 }
[tasks.once]
command = ["tool"]
retry = "never"
[defaults]
"#;
    assert_eq!(
        parse(text).unwrap_err(),
        [
            "line 3: task `missing`: `command`: the program /no/such/program does not exist",
            "line 5: task `folder`: `command`: the program bin is not a file",
            "line 7: task `plain`: `command`: the program notes is not executable by this user",
            "line 9: task `nowhere`: `command`: no program `no-such-tool` in PATH: install it, or give its absolute path",
            "line 11: task `shell`: `command`: must be a list such as [\"/opt/prog\", \"--flag\"]; there is no shell",
            "line 12: task `shell`: `timeout`: must be a duration in quotes, such as \"45m\" or \"1h30m\"",
            "line 13: task `bad name`: a task type's name is 1 to 100 of A-Z a-z 0-9 . _ -",
            "line 14: task `bad name`: `command`: every word must be a string",
            "line 16: task `empty`: `command`: must have 1 to 256 words: the program first",
            "line 17: task `empty`: `grace`: must be 0s to 10m",
            "line 18: task `empty`: `retries`: unknown key; known are `command`, `grace`, `user`, `directory`, `environment`, `limits`, `stdin`, `timeout`, `retry` and `params_schema`",
            "line 23: task `two`: `sql`: a task type is run by one executor: `command` or `sql`",
            "line 24: task `nothing`: needs what it runs: `command = [\"/opt/prog\", \"--flag\"]`, `http`, `sql`, `email` or `noop`",
            "line 27: task `retries`: `retry.max_retries`: must be a whole number from 0 to 1000",
            "line 27: task `retries`: `retry.max_crashes`: must be a whole number from 1 to 1000",
            "line 27: task `retries`: `retry.multiplier`: must be a number from 1 to 100",
            "line 27: task `retries`: `retry.permanent`: \"lost\" says nothing of the task: nobody saw its end; write max_crashes = 1 instead",
            "line 27: task `retries`: `retry.permanent`: every class must be a string",
            "line 27: task `retries`: `retry.colour`: unknown key; known are `max_retries`, `max_timeouts`, `max_crashes`, `delay`, `multiplier`, `max_delay`, `jitter` and `permanent`",
            "line 27: task `retries`: `retry.delay`: is longer than `max_delay`, which is 1h unless given",
            "line 30: task `once`: `retry`: must be a table such as { max_retries = 5 }",
            "line 31: unknown key `defaults`: only `[tasks.NAME]` is known",
        ]
    );
}

#[test]
fn nothing_is_run_by_saying_so() {
    let kind = |text: &str| {
        let catalogue = parse(&format!("[tasks.a]\n{text}"))?;
        Ok::<_, Vec<String>>(catalogue.get("a").unwrap().kind.clone())
    };
    assert_eq!(kind("noop = true\ntimeout = \"5s\""), Ok(TaskKind::Noop));
    for (text, part) in [
        ("noop = false", "must be `true`"),
        ("noop = \"yes\"", "must be `true`"),
        ("noop = true\nsql = \"call p()\"", "one executor"),
        ("noop = true\ngrace = \"5s\"", "unknown key; known are `noop`, `timeout`"),
    ] {
        let problems = kind(text).unwrap_err();
        assert!(problems.iter().any(|problem| problem.contains(part)), "{text}: {problems:?}");
    }
}

#[test]
fn a_statement_is_taken_with_its_limits_and_refused_with_what_is_wrong() {
    let sql = |text: &str| {
        let catalogue = parse(&format!("[tasks.a]\n{text}"))?;
        let TaskKind::Sql(task) = catalogue.get("a").unwrap().kind.clone() else {
            panic!("no sql")
        };
        Ok::<_, Vec<String>>(task)
    };
    let short = sql("sql = \"select refresh_usage($1)\"").unwrap();
    assert_eq!(short.statement, "select refresh_usage($1)");
    assert_eq!((short.lock_timeout, short.statement_timeout), (Duration::from_secs(5), None));
    let full =
        sql("sql = \"call p()\"\nlock_timeout = \"100ms\"\nstatement_timeout = \"2m\"").unwrap();
    assert_eq!(full.lock_timeout, Duration::from_millis(100));
    assert_eq!(full.statement_timeout, Some(Duration::from_mins(2)));
    for (text, part) in [
        ("sql = 7", "must be a statement in quotes"),
        ("sql = \" -- no\"", "holds no statement"),
        ("sql = \"Commit\"", "`commit` would change the transaction"),
        ("sql = \"call p()\"\ngrace = \"5s\"", "unknown key; known are `sql`, `lock_timeout`"),
        ("sql = \"call p()\"\nlock_timeout = \"2h\"", "must be 1ms to 1h"),
    ] {
        let problems = sql(text).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(part), "{text}: {problems:?}");
    }
}

#[test]
fn a_damaged_file_is_reported_by_line() {
    let problems = parse("[tasks.a]\ncommand = [\"tool\"\n[tasks.b\n").unwrap_err();
    assert!(!problems.is_empty());
    assert!(problems.iter().all(|problem| problem.starts_with("line ")), "{problems:?}");
    let twice = "[tasks.a]\ncommand = [\"tool\"]\n[tasks.a]\ncommand = [\"tool\"]\n";
    assert!(parse(twice).unwrap_err()[0].starts_with("line 3"), "{:?}", parse(twice));
}

#[test]
fn an_empty_catalogue_is_refused() {
    let problems = ["no task type is offered: add `[tasks.NAME]` with what it runs"];
    assert_eq!(parse("").unwrap_err(), problems);
    assert_eq!(parse("[tasks]").unwrap_err(), problems);
}

#[test]
fn a_file_is_loaded_relative_to_its_own_folder() {
    let folder = folder();
    let path = folder.path().join("tasks.toml");
    fs::write(&path, "[tasks.a]\ncommand = [\"bin/tool\"]\n").unwrap();
    let catalogue = Catalogue::load(&path).unwrap();
    assert_eq!(command(&catalogue, "a").line.program, folder.path().join("bin/tool"));
}

#[test]
fn a_missing_large_or_foreign_file_is_named() {
    let folder = folder();
    let path = folder.path().join("tasks.toml");
    let message = Catalogue::load(&path).unwrap_err().to_string();
    assert!(message.contains("tasks.toml") && message.contains("cannot be read"), "{message}");
    fs::write(&path, vec![b'#'; FILE_MAX_BYTES as usize + 1]).unwrap();
    assert!(Catalogue::load(&path).unwrap_err().to_string().contains("is larger than 1048576"));
    fs::write(&path, [0xff]).unwrap();
    assert!(Catalogue::load(&path).unwrap_err().to_string().contains("is not UTF-8"));
}
