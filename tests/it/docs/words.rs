//! Words that were replaced by the field's own, so that they do not come back.
//!
//! The code once had names and sentences that only its authors understood. Beside each word stands what to write
//! instead. Three lists: whole names, words within names, and words and phrases of comments, texts and pages. Verbs stay
//! possible: a client asks, a program says, `tell` and `mean` have subjects then.

use std::path::Path;

use super::rust_tokens::{Token, TokenKind, tokens};
use super::{files, text};

/// Names of anything, locals and files included, and what to write instead.
const NAMES: [(&str, &str); 24] = [
    ("alarm", "next_wakeup"),
    ("amends", "operator_actions"),
    ("appetite", "batch_size"),
    ("asked", "the noun: request, arguments, preview, filter"),
    ("beaten", "conflict"),
    ("browse", "list and show"),
    ("debt", "unpublished tickets"),
    ("few", "the thing that there are few of"),
    ("hop", "next_queue, delay"),
    ("imposed", "cancellation"),
    ("lent", "the guard of a connection"),
    ("meant", "selection, is_selected"),
    ("owe", "mark_unpublished"),
    ("own", "the noun: own_key, dedicated, private_servers"),
    ("owes", "is_unpublished, mark_unpublished"),
    ("portion", "batch"),
    ("portions", "batches"),
    ("pulse", "heartbeat"),
    ("said", "the noun: stdout, log, message, answer"),
    ("spares", "guard_pool"),
    ("tell", "render, report, log_message"),
    ("told", "the noun: output, report, finding; a check is is_logged"),
    ("wakes", "notifications, wakeups"),
    ("which", "the noun: grounds, condition, queue_name"),
];

/// Words within names of several words, and as names by themselves.
const PARTS: [(&str, &str); 13] = [
    ("deed", "action"),
    ("deeds", "actions"),
    ("debts", "unpublished_tickets"),
    ("graveyard", "failures, failed_executions"),
    ("keeper", "lease_renewer, holder"),
    ("keepers", "lease_renewers, holders"),
    ("ladder", "delay_queues"),
    ("misfit", "schema_mismatch"),
    ("misfits", "schema_mismatches"),
    ("owed", "unpublished"),
    ("registrar", "failure_aggregator"),
    ("seat", "instance_lock"),
    ("whoever", "the actor: planner, server, operator"),
];

/// Words and phrases of comments, texts and pages.
const PHRASES: [(&str, &str); 44] = [
    ("are meant", "the verb with its subject: the filter selects them"),
    ("are said", "the verb with its subject: the log says"),
    ("asked for", "requested, created, chosen"),
    ("asked of", "the verb with its subject: the query reads, the test asserts"),
    ("be meant", "the verb with its subject: the name selects it"),
    ("be said", "the verb with its subject: the error says"),
    ("been said", "logged, written, reported"),
    ("debt", "an unpublished ticket"),
    ("debts", "unpublished tickets"),
    ("deed", "action"),
    ("deeds", "actions"),
    ("graveyard", "failed executions"),
    ("had said", "had logged, had written"),
    ("has said", "has logged, has written"),
    ("have said", "have logged, have written"),
    ("hop", "delay"),
    ("hops", "delays"),
    ("is meant", "the verb with its subject: the name selects it"),
    ("is said", "the verb with its subject: the log says"),
    ("keeper", "lease renewer, holder"),
    ("keepers", "lease renewers, holders"),
    ("ladder", "delay queues"),
    ("misfit", "schema mismatch"),
    ("misfits", "schema mismatches"),
    ("owe", "leave a ticket unpublished"),
    ("owed", "unpublished"),
    ("owes", "has an unpublished ticket"),
    ("portion", "batch"),
    ("portions", "batches"),
    ("put right", "repair, requeue or discard"),
    ("puts right", "repairs, requeues or discards"),
    ("putting right", "requeue and discard"),
    ("registrar", "failure aggregator"),
    ("seat", "instance lock, instance name"),
    ("seats", "instance locks, instance names"),
    ("so many th", "the number: the attempt that reaches the limit"),
    ("there are none", "no, with its noun"),
    ("the register", "the failure index"),
    ("to be had", "available, packaged, installed"),
    ("told", "the verb with its subject: the command reports, the log shows, the worker receives"),
    ("was meant", "the verb with its subject: the bulk selects it"),
    ("was said", "the verb with its subject: the worker logged"),
    ("were meant", "the verb with its subject: the bulk selects them"),
    ("whoever", "the actor: the operator, the next scheduler, a reader"),
];

/// The history keeps its words, and so does a migration that has landed; the file with the words names them.
const EXEMPT: [&str; 4] =
    ["CHANGELOG.md", "docs/adr", "migrations/0001_initial.up.sql", "tests/it/docs/words.rs"];

/// The one place of a word: the README explains the project's name.
const ALLOWED: [(&str, &str); 1] = [("README.md", "graveyard")];

fn is_judged(path: &Path) -> bool {
    !EXEMPT.iter().any(|exempt| path.starts_with(exempt))
}

/// The words of a name in `snake_case`, `CamelCase` or both, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut before = '_';
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && !before.is_uppercase()) {
            found.push(String::new());
        }
        if character != '_' {
            found.last_mut().expect("never empty").extend(character.to_lowercase());
        }
        before = character;
    }
    found.retain(|part| !part.is_empty());
    found
}

