//! Finds masks that came back instead of the secrets that they stand for.
//!
//! Lists and pages show [`MASK`] for what looks like a secret. Params that are copied from there, changed and sent back would overwrite the
//! secret with the mask.

use serde_json::{Map, Value};
use sexton_model::failures::{MASK, is_secret, mask_secrets};

/// Maximum number of places in one answer.
const MAX_PLACES: usize = 50;

/// Returns the places, as JSON pointers into `after`, at which it has a mask that `before` does not have there.
pub fn masked_places(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    search(Some(before), after, false, &mut String::new(), &mut found);
    found
}

/// Returns params that a person edited with masks in them: where a value stands masked as before, the stored one stands again. A mask in
/// another place stays, and [`masked_places`] finds it.
#[must_use]
pub fn restore_masked(stored: &Value, edited: &Value) -> Value {
    restore(Some(stored), edited, false)
}

/// `is_secret_name`: whether the value is that of a field whose values are masked.
fn restore(stored: Option<&Value>, edited: &Value, is_secret_name: bool) -> Value {
    if let Some(stored) = stored {
        let masked = if is_secret_name { Value::from(MASK) } else { mask_secrets(stored) };
        if *edited == masked {
            return stored.clone();
        }
    }
    match edited {
        Value::Object(fields) => {
            let restored = |(name, value): (&String, &Value)| {
                let stored = stored.and_then(|stored| stored.get(name));
                (name.clone(), restore(stored, value, is_secret(name)))
            };
            fields.iter().map(restored).collect()
        }
        Value::Array(values) => {
            let restored = |(index, value): (usize, &Value)| {
                restore(stored.and_then(|stored| stored.get(index)), value, false)
            };
            values.iter().enumerate().map(restored).collect()
        }
        other => other.clone(),
    }
}

/// Changes params by a JSON merge patch (RFC 7396): fields of `patch` replace those of the same name, objects are merged, and
/// `null` removes a field. What the patch does not name stays, secrets among it.
pub fn merge(params: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, change) in patch {
        match change {
            Value::Null => drop(params.remove(name)),
            Value::Object(fields) => {
                let field = params.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                if !field.is_object() {
                    *field = Value::Object(Map::new());
                }
                if let Value::Object(inside) = field {
                    merge(inside, fields);
                }
            }
            other => drop(params.insert(name.clone(), other.clone())),
        }
    }
}

/// Returns a patch for [`merge`] that changes `before` into `after`, both masked, and leaves the secrets that are masked in both as they are.
/// `None`: no patch does, since a field becomes `null`, or an array with a masked secret changes, of which a patch has all values.
#[must_use]
pub fn merge_patch(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let patch = difference(before, after);
    let mut merged = before.clone();
    merge(&mut merged, &patch);
    (merged == *after && !patch.values().any(has_mask)).then_some(patch)
}

/// The patch, except that a field which becomes `null` is removed.
fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut patch: Map<String, Value> = removed.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in after {
        match (before.get(name), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), difference(old, new).into());
            }
            (_, new) => drop(patch.insert(name.clone(), new.clone())),
        }
    }
    patch
}

fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASK),
        Value::Array(values) => values.iter().any(has_mask),
        Value::Object(fields) => fields.values().any(has_mask),
        _ => false,
    }
}

