//! Triggers one execution for each line of a text.
//!
//! All lines are parsed and validated before the first execution is claimed, so a mistake in the last one costs
//! nothing. Then the lines are claimed in batches, each in its own transaction. After a crash in between, repeat the request with
//! the same text: each line has a key, and existing executions are counted and left alone.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::job::Overlap;
use sexton_model::{exact_json, key, params};
use sexton_store::trigger::{
    MAX_BATCH_TRIGGERS, TriggerError, TriggerItem, TriggeredBatch, trigger_many as claim,
};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use super::trigger::{audit_context, claimed_fault_point};
use crate::actor::Actor;
use crate::error::{InvalidRequest, OperationError};
use crate::job_names;
use crate::params_schemas::ParamsSchemas;
use crate::text::line;

/// Maximum number of executions of one text.
const MAX_LINES: usize = 100_000;
/// Maximum length of a text, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum number of executions of one text for a job that runs one at a time, since each admission reads all
/// waiters.
const MAX_WAITING: usize = 1_000;
/// Maximum number of problems in a refusal.
const MAX_LISTED_PROBLEMS: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: String,
    #[serde(default)]
    params: Map<String, Value>,
}

/// An execution of many.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggerItemRequest {
    /// The caller's own key.
    pub key: String,
    /// Fields that override those of the job's params.
    pub params: Map<String, Value>,
}

/// Parsed lines to trigger.
#[derive(Debug)]
pub struct TriggerLines {
    /// The file's name, for problems.
    file: String,
    lines: Vec<(usize, Line)>,
}

impl TriggerLines {
    /// Parses a text, in which each line is as in `{"key": "march-17", "params": {"customer": 4891}}`.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] with the first 20 problems and their lines.
    pub fn read(file: &str, text: &str) -> Result<Self, InvalidRequest> {
        Ok(Self { file: file.to_owned(), lines: read_lines(file, text)? })
    }

    /// Checks a list, whose places are those of lines.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn of_items(name: &str, items: &[TriggerItemRequest]) -> Result<Self, InvalidRequest> {
        let text =
            items.iter().map(|item| json!({"key": item.key, "params": item.params}).to_string());
        Self::read(name, &text.collect::<Vec<_>>().join("\n"))
    }

    /// Triggers an execution of a job for each line that has none yet, up to a thousand in a transaction.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] for lines that the job cannot run, [`crate::error::NotFound::Job`]: nothing was triggered.
    /// [`OperationError::Failed`] says how many were, and the same request triggers the others.
    pub async fn trigger(
        self,
        store: &Store,
        name: &str,
        actor: &Actor,
        reason: Option<&str>,
    ) -> Result<TriggeredBatch, OperationError> {
        check_lines(store, name, &self.file, &self.lines).await?;
        let (claimed_by, total) = (actor.claimer(), self.lines.len());
        let items: Vec<TriggerItem> =
            self.lines.into_iter().map(|(_, line)| to_request(line)).collect();
        let by = audit_context(true, actor, reason);
        let mut done = TriggeredBatch::default();
        for batch in items.chunks(MAX_BATCH_TRIGGERS) {
            let one = match claim(store, name, batch, &claimed_by, by, None).await {
                Ok(one) => one,
                Err(TriggerError::Missing(name)) if done == TriggeredBatch::default() => {
                    return Err(job_names::missing(store, &name).await);
                }
                Err(error) => return Err(trigger_failure(error, &done, total)),
            };
            done.created += one.created;
            done.waiting += one.waiting;
            done.known += one.known;
            done.paused = one.paused;
            claimed_fault_point();
        }
        Ok(done)
    }
}

fn to_request(line: Line) -> TriggerItem {
    TriggerItem { id: ExecutionId::new(Uuid::now_v7()), key: line.key, params: line.params }
}

fn trigger_failure(error: TriggerError, done: &TriggeredBatch, total: usize) -> OperationError {
    if let TriggerError::Store(error @ StoreError::OutOfScope(_)) = error {
        return error.into();
    }
    OperationError::Failed(format!(
        "{error}; {} of {total} executions were triggered, give the same command again for the rest",
        done.created + done.known
    ))
}

