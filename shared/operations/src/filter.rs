//! The request that selects executions, and its parsing into a filter.
//!
//! Every operation that selects by a filter takes this request, so that a list shows what a requeue, discard or cancel
//! of the same filter would select. All problems of a filter are reported at once.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::{
    FailureFilter, MAX_TEXT_CHARS, MAX_WORDS, ParamCondition, text_query,
};
use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_model::zone::Zone;
use sexton_store::Store;

use crate::error::{InvalidRequest, OperationError};
use crate::text::line;
use crate::{groups, instants, job_names};

/// Maximum length of a value, in characters; no stored value is longer.
const MAX_VALUE_CHARS: usize = 200;
/// Maximum number of conditions on params, and of labels.
const MAX_CONDITIONS: usize = 10;
/// Maximum length of the quoted input in a problem, in characters.
const MAX_ECHO_CHARS: usize = 60;

/// A filter for executions, in texts; an execution must meet every condition that is set.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FilterRequest {
    /// Of this job, even a deleted one.
    pub job: Option<String>,
    /// Of jobs whose names begin with this.
    pub job_prefix: Option<String>,
    /// Of this task type.
    pub task_type: Option<String>,
    /// Of this pool.
    pub pool: Option<String>,
    /// With this error class, as in `exit_1`.
    pub error_class: Option<String>,
    /// With these words in the error's message, in this order; the last one may be incomplete.
    pub text: Option<String>,
    /// Of this failure group, even a muted one: its fingerprint, or a unique beginning.
    pub group: Option<String>,
    /// At or after this; see [`crate::instants::parse`]. Executions by their nominal time, failed ones by when they
    /// failed, discarded ones by when they were discarded.
    pub since: Option<String>,
    /// Before this.
    pub until: Option<String>,
    /// With its last attempt on the worker of this name.
    pub worker: Option<String>,
    /// Of jobs with these labels, each as in `team=billing`.
    pub label: Vec<String>,
    /// With these in their params, each as in `customer=4891` or `order.id=7`.
    pub params: Vec<String>,
}

/// Which failures a filter selects, beyond its conditions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct FailureScope {
    /// Discarded executions instead of failed ones.
    pub discarded: bool,
    /// Also those of muted groups.
    pub muted: bool,
}

impl FilterRequest {
    /// Returns whether no condition is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Parses the request for failed or for discarded executions; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::Several`] with all problems; a single one as it is, which is [`crate::error::NotFound`] for
    /// a job or group that does not exist, with similar ones.
    pub async fn read_failures(
        &self,
        store: &Store,
        scope: FailureScope,
        now: DateTime<Utc>,
    ) -> Result<FailureFilter, OperationError> {
        let filter = self.read_executions(store, &[], now).await?;
        Ok(FailureFilter {
            discarded: scope.discarded,
            muted: scope.muted,
            job: filter.job,
            job_prefix: filter.job_prefix,
            task_type: filter.task_type,
            pool: filter.pool,
            error_class: filter.error_class,
            fingerprint: filter.fingerprint,
            worker: filter.worker,
            text: filter.text,
            since: filter.since,
            until: filter.until,
            labels: filter.labels,
            params: filter.params,
        })
    }

    /// Parses the request for executions in these states (empty: in any); `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// As [`Self::read_failures`].
    pub async fn read_executions(
        &self,
        store: &Store,
        states: &[State],
        now: DateTime<Utc>,
    ) -> Result<ExecutionFilter, OperationError> {
        let mut reader = FilterReader::default();
        let mut filter = ExecutionFilter {
            states: states.to_vec(),
            job_prefix: reader.value("job_prefix", self.job_prefix.as_deref()),
            task_type: reader.value("task_type", self.task_type.as_deref()),
            pool: reader.value("pool", self.pool.as_deref()),
            error_class: reader.value("error_class", self.error_class.as_deref()),
            worker: reader.value("worker", self.worker.as_deref()),
            text: reader.text(self.text.as_deref()),
            since: reader.instant("since", self.since.as_deref(), now),
            until: reader.instant("until", self.until.as_deref(), now),
            labels: reader.labels(&self.label),
            params: reader.params(&self.params),
            ..ExecutionFilter::default()
        };
        if let (Some(since), Some(until)) = (filter.since, filter.until)
            && since >= until
        {
            reader.problems.push(InvalidRequest::EmptyRange.into());
        }
        if let Some(name) = reader.value("job", self.job.as_deref()) {
            let found = job_names::find_including_deleted(store, &name).await;
            filter.job = reader.collect(found)?.map(|job| JobId::new(job.id));
        }
        if let Some(text) = &self.group {
            let found = groups::resolve_fingerprint(store, text).await;
            filter.fingerprint = reader.collect(found)?;
        }
        reader.finish(filter)
    }
}

