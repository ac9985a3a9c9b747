//! Bulks in words.

use std::collections::HashMap;

use serde_json::Value;
use sexton_model::bulk::BulkKind;
use sexton_store::bulk::Bulk;
use uuid::Uuid;

/// What a bulk does, as a verb.
pub(super) fn verb(kind: &str) -> &'static str {
    match kind {
        _ if kind == BulkKind::Discard.as_str() => "Discard",
        _ if kind == BulkKind::Restore.as_str() => "Restore",
        _ if kind == BulkKind::Cancel.as_str() => "Cancel",
        _ => "Requeue",
    }
}

/// What its state means, in a sentence.
pub(super) fn state_sentence(bulk: &Bulk) -> String {
    let canary = bulk.canary.filter(|_| !bulk.canary_passed && bulk.ended_at.is_none());
    match (bulk.state.as_str(), canary) {
        ("preparing", _) => "It looks for the executions that it is about.".to_owned(),
        ("running", Some(canary)) => format!(
            "It acts on a canary of {canary} first; the others follow only if all of these end well."
        ),
        ("running", None) if bulk.rate.is_some() => {
            "It acts on one execution after the other, not faster than its rate.".to_owned()
        }
        ("running", None) => "It acts on one execution after the other.".to_owned(),
        ("paused", _) => {
            "It waits for you: something went wrong. Resume lets it go on with the rest.".to_owned()
        }
        ("stopped", _) => {
            "Somebody stopped it. What is done stays done; the rest is left as it was.".to_owned()
        }
        ("done", _) => "It has ended.".to_owned(),
        (other, _) => format!("It is {other}."),
    }
}

/// The job that a selector names by its id.
pub(super) fn job(selector: &Value) -> Option<Uuid> {
    selector.pointer("/filter/job")?.as_str()?.parse().ok()
}

/// The executions that a bulk selects, a text for each condition. `jobs` has the names of jobs.
pub(super) fn conditions(selector: &Value, jobs: &HashMap<Uuid, String>) -> Vec<String> {
    if let Some(bulk) = selector.get("bulk").and_then(Value::as_i64) {
        return vec![format!("those that bulk {bulk} has discarded")];
    }
    let Some(filter) = selector.get("filter").and_then(Value::as_object) else {
        return vec!["the executions that were named".to_owned()];
    };
    if filter.is_empty() {
        return vec!["all that had failed, except those of muted groups".to_owned()];
    }
    let job = job(selector).and_then(|job| jobs.get(&job));
    let in_words = |(name, value): (&String, &Value)| match (name.as_str(), job) {
        ("job", Some(job)) => vec![format!("of job {job}")],
        (name, _) => condition(name, value),
    };
    filter.iter().flat_map(in_words).collect()
}

fn condition(name: &str, value: &Value) -> Vec<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let each = |write: fn(&Value) -> String| -> Vec<String> {
        value.as_array().into_iter().flatten().map(write).collect()
    };
    let one = match name {
        "discarded" => "discarded ones".to_owned(),
        "muted" => "also those of muted groups".to_owned(),
        "job" => format!("of the job with id {text}"),
        "job_prefix" => format!("of jobs whose names begin with {text}"),
        "task_type" => format!("of task type {text}"),
        "pool" => format!("of pool {text}"),
        "error_class" => format!("with the error class {text}"),
        "fingerprint" => format!("of group {text}"),
        "worker" => format!("with the last attempt on worker {text}"),
        "text" => format!("with “{text}” in the error"),
        "since" => format!("at or after {text}"),
        "until" => format!("before {text}"),
        "states" => {
            let states = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("in state {}", states.collect::<Vec<_>>().join(" or "))
        }
        "labels" => {
            let labels = value.as_object().into_iter().flatten();
            let label = |(key, value): (&String, &Value)| {
                format!("of jobs with the label {key}={}", value.as_str().unwrap_or_default())
            };
            return labels.map(label).collect();
        }
        "params" => return each(param),
        other => format!("{other}: {text}"),
    };
    vec![one]
}

fn param(condition: &Value) -> String {
    let path = condition["path"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let path = path.collect::<Vec<_>>().join(".");
    format!("with {path}={} in the params", condition["value"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sexton_model::failures::{FailureFilter, ParamCondition};

    use super::*;

    #[test]
    fn a_filter_is_described_by_its_conditions() {
        let none = HashMap::new();
        let params =
            vec![ParamCondition { path: vec!["order".into(), "id".into()], value: "7".into() }];
        let filter = FailureFilter {
            pool: Some("reports".into()),
            labels: [("team".to_owned(), "billing".to_owned())].into(),
            params,
            muted: true,
            ..FailureFilter::default()
        };
        let mut found = conditions(&json!({"filter": filter}), &none);
        found.sort();
        let expected = [
            "also those of muted groups",
            "of jobs with the label team=billing",
            "of pool reports",
            "with order.id=7 in the params",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            conditions(&json!({"filter": FailureFilter::default()}), &none),
            ["all that had failed, except those of muted groups"]
        );
        let id = Uuid::from_u128(7);
        let of_job = json!({"filter": {"job": id}});
        assert_eq!(conditions(&of_job, &[(id, "a.b".to_owned())].into()), ["of job a.b"]);
        assert_eq!(conditions(&of_job, &none), [format!("of the job with id {id}")]);
        assert_eq!(conditions(&json!({"ids": 3}), &none), ["the executions that were named"]);
        assert_eq!(conditions(&json!({"bulk": 7}), &none), ["those that bulk 7 has discarded"]);
    }
}