/// Returns the lines with their numbers, or all their problems.
fn read_lines(file: &str, text: &str) -> Result<Vec<(usize, Line)>, InvalidRequest> {
    if text.len() as u64 > MAX_FILE_BYTES {
        let max_mib = MAX_FILE_BYTES / 1024 / 1024;
        return Err(InvalidRequest::Other(format!(
            "{file} is longer than {max_mib} MiB; split it"
        )));
    }
    let (mut lines, mut problems) = (Vec::new(), LineProblems::default());
    let mut keys: HashMap<String, usize> = HashMap::new();
    let written = text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    for (read, (index, text)) in written.enumerate() {
        if read >= MAX_LINES {
            let why = format!("{file} has more than {MAX_LINES} lines; split it");
            return Err(InvalidRequest::Other(why));
        }
        let number = index + 1;
        match parse_line(text) {
            Ok(one) => {
                match keys.get(&one.key) {
                    Some(first) => {
                        problems.add(file, number, || format!("its key is that of line {first}"));
                    }
                    None => drop(keys.insert(one.key.clone(), number)),
                }
                lines.push((number, one));
            }
            Err(why) => problems.add(file, number, || line(&why, 300)),
        }
    }
    if lines.is_empty() && problems.count == 0 {
        return Err(InvalidRequest::Other(format!("{file} is empty; nothing was triggered")));
    }
    problems.into_result().map(|()| lines)
}

fn parse_line(text: &str) -> Result<Line, String> {
    exact_json::check(text.as_bytes()).map_err(|error| error.to_string())?;
    let one: Line = serde_json::from_str(text).map_err(|error| {
        format!(
            "{error}; write it as in {{\"key\": \"march-17\", \"params\": {{\"customer\": 4891}}}}"
        )
    })?;
    key::check(&one.key).map_err(|error| error.to_string())?;
    params::check(&one.params).map_err(|error| format!("the params {error}"))?;
    Ok(one)
}

/// Refuses lines that the job cannot run: too many at once, and params that, with the job's own, cannot be stored or
/// do not match the active workers' schemas. The job's own params alone are not validated, since its firings run with
/// them too.
async fn check_lines(
    store: &Store,
    name: &str,
    file: &str,
    lines: &[(usize, Line)],
) -> Result<(), OperationError> {
    let job = job_names::find(store, name).await?;
    if lines.len() > MAX_WAITING && Overlap::parse(&job.overlap).is_some_and(Overlap::one_at_a_time)
    {
        let text = format!(
            "{name} runs one at a time (overlap = {:?}): at most {MAX_WAITING} lines at once; split {file}, or \
             let the job overlap",
            job.overlap
        );
        return Err(InvalidRequest::Other(text).into());
    }
    let params_schemas = ParamsSchemas::load(store, &job.task_type, &job.pool).await?;
    let job_params = job.params.as_object().cloned().unwrap_or_default();
    let mut problems = LineProblems::default();
    for (number, one) in lines.iter().filter(|(_, one)| !one.params.is_empty()) {
        let mut all = job_params.clone();
        all.extend(one.params.clone());
        if let Err(error) = params::check(&all) {
            problems.add(file, *number, || format!("the params with those of the job {error}"));
            continue;
        }
        for mismatch in params_schemas.mismatches(&Value::Object(all)) {
            problems.add(file, *number, || mismatch.describe());
        }
    }
    Ok(problems.into_result()?)
}

/// The problems of a file: the first ones in words, and their number.
#[derive(Default)]
struct LineProblems {
    texts: Vec<String>,
    count: usize,
}

impl LineProblems {
    fn add(&mut self, file: &str, number: usize, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.texts.len() < MAX_LISTED_PROBLEMS {
            self.texts.push(format!("{file}:{number}: {}", what()));
        }
    }

    fn into_result(mut self) -> Result<(), InvalidRequest> {
        if self.count == 0 {
            return Ok(());
        }
        let more = self.count - self.texts.len();
        if more > 0 {
            self.texts.push(format!("and {more} more"));
        }
        Err(InvalidRequest::Other(format!("nothing was triggered:\n  {}", self.texts.join("\n  "))))
    }
}
