//! The options that select failed executions, and the filter that they are read into.
//!
//! Every command that selects by a filter has these options and no others, so that a list shows what a requeue
//! or discard of the same filter would take. Everything that is wrong with a filter is reported at once.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::failures::{
    FailureFilter, MAX_TEXT_CHARS, MAX_WORDS, ParamCondition, text_query,
};
use sexton_model::id::JobId;
use sexton_store::{Store, jobs};

use super::group;
use crate::commands::{instant, jobs as job_commands};
use crate::failure::Failure;
use crate::show::line;

/// The longest value, in characters: longer ones are nowhere.
const MAX_VALUE_CHARS: usize = 200;
/// The most conditions on params, and the most labels.
const MAX_CONDITIONS: usize = 10;
/// Of what was written, in a problem.
const MAX_ECHO_CHARS: usize = 60;

/// Which executions; all that is given must hold. Empty: everything that failed, but for muted groups.
#[derive(Clone, Default, PartialEq, Eq, Debug, Args)]
pub struct FilterArguments {
    /// Of this job, even if it was deleted
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Of this task type
    #[arg(long, value_name = "TYPE")]
    pub task_type: Option<String>,
    /// Of this pool
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// With this class of error, as in exit_1
    #[arg(long, value_name = "CLASS")]
    pub error_class: Option<String>,
    /// With these words in the message, one after the other; the last one may be begun only
    #[arg(long, value_name = "WORDS")]
    pub text: Option<String>,
    /// Of this group, also if it is muted: its fingerprint, or the beginning as far as it is unique
    #[arg(long, visible_alias = "group", value_name = "FINGERPRINT")]
    pub fingerprint: Option<String>,
    /// Failed (or discarded) at or after this: 2025-12-01T08:00:00Z, 2025-12-01, or a duration before now, as 36h
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Failed (or discarded) before this
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Whose last attempt ran on the worker of this name
    #[arg(long, value_name = "WORKER")]
    pub worker: Option<String>,
    /// Of jobs with this label; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// With this in their params, as in customer=4891 or order.id=7; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    pub params: Vec<String>,
    /// Of muted groups as well. Without it they are left out, and the command says how many
    #[arg(long)]
    pub muted: bool,
}

impl FilterArguments {
    /// Whether none of the options is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the options, of failed or of discarded executions; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] with everything that is wrong; if it is one thing, as it is: [`Failure::NotFound`]
    /// for a job or group that is not there, with near ones.
    pub async fn read(
        &self,
        store: &Store,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<FailureFilter, Failure> {
        let mut reader = FilterReader::default();
        let mut filter = FailureFilter {
            discarded,
            muted: self.muted,
            task_type: reader.value("--task-type", self.task_type.as_deref()),
            pool: reader.value("--pool", self.pool.as_deref()),
            error_class: reader.value("--error-class", self.error_class.as_deref()),
            worker: reader.value("--worker", self.worker.as_deref()),
            text: reader.text(self.text.as_deref()),
            since: reader.instant("--since", self.since.as_deref(), now),
            until: reader.instant("--until", self.until.as_deref(), now),
            labels: reader.labels(&self.label),
            params: reader.params(&self.params),
            ..FailureFilter::default()
        };
        if let (Some(since), Some(until)) = (filter.since, filter.until)
            && since >= until
        {
            reader.add_problem(
                "--since is not before --until: nothing can have failed in between".to_owned(),
            );
        }
        if let Some(name) = reader.value("--job", self.job.as_deref()) {
            match jobs::find_including_deleted(store, &name).await? {
                Some(job) => filter.job = Some(JobId::new(job.id)),
                None => reader.problems.push(job_commands::missing(store, &name).await),
            }
        }
        if let Some(text) = &self.fingerprint {
            let found = group::resolve_fingerprint(store, text).await;
            filter.fingerprint = reader.collect(found);
        }
        reader.finish(filter)
    }
}

/// What is wrong so far.
#[derive(Default)]
struct FilterReader {
    problems: Vec<Failure>,
}

impl FilterReader {
    fn add_problem(&mut self, problem: String) {
        self.problems.push(Failure::Usage(problem));
    }

    fn collect<T>(&mut self, reader: Result<T, Failure>) -> Option<T> {
        reader.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn value(&mut self, option: &str, value: Option<&str>) -> Option<String> {
        let value = value?;
        if value.is_empty() || value.contains('\0') || value.chars().count() > MAX_VALUE_CHARS {
            self.add_problem(format!(
                "{option} {:?} is none; give 1 to {MAX_VALUE_CHARS} characters",
                line(value, MAX_ECHO_CHARS)
            ));
            return None;
        }
        Some(value.to_owned())
    }

    fn text(&mut self, text: Option<&str>) -> Option<String> {
        let text = text?;
        if text_query(text).is_none() {
            self.add_problem(format!(
                "--text {:?} cannot be looked for; give 1 to {MAX_WORDS} words, at most \
                 {MAX_TEXT_CHARS} characters",
                line(text, MAX_ECHO_CHARS)
            ));
            return None;
        }
        Some(text.to_owned())
    }

    fn instant(
        &mut self,
        option: &str,
        text: Option<&str>,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let reader = instant::parse(option, text?, now);
        self.collect(reader)
    }

    fn check_count(&mut self, option: &str, given: usize) {
        if given > MAX_CONDITIONS {
            self.add_problem(format!(
                "{option} is given {given} times, at most {MAX_CONDITIONS} can be"
            ));
        }
    }

    fn labels(&mut self, given: &[String]) -> BTreeMap<String, String> {
        self.check_count("--label", given.len());
        let mut labels = BTreeMap::new();
        for text in given {
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
                    let before = labels.insert(name.to_owned(), value.to_owned());
                    if before.is_some_and(|before| before != value) {
                        self.add_problem(format!(
                            "--label {} has two values",
                            line(name, MAX_ECHO_CHARS)
                        ));
                    }
                }
                _ => self.add_problem(format!(
                    "--label {:?} is none; write it as in team=billing",
                    line(text, MAX_ECHO_CHARS)
                )),
            }
        }
        labels
    }

    fn params(&mut self, given: &[String]) -> Vec<ParamCondition> {
        self.check_count("--params", given.len());
        let mut params = Vec::new();
        for text in given.iter().take(MAX_CONDITIONS) {
            match text.parse() {
                Ok(condition) => params.push(condition),
                Err(problem) => {
                    self.add_problem(format!(
                        "--params {:?} {problem}",
                        line(text, MAX_ECHO_CHARS)
                    ));
                }
            }
        }
        params
    }

    fn finish(mut self, filter: FailureFilter) -> Result<FailureFilter, Failure> {
        match self.problems.len() {
            0 => Ok(filter),
            1 => Err(self.problems.remove(0)),
            _ => {
                let all: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
                Err(Failure::Usage(all.join("\n")))
            }
        }
    }
}
