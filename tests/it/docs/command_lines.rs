//! The commands that documents show, read by the command line itself: no page names a command or an option that there is not.
//!
//! In blocks marked `sh` or `console`, whole lines are read. In the text, code that begins with `sexton` may lack arguments, but
//! not name a command or an option that is unknown. Values are the pages' own, and not judged.

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use sexton_console::arguments::Arguments;

use super::{blocks, code_spans, files, text};

/// Commands that are shown, at least: none would pass, too.
const MIN_COMMANDS: usize = 200;

/// Where a command ends within its line; the last one as tables write it.
const ENDS: [&str; 9] = ["|", ">", ">>", "&&", "&", ";", "#", "||", "\\|"];

/// The words of a line, as a shell splits it; `None`: it is no command of `sexton`, or only a part of one.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    // `COMMAND` stands for any.
    let is_partial = line.contains('…') || line.ends_with('\\') || line.contains("COMMAND");
    if !line.starts_with("sexton ") || is_partial {
        return None;
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars().chain([' ']) {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => {
                let Some(word) = word.take() else { continue };
                if ENDS.contains(&word.as_str()) {
                    break;
                }
                words.push(word);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    Some(words)
}

/// Why the command line refuses the words, if it does for another reason than a value.
fn refusal(words: &[String]) -> Option<ErrorKind> {
    let refused = Arguments::command().try_get_matches_from(words).err()?.kind();
    let about_values = [
        ErrorKind::InvalidValue,
        ErrorKind::ValueValidation,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
    ];
    (!about_values.contains(&refused)).then_some(refused)
}

#[test]
fn every_command_that_a_document_shows_is_one() {
    let (mut shown, mut wrong) = (0, Vec::new());
    for document in files(".md") {
        // The history names commands as they were.
        if document.ends_with("CHANGELOG.md") || document.starts_with("docs/adr") {
            continue;
        }
        let page = text(&document);
        let in_blocks = ["sh", "console"].into_iter().flat_map(|info| blocks(&page, info));
        let lines =
            in_blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>());
        for line in lines {
            let Some(words) = words(&line) else { continue };
            shown += 1;
            if let Some(kind) = refusal(&words) {
                wrong.push(format!("{}: {line}: {kind:?}", document.display()));
            }
        }
        for span in code_spans(&page) {
            let Some(words) = words(&span) else { continue };
            shown += 1;
            let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
            if let Some(kind) = refusal(&words).filter(|kind| unknown.contains(kind)) {
                wrong.push(format!("{}: `{span}`: {kind:?}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "no such commands:\n{}", wrong.join("\n"));
    assert!(shown >= MIN_COMMANDS, "only {shown} commands were found");
}

#[test]
fn a_command_that_there_is_not_is_reported() {
    let kind = |line: &str| refusal(&words(line).unwrap());
    assert_eq!(kind("$ sexton checks show db-backup   # a check"), None);
    assert_eq!(kind("sexton checks pause db-backup --reason 'the host moves' | cat"), None);
    assert_eq!(kind("sexton checks shew db-backup"), Some(ErrorKind::InvalidSubcommand));
    assert_eq!(kind("sexton checks show db-backup --all"), Some(ErrorKind::UnknownArgument));
    assert_eq!(kind("sexton checks pause"), Some(ErrorKind::MissingRequiredArgument));
    let quoted = "sexton bulks verify 7 './charged \"$KEY\"' --reason \"at the bank\" >> log";
    let expected =
        ["sexton", "bulks", "verify", "7", "./charged \"$KEY\"", "--reason", "at the bank"];
    assert_eq!(words(quoted).unwrap(), expected);
    assert_eq!(words("scheduler --help"), None);
}
