//! Masks values in params that look like secrets.
//!
//! The rule goes by name, is documented in `docs/operations/failed.md`, and is a courtesy: secrets under other names
//! are shown. It changes only the display, never stored values or a task's params.

use serde_json::{Map, Value};

/// The replacement for a secret.
pub const MASK: &str = "***";

/// Parts of names, reduced to letters and digits in lower case.
const SECRET_NAME_PARTS: [&str; 13] = [
    "accesskey",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signingkey",
    "token",
];
/// Whole names.
const SECRET_NAMES: [&str; 6] = ["auth", "cvc", "cvv", "pass", "pin", "pwd"];

/// Masks values that look like secrets: non-empty values under a secret's name; and the password in an address such
/// as `https://user:password@host`.
#[must_use]
pub fn mask_secrets(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), field(name, value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(values) => values.iter().map(mask_secrets).collect(),
        Value::String(text) => Value::String(address(text)),
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value) -> Value {
    let nothing = value.is_null() || value.as_str().is_some_and(str::is_empty);
    if is_secret(name) && !nothing { Value::from(MASK) } else { mask_secrets(value) }
}

/// Returns whether a field of this name contains a secret.
pub fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.contains(&plain.as_str())
        || SECRET_NAME_PARTS.iter().any(|part| plain.contains(part))
}

/// Masks the password of each address.
fn address(text: &str) -> String {
    let mut out = String::new();
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end =
            after.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(after.len());
        remaining = match after[..end].rsplit_once('@') {
            Some((user, host)) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                out.push_str(user);
                if !password.is_empty() {
                    out.push(':');
                    out.push_str(MASK);
                }
                out.push('@');
                &after[end - host.len()..]
            }
            None => after,
        };
    }
    out + remaining
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_name_says_is_a_secret_is_masked_at_any_depth() {
        let params = json!({
            "customer": 7, "apiKey": "k", "API-KEY": 5, "db_password": {"a": 1}, "tokens": ["x"],
            "nested": [{"client_secret": "s", "note": "fine"}], "pin": null, "secret": "",
            "pinned": true, "author": "ann", "passenger": "bob", "monkey": "m",
        });
        assert_eq!(
            mask_secrets(&params),
            json!({
                "customer": 7, "apiKey": "***", "API-KEY": "***", "db_password": "***", "tokens": "***",
                "nested": [{"client_secret": "***", "note": "fine"}], "pin": null, "secret": "",
                "pinned": true, "author": "ann", "passenger": "bob", "monkey": "m",
            })
        );
    }

    #[test]
    fn the_password_of_an_address_is_masked() {
        for (text, expected) in [
            ("https://ann:x@y@shop.example/a?b=1", "https://ann:***@shop.example/a?b=1"),
            ("amqp://u:p@h, amqp://u@h", "amqp://u:***@h, amqp://u@h"),
            ("https://shop.example/@ann:x", "https://shop.example/@ann:x"),
            ("a://", "a://"),
        ] {
            assert_eq!(mask_secrets(&json!(text)), json!(expected));
        }
    }
}
