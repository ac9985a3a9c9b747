//! Masks secrets in rows for display, by the rule of [`mask_secrets`]. Stored rows and the values that tasks receive
//! are not masked.

use serde_json::Value;
use sexton_model::failures::{MASK, is_secret, mask_secrets};
use sexton_store::approvals::ApprovalRequest;
use sexton_store::bulk::Bulk;
use sexton_store::executions::Execution;
use sexton_store::jobs::Job;
use sexton_store::operator::OperatorAction;

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
            mask_conditions(after, "/proposal/filter/params");
        }
        if action.action == "apply_alerts" {
            action.before.iter_mut().chain(&mut action.after).for_each(mask_channels);
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

/// Masks the params of an edit, and those by which a bulk selects, in a request for approval.
pub fn mask_request(request: &mut ApprovalRequest) {
    request.proposal = mask_proposal(&request.proposal);
}

/// Masks the params of an edit, and those by which a bulk selects. The digest of the params that the person had seen goes, too: a short secret could be
/// found by it.
pub(crate) fn mask_proposal(proposal: &Value) -> Value {
    let mut masked = mask_secrets(proposal);
    if let Some(fields) = masked.as_object_mut() {
        fields.remove("seen");
    }
    mask_conditions(&mut masked, "/filter/params");
    masked
}

/// Masks where channels lead, in the record of an alerts file: the audit is for viewers, and such a file for editors.
fn mask_channels(document: &mut Value) {
    let channels = document.get_mut("channels").and_then(Value::as_array_mut);
    for channel in channels.into_iter().flatten() {
        if let Some(config) = channel.get_mut("config") {
            mask_texts(config);
        }
    }
}

/// Masks every text of a document.
fn mask_texts(value: &mut Value) {
    match value {
        Value::String(_) => *value = Value::from(MASK),
        Value::Array(values) => values.iter_mut().for_each(mask_texts),
        Value::Object(fields) => fields.values_mut().for_each(mask_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