fn search(
    before: Option<&Value>,
    after: &Value,
    is_secret_name: bool,
    pointer: &mut String,
    found: &mut Vec<String>,
) {
    if found.len() >= MAX_PLACES || before == Some(after) {
        return;
    }
    let length = pointer.len();
    match after {
        Value::Object(fields) => {
            for (name, value) in fields {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let before = before.and_then(|before| before.get(name));
                search(before, value, is_secret_name || is_secret(name), pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                let before = before.and_then(|before| before.get(index));
                search(before, value, is_secret_name, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::String(text) if is_masked(text, is_secret_name) => found.push(pointer.clone()),
        _ => {}
    }
}

/// Whether it is a mask: under a secret's name, or in place of the password of an address.
fn is_masked(text: &str, is_secret_name: bool) -> bool {
    (is_secret_name && text == MASK)
        || (text.contains("://") && text.contains(&format!(":{MASK}@")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edit_of_masked_params_keeps_the_secrets_and_changes_the_rest() {
        let stored = json!({"order": 7, "api_token": "hunter2", "login": {"password": "x", "user": "a"},
                            "urls": ["https://u:p@host/", "plain"]});
        let mut edited = mask_secrets(&stored);
        edited["order"] = json!(8);
        edited["login"]["user"] = json!("b");
        let mut expected = stored.clone();
        expected["order"] = json!(8);
        expected["login"]["user"] = json!("b");
        assert_eq!(restore_masked(&stored, &edited), expected);
        // A new secret is one, and a mask that was moved is found: it would become the secret.
        let moved =
            restore_masked(&stored, &json!({"api_token": "new", "other": {"password": "***"}}));
        assert_eq!(masked_places(&stored, &moved), ["/other/password"]);
    }

    #[test]
    fn a_patch_leads_from_what_was_there_to_what_is_to_be_there() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let before = object(json!({"a": 1, "b": {"c": 2, "d": "***"}, "e": [1], "f": {"g": 1}}));
        let after = object(json!({"a": 1, "b": {"c": 3, "d": "***"}, "e": [2], "f": 4, "h": {}}));
        let patch = merge_patch(&before, &after).unwrap();
        assert_eq!(patch, object(json!({"b": {"c": 3}, "e": [2], "f": 4, "h": {}})));
        let mut merged = before.clone();
        merge(&mut merged, &patch);
        assert_eq!(merged, after);
        merge(&mut merged, &merge_patch(&after, &before).unwrap());
        assert_eq!(merged, before);
    }

    #[test]
    fn what_no_patch_can_say_has_none() {
        let patch = |before: Value, after: Value| {
            merge_patch(before.as_object().unwrap(), after.as_object().unwrap()).map(Value::Object)
        };
        assert_eq!(patch(json!({"a": 1}), json!({"a": null})), None);
        assert_eq!(patch(json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": null}})), None);
        assert_eq!(patch(json!({"a": null, "b": 1}), json!({"a": null})), Some(json!({"b": null})));
        let logins = |user: &str| json!({"logins": [{"user": user, "password": MASK}]});
        assert_eq!(patch(logins("ann"), logins("ben")), None);
        assert_eq!(patch(logins("ann"), logins("ann")), Some(json!({})));
    }

    #[test]
    fn a_mask_that_came_back_is_found_wherever_a_secret_was_masked() {
        let before = json!({
            "customer": 7, "api_token": "hunter2", "db": {"password": {"a": "b"}, "a/b": "https://ann:x@shop.example"},
            "list": [{"secret": "s"}], "stars": "***", "pin": "***",
        });
        let shown = mask_secrets(&before);
        assert_eq!(
            masked_places(&before, &shown),
            ["/api_token", "/db/a~1b", "/db/password", "/list/0/secret"],
            "what stood there before is no mask"
        );
        assert_eq!(masked_places(&before, &before), Vec::<String>::new());
        let moved =
            json!({"list": [{"note": "***"}, {"secret": "***"}], "new": {"cookie": ["***"]}});
        assert_eq!(masked_places(&before, &moved), ["/list/1/secret", "/new/cookie/0"]);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let merged = |params: Value, patch: Value| {
            let (Value::Object(mut params), Value::Object(patch)) = (params, patch) else {
                unreachable!("both are objects");
            };
            merge(&mut params, &patch);
            Value::Object(params)
        };
        // Examples of RFC 7396, appendix A.
        for (params, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": [1]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": [2]}), json!({"a": [2]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"a": 7}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
        ] {
            assert_eq!(merged(params, patch), expected);
        }
    }
}