/// Parses the labels that jobs must have, each as in `team=billing`.
///
/// # Errors
///
/// As [`FilterRequest::read_failures`].
pub fn read_labels(given: &[String]) -> Result<BTreeMap<String, String>, OperationError> {
    let mut reader = FilterReader::default();
    let labels = reader.labels(given);
    reader.finish(labels)
}

/// The problems found so far.
#[derive(Default)]
struct FilterReader {
    problems: Vec<OperationError>,
}

impl FilterReader {
    fn add_problem(&mut self, field: &'static str, problem: impl Into<String>) {
        self.problems.push(InvalidRequest::field(field, problem).into());
    }

    /// Collects a problem of the request; returns an error of the database.
    fn collect<T>(&mut self, read: Result<T, OperationError>) -> Result<Option<T>, OperationError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ (OperationError::Store(_) | OperationError::Failed(_))) => Err(error),
            Err(problem) => {
                self.problems.push(problem);
                Ok(None)
            }
        }
    }

    fn value(&mut self, field: &'static str, value: Option<&str>) -> Option<String> {
        let value = value?;
        if value.is_empty() || value.contains('\0') || value.chars().count() > MAX_VALUE_CHARS {
            let echo = line(value, MAX_ECHO_CHARS);
            let problem = format!("{echo:?} is none; give 1 to {MAX_VALUE_CHARS} characters");
            self.add_problem(field, problem);
            return None;
        }
        Some(value.to_owned())
    }

    fn text(&mut self, text: Option<&str>) -> Option<String> {
        let text = text?;
        if text_query(text).is_none() {
            let problem = format!(
                "{:?} cannot be looked for; give 1 to {MAX_WORDS} words, at most \
                 {MAX_TEXT_CHARS} characters",
                line(text, MAX_ECHO_CHARS)
            );
            self.add_problem("text", problem);
            return None;
        }
        Some(text.to_owned())
    }

    fn instant(
        &mut self,
        field: &'static str,
        text: Option<&str>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        instants::parse(text?, Zone::UTC, now)
            .map_err(|problem| self.add_problem(field, problem.to_string()))
            .ok()
    }

    fn check_count(&mut self, field: &'static str, given: usize) {
        if given > MAX_CONDITIONS {
            let problem = format!("is given {given} times, at most {MAX_CONDITIONS} can be");
            self.add_problem(field, problem);
        }
    }

    fn labels(&mut self, given: &[String]) -> BTreeMap<String, String> {
        self.check_count("label", given.len());
        let mut labels = BTreeMap::new();
        for text in given {
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
                    let before = labels.insert(name.to_owned(), value.to_owned());
                    if before.is_some_and(|before| before != value) {
                        let name = line(name, MAX_ECHO_CHARS);
                        self.add_problem("label", format!("{name} has two values"));
                    }
                }
                _ => {
                    let echo = line(text, MAX_ECHO_CHARS);
                    let problem = format!("{echo:?} is none; write it as in team=billing");
                    self.add_problem("label", problem);
                }
            }
        }
        labels
    }

    fn params(&mut self, given: &[String]) -> Vec<ParamCondition> {
        self.check_count("params", given.len());
        let mut params = Vec::new();
        for text in given.iter().take(MAX_CONDITIONS) {
            match text.parse() {
                Ok(condition) => params.push(condition),
                Err(problem) => {
                    let echo = line(text, MAX_ECHO_CHARS);
                    self.add_problem("params", format!("{echo:?} {problem}"));
                }
            }
        }
        params
    }

    fn finish<T>(mut self, filter: T) -> Result<T, OperationError> {
        match self.problems.len() {
            0 => Ok(filter),
            1 => Err(self.problems.remove(0)),
            _ => Err(InvalidRequest::Several(self.problems).into()),
        }
    }
}
