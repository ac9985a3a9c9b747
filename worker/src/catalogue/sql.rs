//! `sql = "..."`: one statement on the platform's database.

use std::time::Duration;

use super::fields::{Fields, Notes};
use crate::executor::sql::SqlTask;

/// Longest statement, in bytes.
pub const SQL_MAX_BYTES: usize = 64 * 1024;
const LOCK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
const LOCK_TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// Longest `lock_timeout` of a statement.
pub const LOCK_TIMEOUT_MAX: Duration = Duration::from_hours(1);
const STATEMENT_TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// Longest `statement_timeout` of a statement: the largest that the server can represent.
pub const STATEMENT_TIMEOUT_MAX: Duration = Duration::from_hours(24 * 24);

/// First words of statements that would end the transaction to which the completion belongs, or begin one.
const TRANSACTIONS: [&str; 9] =
    ["abort", "begin", "commit", "end", "prepare", "release", "rollback", "savepoint", "start"];

/// Reads a statement and its options; notes every problem. `None` if the statement has one.
pub(super) fn read(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<SqlTask> {
    let statement = statement(fields, notes);
    let lock = LOCK_TIMEOUT_MIN..=LOCK_TIMEOUT_MAX;
    let lock_timeout = fields.span("lock_timeout", lock, notes).unwrap_or(LOCK_TIMEOUT_DEFAULT);
    let run = STATEMENT_TIMEOUT_MIN..=STATEMENT_TIMEOUT_MAX;
    let statement_timeout = fields.span("statement_timeout", run, notes);
    statement.map(|statement| SqlTask { statement, lock_timeout, statement_timeout })
}

fn statement(fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let Some(text) = fields.get("sql")?.get_ref().as_str() else {
        fields.report(
            "sql",
            "must be a statement in quotes, such as \"select refresh($1)\"",
            notes,
        );
        return None;
    };
    if text.len() > SQL_MAX_BYTES || text.contains('\0') {
        let message = format!("is longer than {SQL_MAX_BYTES} bytes or holds a NUL");
        fields.report("sql", message, notes);
        return None;
    }
    let word = first_word(text);
    if word.is_empty() {
        fields.report(
            "sql",
            "holds no statement; write one, such as \"select refresh($1)\"",
            notes,
        );
        return None;
    }
    if TRANSACTIONS.contains(&word.as_str()) {
        let message = format!(
            "`{word}` would change the transaction that the completion belongs to; write a statement \
             that leaves it alone"
        );
        fields.report("sql", message, notes);
        return None;
    }
    Some(text.to_owned())
}

/// Returns the first word in lower case, after blanks and comments; if the text begins with another character,
/// that character. The attempt detects whatever this misses.
fn first_word(text: &str) -> String {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else if let Some(after) = rest.strip_prefix(';') {
            rest = after.trim_start();
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let end = if end == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { end };
    rest[..end].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_blanks_and_comments() {
        for (text, word) in [
            ("select 1", "select"),
            (" \n-- commit\n/* rollback */ ; CALL p($1)", "call"),
            ("Commit;", "commit"),
            ("(select 1)", "("),
            ("-- nothing", ""),
            ("/* open", ""),
            ("", ""),
        ] {
            assert_eq!(first_word(text), word, "{text:?}");
        }
    }
}
