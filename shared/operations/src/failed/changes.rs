//! Compares two JSON documents, place by place.
//!
//! Results contain the places without the values: params may hold secrets, and results end in terminals and logs.
//! Both documents are in the audit.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Maximum number of differences; further ones count as one.
pub const MAX_CHANGES: usize = 1_000;

/// One difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// The place, as a JSON pointer (RFC 6901); empty: the whole document.
    pub pointer: String,
    /// The kind of difference.
    pub kind: ChangeKind,
}

/// The kind of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ChangeKind {
    /// Only the new document has a value there.
    Added,
    /// Only the old document has a value there.
    Removed,
    /// The values differ.
    Changed,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            ChangeKind::Added => '+',
            ChangeKind::Removed => '-',
            ChangeKind::Changed => '~',
        };
        write!(f, "{sign} {}", if self.pointer.is_empty() { "/" } else { &self.pointer })
    }
}

/// Returns the differences from `before` to `after`, in the order of the places.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(before, after, &mut String::new(), &mut found);
    found
}

fn compare(before: &Value, after: &Value, pointer: &mut String, found: &mut Vec<Change>) {
    if before == after || found.len() >= MAX_CHANGES {
        return;
    }
    let changed = |kind| Change { pointer: pointer.clone(), kind };
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let step = name.replace('~', "~0").replace('/', "~1");
                compare_child(old.get(name), new.get(name), &step, pointer, found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                compare_child(old.get(index), new.get(index), &index.to_string(), pointer, found);
            }
        }
        _ => found.push(changed(ChangeKind::Changed)),
    }
}

fn compare_child(
    before: Option<&Value>,
    after: Option<&Value>,
    step: &str,
    pointer: &mut String,
    found: &mut Vec<Change>,
) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(step);
    let kind = match (before, after) {
        (Some(before), Some(after)) => {
            compare(before, after, pointer, found);
            None
        }
        (None, Some(_)) => Some(ChangeKind::Added),
        (Some(_), None) => Some(ChangeKind::Removed),
        (None, None) => None,
    };
    if let Some(kind) = kind
        && found.len() < MAX_CHANGES
    {
        found.push(Change { pointer: pointer.clone(), kind });
    }
    pointer.truncate(length);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(before: &Value, after: &Value) -> Vec<String> {
        changes(before, after).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn places_are_told_and_not_what_stands_there() {
        let before = json!({"a": 1, "b": {"c/d": "secret", "e": [1, 2, 3]}, "gone": null});
        let after = json!({"a": 1, "b": {"c/d": "other", "e": [1, 5]}, "new": {"x": 1}});
        assert_eq!(
            rendered(&before, &after),
            ["~ /b/c~1d", "~ /b/e/1", "- /b/e/2", "- /gone", "+ /new"]
        );
        assert_eq!(rendered(&before, &before), Vec::<String>::new());
        assert_eq!(rendered(&json!(1), &json!([])), ["~ /"]);
    }

    #[test]
    fn very_many_differences_are_not_all_told() {
        let many = json!(vec![0; 3 * MAX_CHANGES]);
        assert_eq!(changes(&many, &json!([])).len(), MAX_CHANGES);
    }
}
