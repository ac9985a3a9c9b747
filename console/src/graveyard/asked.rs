//! What people write, as a filter; everything that is wrong with it is told at once.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sexton_model::graveyard::{Filter, MAX_TEXT_CHARS, MAX_WORDS, ParamEquals, text_query};
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

/// A filter as it is written. Empty: everything that failed, but for muted groups.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Discarded executions instead of failed ones.
    pub discarded: bool,
    /// Name of a job, even of one that was deleted.
    pub job: Option<String>,
    /// Task type.
    pub task_type: Option<String>,
    /// Pool.
    pub pool: Option<String>,
    /// Class of the error.
    pub error_class: Option<String>,
    /// Words of the message.
    pub text: Option<String>,
    /// A group's fingerprint, or its beginning as far as it is unique.
    pub fingerprint: Option<String>,
    /// Failed at or after this: an instant, a day, or a duration before now.
    pub since: Option<String>,
    /// Failed before this.
    pub until: Option<String>,
    /// Name of the worker that ran the last attempt.
    pub worker: Option<String>,
    /// `name=value` of the job's labels.
    pub labels: Vec<String>,
    /// `path=value` of the params.
    pub params: Vec<String>,
    /// Muted groups as well.
    pub muted: bool,
}

/// Reads a filter; `now` is the database's clock.
///
/// # Errors
///
/// [`Failure::Usage`] with everything that is wrong; if it is one thing, as it is: [`Failure::NotFound`]
/// for a job or group that is not there, with near ones.
pub async fn filter(store: &Store, asked: &Asked, now: DateTime<Utc>) -> Result<Filter, Failure> {
    let mut read = Reading::default();
    let mut filter = Filter {
        discarded: asked.discarded,
        muted: asked.muted,
        task_type: read.value("--task-type", asked.task_type.as_deref()),
        pool: read.value("--pool", asked.pool.as_deref()),
        error_class: read.value("--error-class", asked.error_class.as_deref()),
        worker: read.value("--worker", asked.worker.as_deref()),
        text: read.text(asked.text.as_deref()),
        since: read.instant("--since", asked.since.as_deref(), now),
        until: read.instant("--until", asked.until.as_deref(), now),
        labels: read.labels(&asked.labels),
        params: read.params(&asked.params),
        ..Filter::default()
    };
    if let (Some(since), Some(until)) = (filter.since, filter.until)
        && since >= until
    {
        read.wrong("--since is not before --until: nothing can have failed in between".to_owned());
    }
    if let Some(name) = read.value("--job", asked.job.as_deref()) {
        match jobs::find_ever(store, &name).await? {
            Some(job) => filter.job = Some(JobId::new(job.id)),
            None => read.problems.push(job_commands::missing(store, &name).await),
        }
    }
    if let Some(text) = &asked.fingerprint {
        let found = group::find(store, text).await;
        filter.fingerprint = read.keep(found);
    }
    read.end(filter)
}

/// What is wrong so far.
#[derive(Default)]
struct Reading {
    problems: Vec<Failure>,
}

impl Reading {
    fn wrong(&mut self, problem: String) {
        self.problems.push(Failure::Usage(problem));
    }

    fn keep<T>(&mut self, read: Result<T, Failure>) -> Option<T> {
        read.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn value(&mut self, option: &str, value: Option<&str>) -> Option<String> {
        let value = value?;
        if value.is_empty() || value.contains('\0') || value.chars().count() > MAX_VALUE_CHARS {
            self.wrong(format!(
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
            self.wrong(format!(
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
        let read = instant::parse(option, text?, now);
        self.keep(read)
    }

    fn few(&mut self, option: &str, given: usize) {
        if given > MAX_CONDITIONS {
            self.wrong(format!("{option} is given {given} times, at most {MAX_CONDITIONS} can be"));
        }
    }

    fn labels(&mut self, given: &[String]) -> BTreeMap<String, String> {
        self.few("--label", given.len());
        let mut labels = BTreeMap::new();
        for text in given {
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
                    let before = labels.insert(name.to_owned(), value.to_owned());
                    if before.is_some_and(|before| before != value) {
                        self.wrong(format!(
                            "--label {} has two values",
                            line(name, MAX_ECHO_CHARS)
                        ));
                    }
                }
                _ => self.wrong(format!(
                    "--label {:?} is none; write it as in team=billing",
                    line(text, MAX_ECHO_CHARS)
                )),
            }
        }
        labels
    }

    fn params(&mut self, given: &[String]) -> Vec<ParamEquals> {
        self.few("--params", given.len());
        let mut params = Vec::new();
        for text in given.iter().take(MAX_CONDITIONS) {
            match text.parse() {
                Ok(condition) => params.push(condition),
                Err(wrong) => {
                    self.wrong(format!("--params {:?} {wrong}", line(text, MAX_ECHO_CHARS)));
                }
            }
        }
        params
    }

    fn end(mut self, filter: Filter) -> Result<Filter, Failure> {
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
