//! `sexton enqueue`: what programs do by the SQL functions, from a terminal or a file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use sexton_model::duration;
use sexton_model::zone::Zone;
use sexton_operations::enqueue::{
    self, Enqueue, EnqueueLine, Enqueued, IfExists, MAX_AHEAD, UniqueFor,
};
use sexton_operations::instants;
use sexton_operations::jobs::trigger::read_params;
use sexton_store::Store;

use crate::failure::Failure;
use crate::input_files::read_text_up_to;
use crate::session::Session;
use crate::show::Progress;

/// Lines of one transaction.
const BATCH_LINES: usize = 1_000;
/// Bytes of lines of one transaction, roughly.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The longest line that is read: a longer one is refused.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;
/// Far more than params may have; the database checks the exact limit.
const MAX_PARAMS_BYTES: u64 = 1024 * 1024;

/// What to enqueue.
#[derive(Debug, Args)]
pub struct EnqueueCommand {
    /// The job's name
    job: String,
    /// The caller's own key; what it names is enqueued once
    #[arg(long)]
    key: Option<String>,
    /// JSON object whose fields override the job's params; @FILE reads it from a file, @- from standard input
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Run it this long after now, such as 10m; at most 400d
    #[arg(long, value_parser = parse_delay, value_name = "DURATION", conflicts_with = "run_at")]
    delay: Option<Duration>,
    /// Run it at an instant, such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "INSTANT")]
    run_at: Option<String>,
    /// How long the key stands for one execution: ever, open (until it has ended), or a period such as 1h
    #[arg(long, value_parser = enqueue::parse_unique_for, value_name = "TIME", requires = "key")]
    unique_for: Option<UniqueFor>,
    /// What becomes of an execution that has the key and has not begun
    #[arg(long, value_enum, requires = "key")]
    if_exists: Option<IfExistsArgument>,
    /// Label of the execution; repeatable
    #[arg(long, value_parser = parse_label, value_name = "NAME=TEXT")]
    label: Vec<(String, String)>,
    /// Enqueue an execution for each line of FILE, such as {"key": "march-17", "params": {"customer": 4891}}, in
    /// transactions of a thousand; `-` is standard input. A repetition enqueues only the missing ones
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["key", "params", "delay", "run_at", "label"]
    )]
    from: Option<PathBuf>,
}

/// What becomes of an execution that has the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum IfExistsArgument {
    /// It stays as it is
    Keep,
    /// It gets the new params and labels
    Replace,
    /// It gets the new params, labels and time
    Postpone,
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(delay) if delay > MAX_AHEAD => Err("is longer than 400d".to_owned()),
        Ok(delay) => Ok(delay),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("write it as NAME=TEXT".to_owned()),
    }
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(arguments: EnqueueCommand, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    if let Some(file) = &arguments.from {
        return enqueue_file(&store, &arguments.job, file, session).await;
    }
    let mut request = Enqueue::new(arguments.job.clone());
    if let Some(text) = &arguments.params {
        let params = read_params(Some(&params_text(text)?))?;
        request = request.params(&params).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    if let Some(key) = &arguments.key {
        request = request.key(key);
    }
    if let Some(delay) = arguments.delay {
        request = request.delay(delay);
    }
    if let Some(text) = &arguments.run_at {
        let now = session.now(&store).await?;
        let at = instants::parse(text, Zone::UTC, now);
        request = request.run_at(at.map_err(|error| Failure::Usage(error.to_string()))?);
    }
    request = request.unique_for(arguments.unique_for.unwrap_or_default());
    request = request.if_exists(match arguments.if_exists {
        None | Some(IfExistsArgument::Keep) => IfExists::Keep,
        Some(IfExistsArgument::Replace) => IfExists::Replace,
        Some(IfExistsArgument::Postpone) => IfExists::Postpone,
    });
    for (name, text) in arguments.label {
        request = request.label(name, text);
    }
    let enqueued = enqueue::enqueue(&store, &arguments.job, &request).await?;
    render(session, &arguments.job, &enqueued)
}

/// Returns the JSON, or that of the file that `@` names.
fn params_text(text: &str) -> Result<String, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    read_text_up_to(Path::new(file), MAX_PARAMS_BYTES + 1)
        .map_err(|error| Failure::Failed(format!("{file} cannot be read: {error}")))
}

fn render(session: &Session, job: &str, enqueued: &Enqueued) -> Result<(), Failure> {
    let Enqueued { execution_id, key, created, state } = enqueued;
    if session.out.is_json() {
        return session.out.document(&json!({
            "job_name": job,
            "id": execution_id,
            "execution_key": key,
            "created": created,
            "state": state,
        }));
    }
    session.out.print(if *created {
        format!("Enqueued {execution_id} of {job}.")
    } else {
        format!("{job} has an execution with the key {key}: {execution_id}, {state}.")
    })
}

/// Enqueues a file, line by line: it may have millions.
async fn enqueue_file(
    store: &Store,
    job: &str,
    file: &Path,
    session: &Session,
) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let unreadable =
        |error: std::io::Error| Failure::Failed(format!("{shown} cannot be read: {error}"));
    let (input, bytes): (Box<dyn Read>, u64) = if file == Path::new("-") {
        (Box::new(std::io::stdin()), 0)
    } else {
        let input = File::open(file).map_err(unreadable)?;
        let bytes = input.metadata().map_or(0, |about| about.len());
        (Box::new(input), bytes)
    };
    let mut input = BufReader::with_capacity(256 * 1024, input);
    let progress = Progress::of_bytes(bytes);
    let (mut created, mut known, mut number, mut read) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut batch, mut batch_bytes, mut ended) = (Vec::with_capacity(BATCH_LINES), 0, false);
    while !ended {
        let mut text = String::new();
        let length = (&mut input)
            .take(MAX_LINE_BYTES)
            .read_line(&mut text)
            .map_err(|error| stopped(unreadable(error), created + known))?;
        ended = length == 0;
        number += u64::from(!ended);
        read += length as u64;
        if !text.trim().is_empty() {
            let line = EnqueueLine::parse(number, text.trim_end()).map_err(|why| {
                stopped(Failure::Failed(format!("{shown}:{number}: {why}")), created + known)
            })?;
            batch.push(line);
            batch_bytes += length;
        }
        if batch.len() == BATCH_LINES || batch_bytes >= BATCH_BYTES || ended && !batch.is_empty() {
            let new = enqueue::enqueue_lines(store, job, &batch)
                .await
                .map_err(|error| stopped(error.into(), created + known))?;
            created += new as u64;
            known += (batch.len() - new) as u64;
            batch.clear();
            batch_bytes = 0;
            progress.set(read, bytes.max(read));
        }
    }
    drop(progress);
    if created + known == 0 {
        return Err(Failure::Failed(format!("{shown} is empty; nothing was enqueued")));
    }
    if session.out.is_json() {
        return session.out.document(&json!({"job_name": job, "created": created, "known": known}));
    }
    session.out.print(format!("Enqueued {created} executions of {job}."))?;
    if known > 0 {
        session
            .out
            .print(format!("{known} keys had an execution already; nothing was done for them."))?;
    }
    Ok(())
}

/// Says what was done before a failure, and how to go on.
fn stopped(failure: Failure, done: u64) -> Failure {
    if done == 0 {
        return failure;
    }
    Failure::Failed(format!(
        "{failure}; the {done} lines before were enqueued; give the same command again for the rest"
    ))
}
