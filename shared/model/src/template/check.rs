//! Whether the placeholders of a job can be filled.

use serde_json::Value;

use super::{Placeholder, has_placeholder, placeholders};
use crate::job::{JobSpec, MAX_PARAMS_BYTES, Schedule};

/// The most placeholders of one job.
pub const MAX_PLACEHOLDERS: usize = 100;
/// The longest idempotency key once it is filled, in bytes.
pub const MAX_FILLED_KEY_BYTES: usize = 1_024;
/// The field of the idempotency key in a jobs file.
pub const KEY_FIELD: &str = "idempotency_key";
/// An execution key, a name and an instant in any format are no longer than this.
const MAX_VALUE_BYTES: usize = 300;

/// Checks the placeholders of a job whose texts are templates one by one; returns fields and problems.
pub fn check_job(job: &JobSpec) -> Vec<(&'static str, String)> {
    let mut checking = Check { job, problems: Vec::new(), number: 0 };
    let mut bytes = 0;
    checking.value(&job.params, &mut bytes);
    if bytes > 0 {
        bytes += serde_json::to_string(&job.params).map_or(0, |text| text.len());
    }
    if bytes > MAX_PARAMS_BYTES {
        let message =
            format!("can have more than {MAX_PARAMS_BYTES} bytes when its placeholders are filled");
        checking.problems.push(("params", message));
    }
    if let Some(template) = &job.idempotency_template {
        checking.key(template);
    }
    if checking.number > MAX_PLACEHOLDERS {
        let message = format!("{} placeholders are more than {MAX_PLACEHOLDERS}", checking.number);
        checking.problems.push(("params", message));
    }
    checking.problems
}

struct Check<'j> {
    job: &'j JobSpec,
    problems: Vec<(&'static str, String)>,
    number: usize,
}

