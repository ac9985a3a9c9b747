//! Escapes foreign text for display.
//!
//! Tasks' output and jobs' values may hold anything; on a terminal, escape sequences could recolour, overwrite or
//! hide what the operator reads, and directional characters could reorder it. Every such character is shown as an
//! escape.

use std::fmt::Write as _;

/// Returns whether a terminal would act on the character, or reorder text because of it.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn push(out: &mut String, character: char) {
    match character {
        '\t' => out.push_str("    "),
        c if is_unsafe(c) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        }
        c => out.push(c),
    }
}

/// Returns the text on one line, of at most `max` characters; line breaks become blanks.
pub fn line(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max * 4));
    for (count, character) in text.trim_end().chars().enumerate() {
        if count == max {
            out.push('…');
            break;
        }
        match character {
            '\n' => out.push(' '),
            '\r' => {}
            other => push(&mut out, other),
        }
    }
    out
}

/// Returns the text with its line breaks, everything else escaped.
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' { out.push('\n') } else { push(&mut out, character) }
    }
    out
}

/// Escapes the characters in JSON on which a terminal acts. The value stays the same: outside of strings JSON has
/// only line breaks and blanks.
pub fn ascii_controls(json: &str) -> String {
    if !json.chars().any(|c| c != '\n' && is_unsafe(c)) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if character != '\n' && is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_not_sent() {
        assert_eq!(line("a\u{1b}[31mred", 80), "a\\u{1b}[31mred");
        assert_eq!(line("over\rwritten\u{9b}2J", 80), "overwritten\\u{9b}2J");
        assert_eq!(line("\u{202e}txt.exe", 80), "\\u{202e}txt.exe");
        assert_eq!(lines("a\nb\u{7}\tc"), "a\nb\\u{7}    c");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(line("äöüß", 2), "äö…");
        assert_eq!(line("äö\n", 2), "äö");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"a": "\u{9b}2J \u{e0041} \u{202e} ä"});
        let text = ascii_controls(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.contains("\\u009b") && text.contains('ä'));
        assert!(!text.chars().any(|c| c != '\n' && is_unsafe(c)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