/// The word of a name that was replaced, and what to write instead.
fn replaced(name: &str) -> Option<(&'static str, &'static str)> {
    let (whole, parts) = (name.to_lowercase(), parts(name));
    let of_name = NAMES.iter().find(|(word, _)| *word == whole);
    of_name
        .or_else(|| PARTS.iter().find(|(word, _)| parts.iter().any(|part| part == word)))
        .copied()
}

/// The prose of a file, as words in lower case with their lines; an empty word ends a text. A name with underscores is
/// one word: it is judged where it is defined.
#[derive(Default)]
struct Prose(Vec<(String, usize)>);

impl Prose {
    fn add(&mut self, line: usize, text: &str) {
        let words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
        let words = words.filter(|word| !word.is_empty());
        self.0.extend(words.map(|word| (word.to_lowercase(), line)));
    }

    fn end_text(&mut self) {
        self.0.push((String::new(), 0));
    }

    fn of_lines(text: &str) -> Self {
        let mut prose = Self::default();
        for (index, line) in text.lines().enumerate() {
            prose.add(index + 1, line);
        }
        prose
    }

    /// The comments and the texts: SQL, messages, help.
    fn of_rust(tokens: &[Token<'_>]) -> Self {
        let mut prose = Self::default();
        let mut next_line = 0;
        for token in tokens.iter().filter(|token| token.kind != TokenKind::Name) {
            let lines = token.text.lines().zip(token.line..);
            if token.kind == TokenKind::Text {
                prose.end_text();
                for (line, number) in lines {
                    // The letter of an escape belongs to no word.
                    prose.add(number, &line.replace("\\n", " ").replace("\\t", " "));
                }
                prose.end_text();
                continue;
            }
            if token.line != next_line {
                prose.end_text();
            }
            for (line, number) in lines {
                prose.add(number, line);
                next_line = number + 1;
            }
        }
        prose
    }

    /// The phrases that were replaced, with their lines and what to write instead.
    fn replaced(&self) -> Vec<(usize, &'static str, &'static str)> {
        let mut found = Vec::new();
        for (phrase, instead) in PHRASES {
            let words: Vec<_> = phrase.split(' ').collect();
            let places = self.0.windows(words.len());
            let is_here = |place: &[(String, usize)]| {
                place.iter().zip(&words).all(|((word, _), wanted)| word == wanted)
            };
            found.extend(places.filter(|p| is_here(p)).map(|p| (p[0].1, phrase, instead)));
        }
        found
    }
}

fn report(path: &Path, prose: &Prose, found: &mut Vec<String>) {
    for (line, phrase, instead) in prose.replaced() {
        if !ALLOWED.iter().any(|(file, word)| path == Path::new(file) && *word == phrase) {
            found.push(format!("{}:{line}: \"{phrase}\"; write {instead}", path.display()));
        }
    }
}

#[test]
fn no_name_of_a_source_or_file_was_replaced() {
    let instead = |name| replaced(name).map(|(word, _)| word);
    assert_eq!(instead("told"), Some("told"));
    assert_eq!(instead("it_is_told_once"), None, "a sentence has verbs");
    assert_eq!(instead("TicketsOwed"), Some("owed"));
    assert_eq!(instead("MAX_LADDER_STEPS"), Some("ladder"));
    assert_eq!(instead("allowed"), None);
    let mut found = Vec::new();
    let mut names = 0;
    for path in files(".rs").into_iter().filter(|path| is_judged(path)) {
        let source = text(&path);
        let file = path.file_stem().and_then(|stem| stem.to_str()).expect("a file has a name");
        let file = Token { kind: TokenKind::Name, text: file, line: 0 };
        for token in tokens(&source).into_iter().chain([file]) {
            if token.kind == TokenKind::Name {
                names += 1;
                if let Some((word, instead)) = replaced(token.text) {
                    let place = format!("{}:{}", path.display(), token.line);
                    found.push(format!("{place}: {}: \"{word}\"; write {instead}", token.text));
                }
            }
        }
    }
    assert!(names > 100_000, "only {names} names were found");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_comment_or_text_has_a_phrase_that_was_replaced() {
    let source =
        "/// A job is\n/// meant.\nlet x = \"-- told\nSELECT '\\ntold'\"; // asked\n\n// for";
    let prose = Prose::of_rust(&tokens(source));
    let lines: Vec<_> = prose.replaced().iter().map(|(line, phrase, _)| (*line, *phrase)).collect();
    assert_eq!(lines, [(1, "is meant"), (3, "told"), (4, "told")]);
    let mut found = Vec::new();
    for path in files(".rs").into_iter().filter(|path| is_judged(path)) {
        report(&path, &Prose::of_rust(&tokens(&text(&path))), &mut found);
    }
    for path in files(".sql").into_iter().filter(|path| is_judged(path)) {
        report(&path, &Prose::of_lines(&text(&path)), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_page_has_a_phrase_that_was_replaced() {
    let mut found = Vec::new();
    for path in files(".md").into_iter().filter(|path| is_judged(path)) {
        report(&path, &Prose::of_lines(&text(&path)), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}
