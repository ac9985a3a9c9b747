//! Masks secrets where a template copies them: into other params, and into the idempotency key.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::Value;
use sexton_model::failures::{MASK, is_secret, mask_secrets};

/// Minimum length of a secret whose copies are masked, in characters. The copy of a shorter one looks like any other text.
const MIN_CHARS: usize = 4;
/// Bytes that are searched, those of a text once for each secret. A text beyond them is masked as a whole.
const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;
/// Bytes that the search in a short text counts for in addition.
const SEARCH_BYTES: usize = 64;

/// Masks the params of executions and their idempotency keys. The search for copies is bounded over all of them together.
#[derive(Debug)]
pub(super) struct CopyMasker {
    /// Bytes that may still be searched.
    left: usize,
}

impl Default for CopyMasker {
    fn default() -> Self {
        Self { left: MAX_SEARCHED_BYTES }
    }
}

impl CopyMasker {
    /// Masks the secrets of filled params, there and in the idempotency key. `unfilled`: the job's params: of a secret that is a template
    /// itself, other templates copy what is not filled.
    pub(super) fn mask(
        &mut self,
        params: &mut Value,
        idempotency_key: &mut String,
        unfilled: &Value,
    ) {
        let mut found = BTreeSet::new();
        find_secrets(params, false, &mut found);
        find_secrets(unfilled, false, &mut found);
        let mut secrets: Vec<String> = found.into_iter().collect();
        // One may be a part of another.
        secrets.sort_by_key(|secret| Reverse(secret.len()));
        if !secrets.is_empty() {
            self.mask_value(params, &secrets);
            self.mask_text(idempotency_key, &secrets);
        }
        *params = mask_secrets(params);
        if let Value::String(masked) = mask_secrets(&Value::from(idempotency_key.as_str())) {
            *idempotency_key = masked;
        }
    }

    fn mask_value(&mut self, value: &mut Value, secrets: &[String]) {
        match value {
            Value::Object(fields) => {
                for inside in fields.values_mut() {
                    self.mask_value(inside, secrets);
                }
            }
            Value::Array(values) => {
                for inside in values {
                    self.mask_value(inside, secrets);
                }
            }
            Value::String(text) => self.mask_text(text, secrets),
            Value::Number(number) => {
                let mut text = number.to_string();
                self.mask_text(&mut text, secrets);
                if text == MASK {
                    *value = Value::from(MASK);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn mask_text(&mut self, text: &mut String, secrets: &[String]) {
        let searched = (text.len() + SEARCH_BYTES).saturating_mul(secrets.len());
        let Some(left) = self.left.checked_sub(searched) else {
            MASK.clone_into(text);
            return;
        };
        self.left = left;
        for secret in secrets {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), MASK);
            }
        }
    }
}

/// Finds the texts and numbers under the names of secrets, at any depth.
fn find_secrets(value: &Value, is_hidden: bool, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inside) in fields {
                find_secrets(inside, is_hidden || is_secret(name), found);
            }
        }
        Value::Array(values) => {
            for inside in values {
                find_secrets(inside, is_hidden, found);
            }
        }
        Value::String(text) if is_hidden => {
            // The copy of an object in a text is JSON.
            let quoted = value.to_string();
            add(&quoted[1..quoted.len() - 1], found);
            add(text, found);
        }
        Value::Number(number) if is_hidden => add(&number.to_string(), found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add(secret: &str, found: &mut BTreeSet<String>) {
    if secret.chars().count() >= MIN_CHARS {
        found.insert(secret.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(mut params: Value, key: &str) -> (Value, String) {
        let mut key = key.to_owned();
        CopyMasker::default().mask(&mut params, &mut key, &Value::Null);
        (params, key)
    }

    #[test]
    fn the_copy_of_a_secret_is_masked_in_texts_as_a_value_and_in_the_key() {
        let params = json!({
            "api_token": "hunter2", "login": {"password": {"text": "a\"bc", "number": 48_915}},
            "header": "Bearer hunter2", "both": "hunter2:48915", "deep": [{"copy": "hunter2"}], "number": 48_915,
            "whole": "{\"text\": \"a\\\"bc\", \"number\": 48915}", "plain": "hunter", "other": 148_915,
        });
        let (params, key) = masked(params, "x:hunter2:48915:7");
        assert_eq!(
            params,
            json!({
                "api_token": "***", "login": {"password": "***"},
                "header": "Bearer ***", "both": "***:***", "deep": [{"copy": "***"}], "number": "***",
                "whole": "{\"text\": \"***\", \"number\": ***}", "plain": "hunter", "other": 148_915,
            })
        );
        assert_eq!(key, "x:***:***:7");
    }

    #[test]
    fn a_secret_that_holds_another_one_is_masked_as_a_whole() {
        let params = json!({
            "token": "abcd", "long_token": "abcd-efgh", "dsn_secret": "https://ann:pw@shop.example",
            "copy": "abcd-efgh https://ann:pw@shop.example", "url": "https://ann:pw@shop.example/a",
        });
        let (params, key) = masked(params, "abcd-efgh https://bob:pw@shop.example");
        assert_eq!((&params["copy"], &params["url"]), (&json!("*** ***"), &json!("***/a")));
        assert_eq!(key, "*** https://bob:***@shop.example");
    }

    #[test]
    fn the_copy_of_a_secret_that_is_not_filled_is_masked() {
        let unfilled = json!({"token": "abc-{{ job }}", "header": "Bearer {{ params.token }}"});
        let mut params = json!({"token": "abc-a.b", "header": "Bearer abc-{{ job }}"});
        let mut key = "abc-{{ job }}:abc-a.b".to_owned();
        CopyMasker::default().mask(&mut params, &mut key, &unfilled);
        assert_eq!(params, json!({"token": "***", "header": "Bearer ***"}));
        assert_eq!(key, "***:***");
    }

    #[test]
    fn a_short_secret_and_nothing_have_no_copies() {
        let params = json!({"pin": 123, "token": "", "secret": null, "text": "123 null"});
        let (params, key) = masked(params, "a:123");
        assert_eq!((&params["text"], key.as_str()), (&json!("123 null"), "a:123"));
        assert_eq!(params["pin"], "***");
    }

    #[test]
    fn a_text_beyond_the_bound_is_masked_as_a_whole() {
        let mut params = json!({"token": "abcd", "long": "x".repeat(200), "short": "y"});
        let mut key = "k".to_owned();
        CopyMasker { left: 200 }.mask(&mut params, &mut key, &Value::Null);
        assert_eq!((&params["long"], &params["short"]), (&json!("***"), &json!("y")));
        assert_eq!(key, "k");
    }
}
