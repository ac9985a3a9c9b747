//! TOML as it is written here: texts in quotes on one line, comments without what a terminal acts on.

use std::fmt::Write as _;

use crate::show::line;

/// The most characters of a line of a comment.
const MAX_COMMENT_CHARS: usize = 2_000;

/// More than any line of a file that was made of one that can be read.
const MAX_LINE_CHARS: usize = 16 * super::MAX_FILE_BYTES;

/// Of prose in a comment, the most characters of a line.
const PARAGRAPH_CHARS: usize = 100;

/// A string: between `'` where nothing in it has to be escaped, otherwise between `"`. Directional and
/// invisible characters are escaped, too, so that the file is what it looks like.
pub(super) fn quoted(text: &str) -> String {
    let unseen = |c: char| {
        matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let literal = text.contains(['"', '\\']);
    if literal && !text.chars().any(|c| c == '\'' || c.is_control() || unseen(c)) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || unseen(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key, without quotes where it needs none.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// `["a", "b"]`.
pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// `{ a = "b" }`.
pub(super) fn table<'t>(fields: impl IntoIterator<Item = (&'t String, &'t String)>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, text)| format!("{} = {}", key(name), quoted(text)))
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

/// A line of a comment, whatever the text holds.
pub(super) fn comment(text: &str) -> String {
    commented(text, MAX_COMMENT_CHARS)
}

/// Prose as lines of a comment.
pub(super) fn paragraph(text: &str) -> String {
    let (mut lines, mut present) = (String::new(), String::new());
    for word in line(text, MAX_COMMENT_CHARS).split_whitespace() {
        if !present.is_empty()
            && present.chars().count() + 1 + word.chars().count() > PARAGRAPH_CHARS
        {
            lines.push_str(&comment(&std::mem::take(&mut present)));
        }
        if !present.is_empty() {
            present.push(' ');
        }
        present.push_str(word);
    }
    lines + &comment(&present)
}

/// A line of TOML as a comment: whole, so that it can be taken over.
pub(super) fn commented_out(toml: &str) -> String {
    commented(toml, MAX_LINE_CHARS)
}

fn commented(text: &str, max: usize) -> String {
    match line(text, max).as_str() {
        "" => "#\n".to_owned(),
        text => format!("# {text}\n"),
    }
}
