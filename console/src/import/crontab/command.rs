//! What an entry of a crontab runs, as a program of the catalogue.

use super::super::Program;
use super::super::shell::{End, read};
use super::variables::Variables;

/// The longest command, and the longest input, in bytes: what a catalogue takes.
const MAX_COMMAND_BYTES: usize = 32 * 1024;

/// A command with its standard input, as cron reads it: an unescaped `%` ends the command; behind it,
/// each is the end of a line of the input. `\%` is a `%` everywhere.
pub(super) fn split_input(text: &str) -> (String, String) {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        let input = parts.len() > 1;
        let Some(part) = parts.last_mut() else { break };
        match character {
            '%' if escaped => {
                // Its backslash goes.
                part.pop();
                part.push('%');
            }
            '%' => parts.push(String::new()),
            other => part.push(other),
        }
        // In the command a backslash that is escaped itself escapes nothing more.
        escaped = character == '\\' && (input || !escaped);
    }
    let mut parts = parts.into_iter();
    let command = parts.next().unwrap_or_default().trim_end().to_owned();
    let mut input = parts.collect::<Vec<_>>().join("\n");
    if !input.is_empty() && !input.ends_with('\n') {
        input.push('\n');
    }
    (command, input)
}

/// The program of the catalogue.
///
/// # Errors
///
/// A command or an input that is too long.
pub(super) fn program(
    command: &str,
    input: String,
    variables: &Variables,
) -> Result<Program, String> {
    for (what, bytes) in [("command", command.len()), ("input behind %", input.len())] {
        if bytes > MAX_COMMAND_BYTES {
            return Err(format!(
                "the {what} has {bytes} bytes; {MAX_COMMAND_BYTES} at most: write it into a file"
            ));
        }
    }
    if command.chars().chain(input.chars()).any(|c| c == '\0') {
        return Err("the command holds a null character".to_owned());
    }
    Ok(Program {
        command: vec![variables.shell().to_owned(), "-c".to_owned(), command.to_owned()],
        user: None,
        directory: variables.home().map(str::to_owned),
        set: variables.environment(),
        stdin: Some(input),
    })
}

/// What a worker does otherwise with this command than cron.
pub(super) fn differences(command: &str, variables: &Variables) -> Vec<String> {
    let script = read(command);
    let mut remarks = Vec::new();
    let first = |simple: &super::super::shell::Simple, at: usize| {
        simple.words.get(at).map(|word| word.text.clone()).unwrap_or_default()
    };
    let relative = |word: &str| {
        word.contains('/') && !word.starts_with(['/', '~', '$', '`']) && !word.contains("://")
    };
    // The folder that a command changes to first is what its other paths begin at.
    let moved = script.commands.iter().find(|simple| first(simple, 0) == "cd");
    let path = match moved {
        Some(cd) => Some(first(cd, 1)).filter(|path| !path.starts_with(['/', '~', '$', '-'])),
        None => script.commands.iter().map(|simple| first(simple, 0)).find(|word| relative(word)),
    };
    if let Some(path) = path.filter(|path| variables.home().is_none() && !path.is_empty()) {
        remarks.push(format!(
            "{path} is looked for in the directory of the worker, and with cron in the home of the user: \
             write directory = \"…\" in the catalogue."
        ));
    }
    let mut joined = script.commands.iter().take_while(|simple| simple.is_test() && !simple.nested);
    let guarded = joined.any(|simple| simple.end == End::And)
        && script.commands.iter().all(|simple| !matches!(simple.end, End::Then | End::Other));
    if guarded {
        remarks.push(
            "Where its test does not hold the run fails, which cron did not mind: write if …; then …; fi."
                .to_owned(),
        );
    }
    let background = command.trim_end().ends_with('&')
        && script.commands.last().is_some_and(|simple| simple.end == End::Other);
    if background {
        remarks.push(
            "A worker kills what it leaves running in the background when it ends: take the last & away."
                .to_owned(),
        );
    }
    remarks
}

#[cfg(test)]
mod tests {
    use sexton_model::zone::Zone;

    use super::*;

    #[test]
    fn a_percent_sign_ends_the_command_unless_it_is_escaped() {
        let split = |text: &str| split_input(text);
        let both = |command: &str, input: &str| (command.to_owned(), input.to_owned());
        assert_eq!(split(r"date +\%F"), both("date +%F", ""));
        assert_eq!(
            split(r"mail -s 'it''s 5\%' root%Hello,%%it's me.\%"),
            both("mail -s 'it''s 5%' root", "Hello,\n\nit's me.%\n")
        );
        assert_eq!(split("cat%"), both("cat", ""));
        assert_eq!(split("cat%a%"), both("cat", "a\n"));
        // A backslash that is escaped itself escapes no %, but is one of the input.
        assert_eq!(split(r"a\\%b\\%c"), both(r"a\\", "b\\%c\n"));
        assert_eq!(split(r"a\!b"), both(r"a\!b", ""));
    }

    #[test]
    fn what_a_worker_does_otherwise_is_said_of_commands_that_it_concerns() {
        let variables = Variables::new(Zone::UTC);
        for (command, expected) in [
            ("./poll.sh", &["./poll.sh is looked for"][..]),
            ("cd shop && ./poll.sh", &["shop is looked for"]),
            ("cd /srv/shop && ./poll.sh", &[]),
            ("cd && bin/poll", &[]),
            ("/srv/poll > log/x", &[]),
            ("~/bin/poll a/b", &[]),
            ("/srv/poll &", &["A worker kills what"]),
            ("nohup bin/poll >/dev/null 2>&1 &", &["A worker kills what"]),
            ("a && b", &[]),
            ("[ -x /b ] && /b", &["Where its test does not hold"]),
            ("test -x /b || /c && /b", &[]),
            ("if [ -x /b ]; then /b; fi", &[]),
            ("[ -x /b ] && if [ -d /c ]; then /b; fi", &[]),
        ] {
            let remarks = differences(command, &variables);
            assert_eq!(remarks.len(), expected.len(), "{command}: {remarks:?}");
            for (remarks, expected) in remarks.iter().zip(expected) {
                assert!(remarks.starts_with(expected), "{command}: {remarks}");
            }
        }
    }
}
