//! Search for words in messages.

/// Maximum length of a search text, in characters.
pub const MAX_TEXT_CHARS: usize = 200;
/// Maximum number of words.
pub const MAX_WORDS: usize = 20;

/// Converts the text for PostgreSQL's `to_tsquery`: its words, one directly after the other, the last one as a
/// prefix. A word is a run of letters and digits, and of anything beyond ASCII; case does not matter. Messages are
/// split the same way before they are indexed (see the migration that creates the table `failures`). `None`: no word,
/// too many, or too long a text.
pub fn query(text: &str) -> Option<String> {
    let separates = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    let words: Vec<&str> = text.split(separates).filter(|word| !word.is_empty()).collect();
    if words.is_empty() || words.len() > MAX_WORDS || text.chars().count() > MAX_TEXT_CHARS {
        return None;
    }
    // No word contains a quote or a backslash, so quoting needs no escapes.
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    Some(quoted.join(" <-> ") + ":*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_one_another_and_the_last_may_be_begun_only() {
        for (text, expected) in [
            ("refused", "'refused':*"),
            ("Connection  re-fu", "'Connection' <-> 're' <-> 'fu':*"),
            ("größe 'x' & !(y)", "'größe' <-> 'x' <-> 'y':*"),
        ] {
            assert_eq!(query(text).as_deref(), Some(expected));
        }
        for text in ["", " -- ", "\0", &"a ".repeat(MAX_WORDS + 1), &"a".repeat(MAX_TEXT_CHARS + 1)]
        {
            assert_eq!(query(text), None, "{text}");
        }
    }
}
