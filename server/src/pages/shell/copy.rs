//! What a page does, as a command and as a request: to learn from, to send to a colleague, to put into a script.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;
use sexton_operations::text;

use crate::api::BASE_PATH;

/// Stands for a reason that somebody has yet to write.
pub(in crate::pages) const REASON: &str = "…";

/// Returns a command for a shell.
pub(in crate::pages) fn command(words: &[&str]) -> String {
    let words = words.iter().map(|word| quoted(word));
    words.fold("sexton".to_owned(), |line, word| line + " " + &word)
}

/// As [`command`], of words that were put together.
pub(in crate::pages) fn command_of(words: &[String]) -> String {
    command(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns an option and its value as words of a command. A value that begins with a dash would be taken for an option, unless it is
/// in the same word.
pub(in crate::pages) fn option(name: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') {
        return vec![format!("--{name}={value}")];
    }
    vec![format!("--{name}"), value.to_owned()]
}

/// Returns a request of the API for a shell. The address of the API and the token come from variables.
pub(in crate::pages) fn request(method: &str, path: &str, body: &Value) -> String {
    let url = format!("$SEXTON_URL{BASE_PATH}{path}");
    let token = r#"-H "Authorization: Bearer $SEXTON_TOKEN""#;
    if body.is_null() {
        return format!("curl -X {method} {token} \"{url}\"");
    }
    let body = quoted(&text::ascii_controls(&body.to_string())).into_owned();
    let media_type = "-H 'Content-Type: application/json'";
    format!("curl -X {method} {token} {media_type} \\\n  -d {body} \"{url}\"")
}

/// Quotes a word for a shell, if that is needed.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.into();
    }
    if text::lines(word) != word {
        return escaped(word).into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

/// Quotes a word that holds characters which would disturb a reader: `$'…'` of Bash and Zsh writes them as escapes, byte by byte, which
/// means the same in every locale.
fn escaped(word: &str) -> String {
    let mut out = "$'".to_owned();
    for character in word.chars() {
        match character {
            '\'' | '\\' => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            other => {
                for byte in other.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_with_a_quote_stays_one_word() {
        assert_eq!(command(&["jobs", "pause", "a b"]), "sexton jobs pause 'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(rm -rf /)"), "'$(rm -rf /)'");
    }

    #[test]
    fn a_word_that_would_disturb_a_reader_is_written_with_escapes() {
        assert_eq!(quoted("\u{202e}it's\u{1b}"), r"$'\xe2\x80\xaeit\'s\x1b'");
        let text = request("POST", "/jobs/x/pause", &json!({"reason": "\u{202e}"}));
        assert!(text.contains(r#"'{"reason":"\u202e"}'"#), "{text}");
    }

    #[test]
    fn a_value_that_begins_with_a_dash_is_no_option() {
        assert_eq!(option("text", "-1 items"), ["--text=-1 items"]);
        assert_eq!(command_of(&option("text", "a b")), "sexton --text 'a b'");
    }

    #[test]
    fn a_request_has_its_body_in_quotes() {
        let text = request("POST", "/jobs/x/pause", &json!({"reason": "it's late"}));
        assert!(text.contains(r#"'{"reason":"it'\''s late"}'"#), "{text}");
        assert!(text.ends_with(r#""$SEXTON_URL/api/v1/jobs/x/pause""#), "{text}");
    }
}
