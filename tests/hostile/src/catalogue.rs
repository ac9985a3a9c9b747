//! A task catalogue.

use std::path::Path;

use sexton_model::duration;
use sexton_worker::catalogue::{Catalogue, GRACE_MAX, MAX_PROBLEMS, Problem, TIMEOUT_MAX};

use crate::{said, toml_text};

/// Two texts of the input at their longest, escaped, and what is said about them.
const MAX_SAID_BYTES: usize = 2_800;
/// An entry with three things wrong, under a name that no input of a sane length has.
const WRONG: &str = "\n[tasks.\"added by the test\"]\ncommand = \"no list\"\ngrace = 5\n";

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match parse(&text) {
        Ok(catalogue) => {
            check_limits(&catalogue);
            written_and_read_again(&catalogue);
        }
        Err(problems) => check_problems(&problems, &text),
    }
    all_at_once(&text);
}

fn parse(text: &str) -> Result<Catalogue, Vec<Problem>> {
    // Programs that every system has.
    Catalogue::parse(text, Path::new("/bin"), Some("/bin:relative".into()))
}

fn check_limits(catalogue: &Catalogue) {
    for name in catalogue.types() {
        assert!(sexton_model::ticket::is_task_type(name));
        let entry = catalogue.get(name).expect("a listed type");
        assert!(entry.command.program.is_absolute());
        assert!(entry.command.arguments.iter().all(|word| !word.contains('\0')));
        assert!(entry.timeout.is_none_or(|timeout| timeout <= TIMEOUT_MAX));
        assert!(entry.grace <= GRACE_MAX);
    }
    assert!(catalogue.types().len() > 0);
}

fn written_and_read_again(catalogue: &Catalogue) {
    let entry = |name| {
        let entry = catalogue.get(name).expect("a listed type");
        let program = entry.command.program.to_str().expect("it came out of text").to_owned();
        let words = [program].into_iter().chain(entry.command.arguments.iter().cloned());
        let words: Vec<_> = words.map(|word| toml_text::quoted(&word)).collect();
        let head =
            format!("[tasks.{}]\ncommand = [{}]\n", toml_text::quoted(name), words.join(", "));
        let grace = format!("grace = \"{}\"\n", duration::format(entry.grace));
        let timeout = entry.timeout.map(duration::format);
        let timeout = timeout.map_or(String::new(), |timeout| format!("timeout = \"{timeout}\"\n"));
        head + &timeout + &grace
    };
    let text: String = catalogue.types().map(entry).collect();
    assert_eq!(parse(&text).as_ref(), Ok(catalogue), "written as\n{text}");
}

fn check_problems(problems: &[Problem], text: &str) {
    assert!((1..=MAX_PROBLEMS + 1).contains(&problems.len()));
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        said::check(&problem.to_string(), MAX_SAID_BYTES);
        assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem}");
    }
}

/// A wrong entry at the end takes nothing away from what is told of the rest, and is told itself.
fn all_at_once(text: &str) {
    let before = parse(text).err().unwrap_or_default();
    let Err(after) = parse(&format!("{text}{WRONG}")) else { panic!("a wrong entry was accepted") };
    // Without a syntax the rest has no meaning, and a full list has no room.
    let of_an_entry = |problem: &&Problem| problem.task.is_some();
    let all_placed = before.iter().chain(&after).all(|problem| of_an_entry(&problem));
    if !all_placed || before.len() + 3 > MAX_PROBLEMS {
        return;
    }
    for problem in &before {
        assert!(after.contains(problem), "no longer told: {problem}");
    }
    let told = after.iter().filter(|problem| problem.task.as_deref() == Some("added by the test"));
    assert!(told.count() >= 3, "not all is told of the last entry: {after:#?}");
}
