//! Compares a job with its new definition.

use std::fmt;

use serde_json::Value;

use super::{COLUMNS, JobSpec};

/// A changed field.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldChange {
    /// The column's name.
    pub field: &'static str,
    /// The old value.
    pub from: Value,
    /// The new value.
    pub to: Value,
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.field, self.from, self.to)
    }
}

/// Returns the fields in which `new` differs from `old`, in the order of [`COLUMNS`]. Empty exactly when applying
/// `new` would change nothing.
pub fn diff(old: &JobSpec, new: &JobSpec) -> Vec<FieldChange> {
    let (old, new) = (old.to_json(), new.to_json());
    COLUMNS
        .iter()
        .filter(|&&field| !same(&old[field], &new[field]))
        .map(|&field| FieldChange { field, from: old[field].clone(), to: new[field].clone() })
        .collect()
}

/// Compares values that went through the database: jsonb stores numbers as decimals, so a float such as 1e17 comes
/// back as an integer.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job::{MIN_PERIOD, Overlap, Schedule};

    #[test]
    fn a_job_does_not_differ_from_itself() {
        let job = JobSpec::new("a", "t", Schedule::None);
        assert_eq!(diff(&job, &job.clone()), []);
    }

    #[test]
    fn a_number_that_the_database_writes_differently_is_no_change() {
        let with = |params| JobSpec { params, ..JobSpec::new("a", "t", Schedule::None) };
        let file = with(json!({"a": [1e17, 1.5]}));
        let stored = with(json!({"a": [100_000_000_000_000_000_u64, 1.5]}));
        assert_eq!(diff(&stored, &file), []);
        assert_eq!(diff(&stored, &with(json!({"a": [1e17, 1.25]}))).len(), 1);
        assert_eq!(diff(&stored, &with(json!({"b": [1e17, 1.5]}))).len(), 1);
    }

    #[test]
    fn each_changed_field_is_named_with_both_values() {
        let old = JobSpec::new("a", "t", Schedule::None);
        let new = JobSpec {
            overlap: Overlap::Skip,
            params: json!({"report": "invoices"}),
            ..JobSpec::new("a", "t", Schedule::every(MIN_PERIOD))
        };
        let lines: Vec<_> = diff(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                r#"schedule_kind: "none" -> "every""#,
                r#"schedule_expression: null -> "1s""#,
                r#"params: {} -> {"report":"invoices"}"#,
                r#"overlap: "allow" -> "skip""#,
            ]
        );
    }
}
