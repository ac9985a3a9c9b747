//! `sexton jobs trigger --each`: one execution for each line of a file.
//!
//! All lines are read and judged before the first execution is claimed, so a mistake in the last one costs nothing.
//! Then portions are claimed, each in its own transaction. Killed in between, the command is given again with the
//! same file: each line has a key, and what has an execution is counted and left alone.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::job::Overlap;
use sexton_model::{key, params};
use sexton_store::trigger::{
    MAX_BATCH_TRIGGERS, TriggerError, TriggerItem, TriggeredBatch, trigger_many as claim,
};
use sexton_store::{Store, jobs};
use uuid::Uuid;

use super::control::{audit_context, claimed_fault_point};
use super::input_files::read_text_up_to;
use super::{Trigger, missing};
use crate::actor;
use crate::failure::Failure;
use crate::params_validation::ParamsSchemas;
use crate::session::Session;
use crate::show::line;

/// The most executions of one file.
const MAX_LINES: usize = 100_000;
/// The longest file.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The most of one file for a job that runs one at a time, since whoever lets one of them go looks at all that wait.
const MAX_WAITING: usize = 1_000;
/// What is told of what is wrong.
const MAX_LISTED_PROBLEMS: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: String,
    #[serde(default)]
    params: Map<String, Value>,
}

pub(super) async fn trigger_many(
    arguments: &Trigger,
    file: &Path,
    session: &Session,
) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let text = read_text_up_to(file, MAX_FILE_BYTES + 1)
        .map_err(|error| Failure::Failed(format!("{shown} cannot be read: {error}")))?;
    let lines = read(&shown, &text)?;
    let store = session.store().await?;
    let name = &arguments.name;
    check_lines(&store, name, &shown, &lines).await?;
    let (claimed_by, total) = (actor::trigger_claimer(&session.actor), lines.len());
    let items: Vec<TriggerItem> = lines.into_iter().map(|(_, one)| to_request(one)).collect();
    let by = audit_context(true, arguments, session);
    let mut done = TriggeredBatch::default();
    for portion in items.chunks(MAX_BATCH_TRIGGERS) {
        let one = match claim(&store, name, portion, &claimed_by, by, None).await {
            Ok(one) => one,
            Err(TriggerError::Missing(name)) if done == TriggeredBatch::default() => {
                return Err(missing(&store, &name).await);
            }
            Err(error) => return Err(trigger_failure(&error, &done, total)),
        };
        done.created += one.created;
        done.waiting += one.waiting;
        done.known += one.known;
        done.paused = one.paused;
        claimed_fault_point();
    }
    render(session, name, &done)
}

fn to_request(line: Line) -> TriggerItem {
    TriggerItem { id: ExecutionId::new(Uuid::now_v7()), key: line.key, params: line.params }
}

fn trigger_failure(error: &TriggerError, done: &TriggeredBatch, total: usize) -> Failure {
    Failure::Failed(format!(
        "{error}; {} of {total} executions were triggered, give the same command again for the rest",
        done.created + done.known
    ))
}

fn render(session: &Session, name: &str, done: &TriggeredBatch) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({
            "job_name": name,
            "created": done.created,
            "waiting": done.waiting,
            "known": done.known,
        }));
    }
    session.out.print(format!("Triggered {} executions of {name}.", done.created))?;
    if done.known > 0 {
        let known = done.known;
        session
            .out
            .print(format!("{known} keys had an execution already; nothing was done for them."))?;
    }
    if done.waiting > 0 {
        let waiting = done.waiting;
        session
            .out
            .print(format!("The job runs one at a time; {waiting} of them wait for their turn."))?;
    }
    if done.paused {
        session.out.print("The job is paused; these executions run all the same.")?;
    }
    Ok(())
}

/// The lines with their numbers, or everything that is wrong with them.
fn read(file: &str, text: &str) -> Result<Vec<(usize, Line)>, Failure> {
    if text.len() as u64 > MAX_FILE_BYTES {
        let most = MAX_FILE_BYTES / 1024 / 1024;
        return Err(Failure::Usage(format!("{file} is longer than {most} MiB; split it")));
    }
    let (mut lines, mut problems) = (Vec::new(), LineProblems::default());
    let mut keys: HashMap<String, usize> = HashMap::new();
    let written = text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    for (read, (index, text)) in written.enumerate() {
        if read >= MAX_LINES {
            let why = format!("{file} has more than {MAX_LINES} lines; split it");
            return Err(Failure::Usage(why));
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
        return Err(Failure::Usage(format!("{file} is empty; nothing was triggered")));
    }
    problems.into_result().map(|()| lines)
}

fn parse_line(text: &str) -> Result<Line, String> {
    let one: Line = serde_json::from_str(text).map_err(|error| {
        format!(
            "{error}; write it as in {{\"key\": \"march-17\", \"params\": {{\"customer\": 4891}}}}"
        )
    })?;
    key::check(&one.key).map_err(|error| error.to_string())?;
    params::check(&one.params).map_err(|error| format!("the params {error}"))?;
    Ok(one)
}

/// Refuses what the job cannot take: too many at once, and params that, with the job's own, cannot be kept or do not fit
/// what the workers at work say of them. The job's own alone are what its firings run with, too, and are not judged.
async fn check_lines(
    store: &Store,
    name: &str,
    file: &str,
    lines: &[(usize, Line)],
) -> Result<(), Failure> {
    let Some(job) = jobs::find(store, name).await? else { return Err(missing(store, name).await) };
    if lines.len() > MAX_WAITING && Overlap::parse(&job.overlap).is_some_and(Overlap::one_at_a_time)
    {
        return Err(Failure::Usage(format!(
            "{name} runs one at a time (overlap = {:?}): at most {MAX_WAITING} lines at once; split {file}, or \
             let the job overlap",
            job.overlap
        )));
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
    problems.into_result()
}

/// What is wrong with a file: the first of it in words, and how much it is.
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

    fn into_result(mut self) -> Result<(), Failure> {
        if self.count == 0 {
            return Ok(());
        }
        let more = self.count - self.texts.len();
        if more > 0 {
            self.texts.push(format!("and {more} more"));
        }
        Err(Failure::Usage(format!("nothing was triggered:\n  {}", self.texts.join("\n  "))))
    }
}
