//! The filter that selects failed executions.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::ParamCondition;
use crate::fingerprint::Fingerprint;
use crate::id::JobId;

/// A filter for failed executions; an execution must meet every condition that is set. The default: all failed ones,
/// except in muted groups.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FailureFilter {
    /// Select discarded executions instead of failed ones.
    #[serde(skip_serializing_if = "is_false")]
    pub discarded: bool,
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
    /// With this class of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<String>,
    /// Of this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// With its last attempt on the worker of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// With these words in this order in the message; see [`super::text_query`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Failed (or discarded) at or after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// Failed (or discarded) before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Of jobs that currently have all these labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// With all these in their params.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<ParamCondition>,
    /// Also of muted groups.
    #[serde(skip_serializing_if = "is_false")]
    pub muted: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl FailureFilter {
    /// Returns whether the filter has no conditions: it matches every failed (or discarded) execution.
    pub fn matches_everything(&self) -> bool {
        *self == Self { discarded: self.discarded, muted: self.muted, ..Self::default() }
    }

    /// Returns whether muted groups are left out. A filter that names a fingerprint includes its group, and discarded
    /// executions are always included.
    pub const fn excludes_muted(&self) -> bool {
        !self.muted && !self.discarded && self.fingerprint.is_none()
    }
}

/// Displays the command-line options of the filter; a job by its id. Not escaped for a terminal.
impl fmt::Display for FailureFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.discarded { "discarded" } else { "failed" })?;
        let at = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let options = [
            ("--job", self.job.map(|id| id.to_string())),
            ("--job-prefix", self.job_prefix.clone()),
            ("--task-type", self.task_type.clone()),
            ("--pool", self.pool.clone()),
            ("--error-class", self.error_class.clone()),
            ("--group", self.fingerprint.map(|fingerprint| fingerprint.to_string())),
            ("--worker", self.worker.clone()),
            ("--text", self.text.clone()),
            ("--since", self.since.map(at)),
            ("--until", self.until.map(at)),
        ];
        for (option, value) in options.into_iter().filter_map(|(o, value)| Some((o, value?))) {
            write!(f, " {option} {value}")?;
        }
        for (name, value) in &self.labels {
            write!(f, " --label {name}={value}")?;
        }
        for condition in &self.params {
            write!(f, " --params {condition}")?;
        }
        if self.muted { f.write_str(" --muted") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::fingerprint::fingerprint;

    fn full() -> FailureFilter {
        FailureFilter {
            discarded: true,
            job: Some(JobId::new(Uuid::from_u128(7))),
            job_prefix: Some("shop.".into()),
            task_type: Some("charge".into()),
            pool: Some("default".into()),
            error_class: Some("exit_1".into()),
            fingerprint: Some(fingerprint("exit_1", "exit code 1")),
            worker: Some("worker-1".into()),
            text: Some("card declined".into()),
            since: Some("2026-01-01T00:00:00.000001Z".parse().unwrap()),
            until: Some("2026-01-02T00:00:00Z".parse().unwrap()),
            labels: [("team".to_owned(), "billing".to_owned())].into(),
            params: vec!["order.id=7".parse().unwrap()],
            muted: true,
        }
    }

    #[test]
    fn a_filter_is_read_back_as_it_was_stored() {
        for filter in [FailureFilter::default(), full()] {
            let stored = serde_json::to_value(&filter).unwrap();
            assert_eq!(serde_json::from_value::<FailureFilter>(stored).unwrap(), filter);
        }
        assert_eq!(serde_json::to_value(FailureFilter::default()).unwrap(), json!({}));
        // Without its new field, a later version's filter would match too much.
        assert!(serde_json::from_value::<FailureFilter>(json!({"colour": "red"})).is_err());
    }

    #[test]
    fn only_a_filter_that_asks_for_nothing_is_everything() {
        assert!(FailureFilter::default().matches_everything());
        assert!(
            FailureFilter { discarded: true, muted: true, ..FailureFilter::default() }
                .matches_everything()
        );
        let stored = serde_json::to_value(full()).unwrap();
        for (name, value) in stored.as_object().unwrap() {
            let one: FailureFilter = serde_json::from_value(json!({name: value})).unwrap();
            assert_eq!(
                one.matches_everything(),
                ["discarded", "muted"].contains(&name.as_str()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_filter_tells_itself_by_its_options() {
        assert_eq!(FailureFilter::default().to_string(), "failed");
        let displayed = full().to_string();
        for part in ["discarded --job 0000", "--label team=billing --params order.id=7 --muted"] {
            assert!(displayed.contains(part), "{displayed}");
        }
    }
}
