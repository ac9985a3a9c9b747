//! The command line of the programs that are configured only by the environment.
//!
//! They accept `--help` and `--version`; anything else is refused rather than ignored, because a person who writes
//! `worker --slots 4` expects four slots.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use crate::fault;
use crate::settings::{Program, help};

/// Exit status for wrong arguments and wrong settings.
pub const EXIT_USAGE: u8 = 2;

/// Handles the command line. `arguments` come without the program's own name.
///
/// `Some`: the program ends with that status. `None`: the command line was empty, the program runs.
pub fn handle(program: Program, arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    // The program ignores a failed write, because nobody reads a closed terminal.
    let answer = answer(program, arguments).or_else(|| {
        let wrong = fault::arm().err()?;
        Some(Answer::Refused(format!("{}: {wrong}\n", program.name())))
    });
    match answer? {
        Answer::Text(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            Some(ExitCode::SUCCESS)
        }
        Answer::Refused(text) => {
            let _ = std::io::stderr().write_all(text.as_bytes());
            Some(ExitCode::from(EXIT_USAGE))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Text(String),
    Refused(String),
}

fn answer(program: Program, arguments: impl IntoIterator<Item = OsString>) -> Option<Answer> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let is_one_of = |names: [&str; 2]| {
        arguments.iter().any(|argument| names.iter().any(|name| argument == name))
    };
    let first = arguments.first()?;
    let known = ["--help", "-h", "--version", "-V"];
    if let Some(unknown) =
        arguments.iter().find(|argument| !known.iter().any(|name| argument == name))
    {
        let name = program.name();
        let shown: String = unknown.to_string_lossy().escape_debug().take(60).collect();
        return Some(Answer::Refused(format!(
            "{name}: unknown argument `{shown}`; settings are environment variables, `{name} \
             --help` lists them\n"
        )));
    }
    if is_one_of(["--help", "-h"]) {
        return Some(Answer::Text(help(program)));
    }
    debug_assert!(first == "--version" || first == "-V");
    Some(Answer::Text(format!("{} {}\n", program.name(), env!("CARGO_PKG_VERSION"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(arguments: &[&str]) -> Option<Answer> {
        answer(Program::Worker, arguments.iter().map(OsString::from))
    }

    #[test]
    fn without_arguments_the_program_runs() {
        assert_eq!(answered(&[]), None);
    }

    #[test]
    fn help_and_version_are_told() {
        assert_eq!(answered(&["--help"]), Some(Answer::Text(help(Program::Worker))));
        assert_eq!(answered(&["-V", "-h"]), Some(Answer::Text(help(Program::Worker))));
        let version = format!("worker {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(answered(&["--version"]), Some(Answer::Text(version)));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for arguments in [&["--slots", "4"][..], &["--help", "--slots"], &["--version", "--slots"]]
        {
            let Some(Answer::Refused(text)) = answered(arguments) else {
                panic!("{arguments:?} was taken");
            };
            assert!(text.contains("unknown argument `--slots`"), "{text}");
        }
    }
}
