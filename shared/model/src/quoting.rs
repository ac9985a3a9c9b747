//! Quotes foreign text in a message: it may hold anything, and the message ends up on terminals, in logs and in
//! headers.

/// Maximum length of a quotation as shown, in characters: an escape counts with all of its characters.
pub const MAX_CHARS: usize = 80;
/// Maximum length of a quotation in bytes: 80 characters of most alphabets, and fewer of those that need more bytes.
const MAX_BYTES: usize = 2 * MAX_CHARS;

/// Returns the text in quotes, shortened, with everything escaped on which a terminal could act.
pub fn quoted(text: &str) -> String {
    let (part, ellipsis) = cut(text);
    format!("{part:?}{ellipsis}")
}

/// Like [`quoted`], without the quotes.
pub fn escaped(text: &str) -> String {
    let (part, ellipsis) = cut(text);
    let quoted = format!("{part:?}");
    format!("{}{ellipsis}", &quoted[1..quoted.len() - 1])
}

/// Returns the text itself if nothing has to be changed, otherwise like [`quoted`]: plain text reads better without
/// quotes.
pub fn plain(text: &str) -> String {
    if escaped(text) == text { text.to_owned() } else { quoted(text) }
}

/// Cuts the middle out of a parser's long error, which repeats its input; its end names the place.
pub fn without_middle(error: &str) -> String {
    let count = error.chars().count();
    if count <= 2 * MAX_CHARS {
        return error.to_owned();
    }
    let begin: String = error.chars().take(MAX_CHARS).collect();
    let end: String = error.chars().skip(count - MAX_CHARS).collect();
    format!("{begin} … {end}")
}

fn cut(text: &str) -> (&str, &'static str) {
    let (mut chars, mut bytes) = (0, 0);
    for (at, character) in text.char_indices() {
        for shown in character.escape_debug() {
            chars += 1;
            bytes += shown.len_utf8();
        }
        if chars > MAX_CHARS || bytes > MAX_BYTES {
            return (&text[..at], "…");
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        let text = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{200b}\u{feff}\u{e0041}\n\"ä";
        let output = "a\\u{1b}[2J\\u{9b}\\u{7f}\\u{202e}\\u{200b}\\u{feff}\\u{e0041}\\n\\\"ä";
        assert_eq!(escaped(text), output);
        assert_eq!(quoted(text), format!("\"{output}\""));
        assert_eq!(plain(text), quoted(text));
        assert_eq!(plain("retry.max_delay"), "retry.max_delay");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "ä".repeat(MAX_CHARS + 1);
        assert_eq!(escaped(&text), "ä".repeat(MAX_CHARS) + "…");
        assert_eq!(escaped(&text[2..]), text[2..]);
    }

    #[test]
    fn characters_of_four_bytes_are_cut_earlier() {
        let text = "\u{1f600}".repeat(MAX_CHARS);
        assert_eq!(escaped(&text), "\u{1f600}".repeat(MAX_BYTES / 4) + "…");
    }

    #[test]
    fn of_a_long_error_the_beginning_and_the_place_are_shown() {
        let error = format!("invalid type: string \"{}\" at line 7", "ä".repeat(10_000));
        let output = without_middle(&error);
        assert!(
            output.starts_with("invalid type: string") && output.ends_with("at line 7"),
            "{output}"
        );
        assert_eq!(output.chars().count(), 2 * MAX_CHARS + 3);
        assert_eq!(without_middle("short"), "short");
    }

    #[test]
    fn an_escape_counts_as_long_as_it_is_shown() {
        let shown = "\\u{fffd5}".chars().count();
        let output = escaped(&"\u{fffd5}".repeat(MAX_CHARS));
        assert_eq!(output, "\\u{fffd5}".repeat(MAX_CHARS / shown) + "…");
    }
}
