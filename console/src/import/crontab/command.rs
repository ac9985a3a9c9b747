//! What an entry of a crontab runs, as a program of the catalogue.

use super::super::Program;
use super::variables::Variables;

/// The longest command, in bytes: a word of a catalogue's command has no more.
const MAX_COMMAND_BYTES: usize = 32 * 1024;

/// The program, and what has to be said of it.
///
/// # Errors
///
/// A command that is too long.
pub(super) fn program(
    command: &str,
    variables: &Variables,
) -> Result<(Program, Vec<String>), String> {
    let (command, input) = percent(command);
    let mut remarks = Vec::new();
    let command = match input {
        None => command,
        Some(input) => {
            remarks.push(
                "what stood behind % is standard input, which a printf in front feeds".to_owned(),
            );
            fed(&command, &input)
        }
    };
    if command.len() > MAX_COMMAND_BYTES {
        let bytes = command.len();
        return Err(format!(
            "the command has {bytes} bytes; {MAX_COMMAND_BYTES} at most: write it into a file and run that"
        ));
    }
    if command.chars().any(|c| c == '\0') {
        return Err("the command holds a null character".to_owned());
    }
    let program = Program {
        command: vec![variables.shell().to_owned(), "-c".to_owned(), command],
        user: None,
        directory: variables.home().map(str::to_owned),
        set: variables.environment().clone(),
    };
    Ok((program, remarks))
}

/// An unescaped `%` ends the command; behind it, each is the end of a line of its standard input.
/// `\%` is a `%` everywhere.
fn percent(text: &str) -> (String, Option<String>) {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'%') => {
                characters.next();
                if let Some(part) = parts.last_mut() {
                    part.push('%');
                }
            }
            '%' => parts.push(String::new()),
            other => {
                if let Some(part) = parts.last_mut() {
                    part.push(other);
                }
            }
        }
    }
    let mut parts = parts.into_iter();
    let command = parts.next().unwrap_or_default().trim_end().to_owned();
    let input: Vec<String> = parts.collect();
    (command, (!input.is_empty()).then(|| input.join("\n")))
}

/// The command with this text and the end of a line on its standard input.
fn fed(command: &str, input: &str) -> String {
    let lines: Vec<String> =
        input.split('\n').map(|line| format!("'{}'", line.replace('\'', r"'\''"))).collect();
    // On lines of its own: a command may end with a comment.
    format!("printf '%s\\n' {} | {{\n{command}\n}}", lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_ends_the_command_unless_it_is_escaped() {
        assert_eq!(percent(r"date +\%F"), ("date +%F".to_owned(), None));
        let (command, input) = percent(r"mail -s 'it''s 5\%' root%Hello,%%it's me.\%");
        assert_eq!(command, "mail -s 'it''s 5%' root");
        assert_eq!(input.as_deref(), Some("Hello,\n\nit's me.%"));
        assert_eq!(percent("cat%").1.as_deref(), Some(""));
        assert_eq!(percent(r"a\\%b"), (r"a\%b".to_owned(), None));
    }

    #[test]
    fn what_stood_behind_it_reaches_the_command() {
        let script = fed("cat # as it is", "it's\n\n100%d");
        let said = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), "it's\n\n100%d\n");
    }
}
