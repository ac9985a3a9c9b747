//! What a page does, as a command and as a request: to learn from, to send to a colleague, to put into a script.

use std::borrow::Cow;

use serde_json::Value;

use crate::api::BASE_PATH;

/// Returns a command for a shell.
pub(in crate::pages) fn command(words: &[&str]) -> String {
    let words = words.iter().map(|word| quoted(word));
    words.fold("sexton".to_owned(), |line, word| line + " " + &word)
}

/// Returns a request of the API for a shell. The address of the API and the token come from variables.
pub(in crate::pages) fn request(method: &str, path: &str, body: &Value) -> String {
    let url = format!("$SEXTON_URL{BASE_PATH}{path}");
    let token = r#"-H "Authorization: Bearer $SEXTON_TOKEN""#;
    if body.is_null() {
        return format!("curl -X {method} {token} \"{url}\"");
    }
    let body = quoted(&body.to_string()).into_owned();
    let media_type = "-H 'Content-Type: application/json'";
    format!("curl -X {method} {token} {media_type} \\\n  -d {body} \"{url}\"")
}

/// Quotes a word for a shell, if that is needed.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
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
    fn a_request_has_its_body_in_quotes() {
        let text = request("POST", "/jobs/x/pause", &json!({"reason": "it's late"}));
        assert!(text.contains(r#"'{"reason":"it'\''s late"}'"#), "{text}");
        assert!(text.ends_with(r#""$SEXTON_URL/api/v1/jobs/x/pause""#), "{text}");
    }
}