impl Check<'_> {
    /// Checks the texts of a value, and adds by how much its placeholders can make it longer.
    fn value(&mut self, value: &Value, bytes: &mut usize) {
        match value {
            Value::String(text) => *bytes += self.text("params", text, |_| None),
            Value::Array(values) => values.iter().for_each(|value| self.value(value, bytes)),
            Value::Object(fields) => fields.values().for_each(|value| self.value(value, bytes)),
            _ => {}
        }
    }

    fn key(&mut self, template: &str) {
        let scalar = |value: &Value| match value {
            Value::Array(_) | Value::Object(_) => {
                Some("is a list or a table, of which no key can consist")
            }
            Value::String(text) if text.chars().any(char::is_control) => {
                Some("holds a control character, which no header can carry")
            }
            _ => None,
        };
        let filled = template.len() + self.text(KEY_FIELD, template, scalar);
        if filled > MAX_FILLED_KEY_BYTES && self.fires() {
            let message = format!(
                "can have {filled} bytes when it is filled; {MAX_FILLED_KEY_BYTES} at most"
            );
            self.problems.push((KEY_FIELD, message));
        }
        if !self.tells_executions_apart(template) {
            let more = if self.fires() { "" } else { ", or a param" };
            let message = format!(
                "must contain {{execution_key}} or the nominal time{more}; otherwise all executions of the job \
                 would have the same key and all but the first be taken for repetitions"
            );
            self.problems.push((KEY_FIELD, message));
        }
    }

    fn tells_executions_apart(&self, template: &str) -> bool {
        template.contains("{execution_key}")
            || placeholders(template).is_ok_and(|found| {
                found.iter().any(|one| match one {
                    Placeholder::ExecutionKey | Placeholder::ScheduledFor(_) => true,
                    Placeholder::Param(_) => !self.fires(),
                    _ => false,
                })
            })
    }

    /// Whether the job's own params are all that a firing has.
    fn fires(&self) -> bool {
        self.job.schedule != Schedule::None
    }

    fn repeats(&self) -> bool {
        matches!(self.job.schedule, Schedule::Cron { .. } | Schedule::Every { .. })
    }

    /// Checks one text; returns by how much its placeholders can make it longer. Texts that are no templates were reported
    /// where they stand.
    fn text(
        &mut self,
        field: &'static str,
        text: &str,
        unfit: impl Fn(&Value) -> Option<&'static str>,
    ) -> usize {
        let found = placeholders(text).unwrap_or_default();
        self.number += found.len();
        let mut bytes = 0;
        for one in found {
            match one {
                Placeholder::Param(path) => bytes += self.param(field, path, &unfit),
                Placeholder::PreviousScheduledFor(_) if !self.repeats() => {
                    let message = "previous_scheduled_for needs a schedule that repeats, which this job does not have";
                    self.problems.push((field, message.to_owned()));
                }
                Placeholder::Upstream { member, .. } => {
                    let message = format!(
                        "upstream.{member} has a value in the results of a flow's member alone"
                    );
                    self.problems.push((field, message));
                }
                _ => bytes += MAX_VALUE_BYTES,
            }
        }
        bytes
    }

    /// Checks the param at a path; returns its length.
    fn param(
        &mut self,
        field: &'static str,
        path: &str,
        unfit: impl Fn(&Value) -> Option<&'static str>,
    ) -> usize {
        let value = path.split('.').try_fold(&self.job.params, |value, step| value.get(step));
        let problem = match value {
            None | Some(Value::Null) if self.fires() => {
                Some("is not among the job's params, and a firing has no others")
            }
            None | Some(Value::Null) => None,
            Some(value) if has_placeholder(value) => {
                Some("has placeholders itself; a placeholder is filled once, so write what it has")
            }
            Some(value) => unfit(value),
        };
        self.problems.extend(problem.map(|problem| (field, format!("params.{path} {problem}"))));
        value.and_then(|value| serde_json::to_string(value).ok()).map_or(0, |text| text.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn problems(params: Value, key: Option<&str>, schedule: Schedule) -> String {
        let job = JobSpec {
            params,
            idempotency_template: key.map(str::to_owned),
            ..JobSpec::new("a.b", "t", schedule)
        };
        let found = check_job(&job);
        found
            .iter()
            .fold(String::new(), |all, (field, message)| all + field + ": " + message + "\n")
    }

    #[test]
    fn placeholders_that_a_firing_can_fill_are_accepted() {
        let fires = || Schedule::every(Duration::from_mins(1));
        let params = json!({
            "from": "{{ previous_scheduled_for }}", "to": ["{{ scheduled_for | date(\"%F\") }}"],
            "tenant": {"id": 7}, "copy": "{{ params.tenant }}",
        });
        let key = "x:{{ params.tenant.id }}:{{ scheduled_for | date(\"%Y-%m\") }}";
        assert_eq!(problems(params, Some(key), fires()), "");
        // A caller gives the params of a job that does not fire by itself.
        assert_eq!(problems(json!({}), Some("x:{{ params.id }}"), Schedule::None), "");
    }

    #[test]
    fn what_could_not_be_filled_is_refused_by_its_field() {
        let fires = || Schedule::every(Duration::from_mins(1));
        for (params, key, schedule, expected) in [
            (json!({"a": "{{ params.b }}"}), None, fires(), "params: params.b is not among"),
            (
                json!({"a": "{{ params.b }}", "b": "{{ job }}"}),
                None,
                fires(),
                "params: params.b has placeholders",
            ),
            (
                json!({"a": "{{ previous_scheduled_for }}"}),
                None,
                Schedule::None,
                "params: previous_scheduled_for needs",
            ),
            (
                json!({"a": "{{ upstream.b.result }}"}),
                None,
                fires(),
                "params: upstream.b has a value",
            ),
            (
                json!({"a": [1]}),
                Some("{execution_key}{{ params.a }}"),
                fires(),
                "idempotency_key: params.a is a list",
            ),
            (
                json!({"a": "\n"}),
                Some("{execution_key}{{ params.a }}"),
                fires(),
                "idempotency_key: params.a holds a control",
            ),
            (
                json!({"a": 1}),
                Some("{{ params.a }}"),
                fires(),
                "idempotency_key: must contain {execution_key} or the nominal time;",
            ),
            (
                json!({}),
                Some("{job}"),
                Schedule::None,
                "idempotency_key: must contain {execution_key} or the nominal time, or a param",
            ),
            (
                json!({"a": "x".repeat(2_000)}),
                Some("{execution_key}{{ params.a }}"),
                fires(),
                "idempotency_key: can have",
            ),
            (json!({"a": "{{ job }}".repeat(101)}), None, fires(), "params: 101 placeholders"),
            (
                json!({"a": "x".repeat(100_000), "b": "{{ params.a }}".repeat(2)}),
                None,
                fires(),
                "params: can have more than 262144",
            ),
        ] {
            let found = problems(params, key, schedule);
            assert!(found.starts_with(expected), "{expected}: {found}");
            assert_eq!(found.lines().count(), 1, "{found}");
        }
    }
}
