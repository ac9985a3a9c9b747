//! Masks secrets in rows for display, by the rule of [`mask_secrets`]. Stored rows and the values that tasks receive
//! are not masked.

use serde_json::Value;
use sexton_model::failures::{MASK, is_secret, mask_secrets};
use sexton_store::bulk::Bulk;
use sexton_store::executions::Execution;
use sexton_store::jobs::Job;
use sexton_store::operator::OperatorAction;

/// Returns params that a person edited with masked values in them: where a value is masked still, the stored one stands again. A mask in
/// another place stands for nothing.
///
/// # Errors
///
/// The JSON pointers of such masks.
pub fn restore_masked(stored: &Value, edited: &Value) -> Result<Value, Vec<String>> {
    let mut strays = Vec::new();
    let restored = restore(Some(stored), edited, false, &mut String::new(), &mut strays);
    if strays.is_empty() { Ok(restored) } else { Err(strays) }
}

/// `is_secret_name`: whether the value is that of a field whose values are masked.
fn restore(
    stored: Option<&Value>,
    edited: &Value,
    is_secret_name: bool,
    pointer: &mut String,
    strays: &mut Vec<String>,
) -> Value {
    if let Some(stored) = stored {
        let masked = if is_secret_name { Value::from(MASK) } else { mask_secrets(stored) };
        if *edited == masked {
            return stored.clone();
        }
    }
    if is_secret_name && *edited == MASK {
        strays.push(pointer.clone());
    }
    let mut within = |name: &str, value: &Value, is_secret_name: bool| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let before = stored.and_then(|stored| match stored {
            Value::Array(values) => values.get(name.parse::<usize>().ok()?),
            stored => stored.get(name),
        });
        let value = restore(before, value, is_secret_name, pointer, strays);
        pointer.truncate(length);
        value
    };
    match edited {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), within(name, value, is_secret(name))))
                .collect()
        }
        Value::Array(values) => {
            let values = values.iter().enumerate();
            values.map(|(index, value)| within(&index.to_string(), value, false)).collect()
        }
        other => other.clone(),
    }
}

/// Masks the params of executions.
pub fn mask_executions(executions: &mut [Execution]) {
    for execution in executions {
        execution.params = mask_secrets(&execution.params);
    }
}

/// Masks the actions' values before and after.
pub fn mask_actions(actions: &mut [OperatorAction]) {
    for action in actions {
        action.before = action.before.as_ref().map(mask_secrets);
        action.after = action.after.as_ref().map(mask_secrets);
        // Of an action that began a bulk.
        if let Some(after) = &mut action.after {
            mask_conditions(after, "/asked/filter/params");
        }
    }
}

/// Masks what a job's definition gives to its executions, the members of its flow, and its heartbeat.
pub fn mask_job(job: &mut Job) {
    job.params = mask_secrets(&job.params);
    job.flow = job.flow.as_ref().map(mask_secrets);
    job.heartbeat = job.heartbeat.as_ref().map(mask_secrets);
}

/// Masks the values of params by which a bulk selects.
pub fn mask_bulk(bulk: &mut Bulk) {
    mask_conditions(&mut bulk.selector, "/filter/params");
}

/// Masks the values of conditions on params whose path has a secret's name.
fn mask_conditions(document: &mut Value, pointer: &str) {
    let conditions = document.pointer_mut(pointer).and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let names = condition["path"].as_array().into_iter().flatten();
        if names.filter_map(Value::as_str).any(is_secret) {
            condition["value"] = Value::from(MASK);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sexton_model::failures::{FailureFilter, ParamCondition};

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
        assert_eq!(restore_masked(&stored, &edited), Ok(expected));
        // A new secret is one, and a mask that was moved is refused: it would become the secret.
        let changed = json!({"api_token": "new", "other": {"password": "***"}});
        assert_eq!(restore_masked(&stored, &changed), Err(vec!["/other/password".to_owned()]));
        let changed = json!({"api_token": "new"});
        assert_eq!(restore_masked(&stored, &changed), Ok(changed));
    }

    #[test]
    fn a_bulk_does_not_show_the_secret_by_which_it_selects() {
        let condition = |path: &[&str], value: &str| ParamCondition {
            path: path.iter().map(|&name| name.to_owned()).collect(),
            value: value.to_owned(),
        };
        let params =
            vec![condition(&["customer"], "7"), condition(&["login", "api_token"], "hunter2")];
        let filter = FailureFilter { params, ..FailureFilter::default() };
        let mut row = json!({"asked": {"filter": filter}});
        mask_conditions(&mut row, "/asked/filter/params");
        let params = &row["asked"]["filter"]["params"];
        assert_eq!((&params[0]["value"], &params[1]["value"]), (&json!("7"), &json!(MASK)));
        mask_conditions(&mut json!({"ids": []}), "/filter/params");
    }
}
