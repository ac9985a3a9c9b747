//! What changed in a job's schedule and policies, revision by revision.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sexton_store::Store;
use sexton_store::jobs::{Job, list_revisions};

use super::apply::mask_field;
use crate::error::OperationError;

/// A changed field of a revision.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChangedField {
    /// The column's name.
    pub field: String,
    /// The value before.
    pub from: Value,
    /// The value since.
    pub to: Value,
}

/// A revision, compared with the one before.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Revision {
    /// Its number.
    pub number: i32,
    /// From when on it holds.
    pub valid_from: DateTime<Utc>,
    /// What it changed; `None`: the one before is not known any more, or this is the first.
    pub changes: Option<Vec<ChangedField>>,
}

/// Returns a job's newest revisions, at most `limit`, the newest first; values that look like secrets are masked.
///
/// Revisions record schedule and policies. A change of the params, the description or the labels alone is in the audit, and
/// makes a revision without a changed field.
///
/// # Errors
///
/// Those of the database.
pub async fn list(store: &Store, job: &Job, limit: i64) -> Result<Vec<Revision>, OperationError> {
    let rows = list_revisions(store, job.id, limit.saturating_add(1)).await?;
    let revisions = rows.iter().enumerate().map(|(index, row)| Revision {
        number: row.number,
        valid_from: row.valid_from,
        changes: rows.get(index + 1).map(|before| compare(&before.definition, &row.definition)),
    });
    Ok(revisions.take(usize::try_from(limit).unwrap_or_default()).collect())
}

/// A secret is compared as it is, and shown masked.
fn compare(before: &Value, after: &Value) -> Vec<ChangedField> {
    let fields: BTreeSet<&String> = [before, after]
        .iter()
        .filter_map(|one| one.as_object())
        .flat_map(|one| one.keys())
        .collect();
    let masked = |document: &Value, field: &str| mask_field(field, document[field].clone());
    fields
        .into_iter()
        // A column that an older version did not have is null there.
        .filter(|field| before[field.as_str()] != after[field.as_str()])
        .map(|field| ChangedField {
            field: field.clone(),
            from: masked(before, field),
            to: masked(after, field),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_secret_is_a_change_whose_values_are_not_shown() {
        let before = json!({"pool": "a", "heartbeat": {"url": "u", "api_token": "x"}});
        let after = json!({"pool": "b", "heartbeat": {"url": "u", "api_token": "y"}, "days": null});
        let changes = compare(&before, &after);
        let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(
            fields,
            ["heartbeat", "pool"],
            "null is no change of a column that was not there"
        );
        assert_eq!(changes[0].from, changes[0].to);
        assert!(!changes[0].to.to_string().contains('y'));
        assert_eq!((&changes[1].from, &changes[1].to), (&json!("a"), &json!("b")));
    }
}
