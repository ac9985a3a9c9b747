//! Goal: a catalogue is taken as it is meant or refused with everything that is wrong with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder with an executable `bin/tool` and a plain file `notes`.
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

#[test]
fn a_full_entry_and_a_short_one() {
    let text = r#"
        [tasks.report]
        command = ["bin/tool", "--quiet", ""]
        timeout = "45m"
        grace = "30s"
        [tasks."billing.monthly-2"]
        command = ["tool"]
    "#;
    let catalogue = parse(text).unwrap();
    assert_eq!(catalogue.types().collect::<Vec<_>>(), ["billing.monthly-2", "report"]);
    let report = catalogue.get("report").unwrap();
    assert!(report.command.program.is_absolute());
    assert!(report.command.program.ends_with("bin/tool"));
    assert_eq!(report.command.arguments, ["--quiet", ""]);
    assert_eq!(report.timeout, Some(Duration::from_mins(45)));
    assert_eq!(report.grace, Duration::from_secs(30));
    let short = catalogue.get("billing.monthly-2").unwrap();
    assert_eq!(short.command.program, report.command.program);
    assert_eq!((short.timeout, short.grace), (None, Duration::from_secs(5)));
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
[tasks.web]
http = { url = "https://example.org" }
[tasks.nothing]
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
            "line 18: task `empty`: `retries`: unknown key; known are `command`, `timeout` and `grace`",
            "line 20: task `web`: `http`: comes with a later version; this version runs `command` only",
            "line 21: task `nothing`: needs a `command`, such as [\"/opt/prog\", \"--flag\"]",
            "line 22: unknown key `defaults`: only `[tasks.NAME]` is known",
        ]
    );
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
    let said = ["no task type is offered: add `[tasks.NAME]` with a `command`"];
    assert_eq!(parse("").unwrap_err(), said);
    assert_eq!(parse("[tasks]").unwrap_err(), said);
}

#[test]
fn a_file_is_loaded_relative_to_its_own_folder() {
    let folder = folder();
    let path = folder.path().join("tasks.toml");
    fs::write(&path, "[tasks.a]\ncommand = [\"bin/tool\"]\n").unwrap();
    let catalogue = Catalogue::load(&path).unwrap();
    assert_eq!(catalogue.get("a").unwrap().command.program, folder.path().join("bin/tool"));
}

#[test]
fn a_missing_large_or_foreign_file_is_named() {
    let folder = folder();
    let path = folder.path().join("tasks.toml");
    let said = Catalogue::load(&path).unwrap_err().to_string();
    assert!(said.contains("tasks.toml") && said.contains("cannot be read"), "{said}");
    fs::write(&path, vec![b'#'; FILE_MAX_BYTES as usize + 1]).unwrap();
    assert!(Catalogue::load(&path).unwrap_err().to_string().contains("is larger than 1048576"));
    fs::write(&path, [0xff]).unwrap();
    assert!(Catalogue::load(&path).unwrap_err().to_string().contains("is not UTF-8"));
}
