//! The filter that selects executions in any state.
//!
//! It is stored as JSON with bulks, so its names are part of the database's contract: fields are added, never renamed.
//! [`crate::failures::FailureFilter`] has the same conditions for failed executions, by when they failed.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::failures::ParamCondition;
use crate::fingerprint::Fingerprint;
use crate::id::JobId;
use crate::state::State;

/// A filter for executions; an execution must meet every condition that is set. The default: all.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionFilter {
    /// In one of these states; empty: in any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<State>,
    /// Of this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Of jobs whose names begin with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_prefix: Option<String>,
    /// Of this task type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// Of this pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// With this class of error in the last failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<String>,
    /// Of this failure group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// With its last attempt on the worker of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// With these words in this order in the error's message; see [`crate::failures::text_query`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// With a nominal time at or after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// With a nominal time before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Of jobs that currently have all these labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// With all these in their params.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ParamCondition>,
}

impl ExecutionFilter {
    /// Returns whether the filter has no conditions.
    pub fn matches_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether it selects only states for which `is_such` holds.
    pub fn selects_only(&self, is_such: impl Fn(State) -> bool) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| is_such(*state))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_is_read_back_as_it_was_stored_and_a_later_versions_filter_is_refused() {
        let filter = ExecutionFilter {
            states: vec![State::Pending, State::Running],
            pool: Some("default".into()),
            since: Some("2026-01-01T00:00:00.000001Z".parse().unwrap()),
            labels: [("team".to_owned(), "billing".to_owned())].into(),
            params: vec!["order.id=7".parse().unwrap()],
            ..ExecutionFilter::default()
        };
        let stored = serde_json::to_value(&filter).unwrap();
        assert_eq!(stored["states"], json!(["pending", "running"]));
        assert_eq!(serde_json::from_value::<ExecutionFilter>(stored).unwrap(), filter);
        assert_eq!(serde_json::to_value(ExecutionFilter::default()).unwrap(), json!({}));
        assert!(serde_json::from_value::<ExecutionFilter>(json!({"colour": "red"})).is_err());
        assert!(!filter.matches_everything() && ExecutionFilter::default().matches_everything());
        assert!(filter.selects_only(State::is_under_way));
        assert!(!ExecutionFilter::default().selects_only(State::is_under_way));
    }
}
