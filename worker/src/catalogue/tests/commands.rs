//! Tests of a command's options.

use super::*;
use crate::executor::command::TaskLimits;
use sexton_outbound::secret::{SecretRef, Value};

#[test]
fn a_command_with_all_its_surroundings() {
    let text = r#"
        [tasks.report]
        command = ["tool"]
        directory = "bin"
        environment = { inherit = ["PATH", "LC_*"], set = { TOKEN = { env = "T" }, MODE = "fast" } }
        limits = { memory = "512 MiB", cpu_time = "10m", open_files = 256 }
        stdin = ""
        [tasks.plain]
        command = ["tool"]
    "#;
    let catalogue = parse(text).unwrap();
    let report = command(&catalogue, "report");
    assert!(report.directory.as_ref().is_some_and(|path| path.ends_with("bin")));
    assert_eq!(report.environment.inherit, ["PATH", "LC_*"]);
    let set = [
        ("MODE", Value::Plain("fast".to_owned())),
        ("TOKEN", Value::Secret(SecretRef::Env("T".to_owned()))),
    ];
    assert_eq!(report.environment.set, set.map(|(name, value)| (name.to_owned(), value)));
    let limits = TaskLimits {
        memory: Some(512 << 20),
        cpu_time: Some(Duration::from_mins(10)),
        open_files: Some(256),
    };
    assert_eq!(report.limits, limits);
    assert_eq!(report.stdin.as_deref(), Some(""));
    assert_eq!(command(&catalogue, "plain").stdin, None);
}

#[test]
fn every_problem_of_a_commands_surroundings_is_reported_in_its_place() {
    let text = r#"
[tasks.a]
command = ["tool"]
directory = "notes"
limits = { memory = "1B", cpu_time = "10", open_files = 3, cores = 2 }
[tasks.b]
command = ["tool"]
user = true
environment = { inherit = ["A B", "DATABASE_URL", "*"], keep = [] }
[tasks.c]
command = ["tool"]
limits = 7
[tasks.c.environment.set]
SEXTON_JOB = "x"
"A=B" = "x"
C = { vault = "x" }
[tasks.d]
command = ["tool"]
environment = { inherit = "PATH", set = [] }
"#;
    assert_eq!(
        parse(text).unwrap_err(),
        [
            "line 4: task `a`: `directory`: \"notes\" is no directory, or cannot be seen",
            "line 5: task `a`: `limits.cores`: unknown key; known are `memory`, `cpu_time` and `open_files`",
            "line 5: task `a`: `limits.memory`: must be 1MiB to 1024GiB",
            "line 5: task `a`: `limits.cpu_time`: \"10\" lacks a unit; write one of d, h, m, s, ms after each number, as in \"30s\"",
            "line 5: task `a`: `limits.open_files`: must be a number, 16 to 1048576",
            "line 8: task `b`: `user`: must be a string",
            "line 9: task `b`: `environment.keep`: unknown key; known are `inherit` and `set`",
            "line 9: task `b`: `environment.inherit`: \"A B\" is no name of a variable, nor the beginning of one with a * at its end",
            "line 9: task `b`: `environment.inherit`: \"DATABASE_URL\" is a setting of the worker, which is not handed on",
            "line 12: task `c`: `limits`: must be a table",
            "line 14: task `c`: `environment.set.SEXTON_JOB`: is a name that Sexton keeps for itself",
            "line 15: task `c`: `environment.set.A=B`: is no name of a variable",
            "line 16: task `c`: `environment.set.C`: must be a string, { env = \"NAME\" } or { file = \"path\" }",
            "line 19: task `d`: `environment.inherit`: must be a list of at most 200 strings",
            "line 19: task `d`: `environment.set`: must be a table",
        ]
    );
}
