//! Enqueues executions, as any program does: by the SQL functions of the platform.
//!
//! Each execution's row names the log-in that enqueued it. For callers of the API that is the server's, so the audit names them; what else
//! is enqueued is no operator's action.
//! A job that is paused takes none; [`crate::jobs::trigger`] runs it all the same.

use std::time::Duration;

use serde_json::{Map, Value};
use sexton_client::{Client, Error, WaitError};
pub use sexton_client::{Enqueue, Enqueued, Execution, IfExists, MAX_BATCH, UniqueFor};
use sexton_model::exact_json;
use sexton_store::enqueue::{EnqueueTransaction, EnqueuedId};
use sexton_store::timeout::with_timeout;
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, ItemProblem, OperationError};
use crate::{execution_ids, job_names, scope};

/// The longest period of a key, and the farthest that an execution can be enqueued ahead.
pub const MAX_AHEAD: Duration = Duration::from_hours(400 * 24);
/// Maximum length of a line of a file, in bytes: params that may be stored, escaped throughout, and the rest.
const MAX_LINE_BYTES: usize = 2 * 1024 * 1024;

const CLIENT: Client = Client::new();
/// How long to wait for an answer: longer than the server lets a statement take, so a server that still is silent has
/// vanished.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// Waits for the answer to a call for at most `limit`.
async fn answer_of<T, E>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, StoreError> {
    with_timeout(limit, async { Ok(call.await) }).await
}

/// Parses how long a key stands for one execution: `ever`, `open`, or a period such as `1h`.
///
/// # Errors
///
/// What is wrong, with the forms.
pub fn parse_unique_for(text: &str) -> Result<UniqueFor, String> {
    let period = match text {
        "ever" => return Ok(UniqueFor::Ever),
        "open" => return Ok(UniqueFor::Open),
        text => sexton_model::duration::parse(text),
    };
    match period {
        Ok(period) if period.is_zero() || period.subsec_millis() > 0 || period > MAX_AHEAD => {
            Err("a period is whole seconds, up to 400d".to_owned())
        }
        Ok(period) => Ok(UniqueFor::Period(period)),
        Err(_) => Err("write ever, open, or a period such as 1h".to_owned()),
    }
}

/// Enqueues one execution.
///
/// # Errors
///
/// [`NotFound::Job`](crate::error::NotFound::Job), [`InvalidRequest`] for an invalid argument; [`Conflict`] for a job that is
/// paused or deleted.
pub async fn enqueue(
    store: &Store,
    job: &str,
    enqueue: &Enqueue,
) -> Result<Enqueued, OperationError> {
    scope::check_job(store, job).await?;
    let mut connection = store.pool().acquire().await.map_err(StoreError::from)?;
    match answer_of(ANSWER_TIMEOUT, CLIENT.enqueue(&mut connection, enqueue)).await? {
        Ok(enqueued) => Ok(enqueued),
        Err(error) => Err(refused(store, job, error).await),
    }
}

/// As [`enqueue`], for a caller whom the audit names, in the same transaction.
///
/// # Errors
///
/// As of [`enqueue`].
pub async fn enqueue_as(
    store: &Store,
    job: &str,
    enqueue: &Enqueue,
    actor: &Actor,
) -> Result<Enqueued, OperationError> {
    scope::check_job(store, job).await?;
    let mut tx = EnqueueTransaction::begin(store).await?;
    let answer = answer_of(ANSWER_TIMEOUT, CLIENT.enqueue(tx.connection(), enqueue)).await?;
    match answer {
        Ok(enqueued) => {
            tx.commit(enqueued_id(&enqueued), actor.because(None)).await?;
            Ok(enqueued)
        }
        Err(error) => {
            drop(tx);
            Err(refused(store, job, error).await)
        }
    }
}

fn enqueued_id(enqueued: &Enqueued) -> EnqueuedId {
    EnqueuedId { id: enqueued.execution_id, created: enqueued.created }
}

/// Enqueues executions of one job in one transaction, at most [`MAX_BATCH`], which the audit records in one row with the caller. Returns how
/// many are new.
///
/// # Errors
///
/// As of [`enqueue`]; [`InvalidRequest::Items`] with the problems of up to 100 items. Nothing was enqueued.
pub async fn enqueue_many_as(
    store: &Store,
    job: &str,
    items: &[Enqueue],
    actor: &Actor,
) -> Result<usize, OperationError> {
    if items.len() > MAX_BATCH {
        let problem = format!("{} executions are more than {MAX_BATCH}", items.len());
        return Err(InvalidRequest::Other(problem).into());
    }
    scope::check_job(store, job).await?;
    let mut tx = EnqueueTransaction::begin(store).await?;
    let answer = answer_of(ANSWER_TIMEOUT, CLIENT.enqueue_many(tx.connection(), items)).await?;
    match answer {
        Ok(answers) => {
            let ids: Vec<EnqueuedId> = answers.iter().map(enqueued_id).collect();
            tx.commit_each(&ids, actor.because(None)).await?;
            Ok(ids.iter().filter(|one| one.created).count())
        }
        Err(Error::InvalidArgument(refusal) | Error::InvalidParams(refusal)) => {
            let detail = refusal.detail.unwrap_or(refusal.message);
            Err(InvalidRequest::Items(detail.lines().map(item_problem).collect()).into())
        }
        Err(error) => {
            drop(tx);
            Err(refused(store, job, error).await)
        }
    }
}

/// A line of a file: an object as `sexton.enqueue_many` takes it, with a key.
#[derive(Clone, PartialEq, Debug)]
pub struct EnqueueLine {
    /// Its number in the file.
    pub number: u64,
    item: Map<String, Value>,
}

impl EnqueueLine {
    /// Parses a line as in `{"key": "march-17", "params": {"customer": 4891}, "delay": "10m"}`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(number: u64, text: &str) -> Result<Self, String> {
        if text.len() > MAX_LINE_BYTES {
            return Err(format!("has {} bytes, more than {MAX_LINE_BYTES}", text.len()));
        }
        exact_json::check(text.as_bytes()).map_err(|error| error.to_string())?;
        let example = "write it as in {\"key\": \"march-17\", \"params\": {\"customer\": 4891}}";
        match serde_json::from_str(text) {
            Ok(Value::Object(item)) if item.get("key").is_some_and(Value::is_string) => {
                Ok(Self { number, item })
            }
            Ok(Value::Object(_)) => Err("has no key; with keys a repetition enqueues only what \
                                         is missing"
                .to_owned()),
            Ok(_) => Err(format!("is not an object; {example}")),
            Err(error) => Err(format!("is not JSON ({error}); {example}")),
        }
    }
}

/// Enqueues lines in one transaction, at most [`sexton_client::MAX_BATCH`]. Returns how many are new.
///
/// # Errors
///
/// As of [`enqueue`]; problems name the lines. Nothing of these lines was enqueued.
pub async fn enqueue_lines(
    store: &Store,
    job: &str,
    lines: &[EnqueueLine],
) -> Result<usize, OperationError> {
    scope::check_job(store, job).await?;
    let items: Vec<Value> = lines.iter().map(|line| Value::Object(line.item.clone())).collect();
    let mut connection = store.pool().acquire().await.map_err(StoreError::from)?;
    let calling = CLIENT.enqueue_items(&mut connection, job, items);
    match answer_of(ANSWER_TIMEOUT, calling).await? {
        Ok(answers) => Ok(answers.iter().filter(|one| one.created).count()),
        Err(Error::InvalidArgument(refusal) | Error::InvalidParams(refusal)) => {
            let detail = refusal.detail.unwrap_or(refusal.message);
            let problems = detail.lines().map(|problem| name_line(problem, lines));
            Err(InvalidRequest::Other(problems.collect::<Vec<_>>().join("\n  ")).into())
        }
        Err(error) => Err(refused(store, job, error).await),
    }
}

/// Splits `item 3: what is wrong` into the item's index and what is wrong; `None`: it concerns no single item.
fn split_item(problem: &str) -> Option<(usize, &str)> {
    let (ordinal, what) = problem.strip_prefix("item ")?.split_once(": ")?;
    Some((ordinal.parse::<usize>().ok()?.checked_sub(1)?, what))
}

fn item_problem(line: &str) -> ItemProblem {
    match split_item(line) {
        Some((index, what)) => ItemProblem { index: Some(index), problem: what.to_owned() },
        None => ItemProblem { index: None, problem: line.to_owned() },
    }
}

/// Puts the line's number in the place of the item's, in `item 3: what is wrong`.
fn name_line(problem: &str, lines: &[EnqueueLine]) -> String {
    let found =
        split_item(problem).and_then(|(index, what)| Some((lines.get(index)?.number, what)));
    found.map_or_else(|| problem.to_owned(), |(number, what)| format!("line {number}: {what}"))
}

/// Waits until an execution has ended or is parked as failed.
///
/// # Errors
///
/// [`NotFound::Execution`](crate::error::NotFound::Execution); [`OperationError::Failed`] after the timeout.
pub async fn wait_for(
    store: &Store,
    id: Uuid,
    timeout: Duration,
) -> Result<Execution, OperationError> {
    let mut connection = store.pool().acquire().await.map_err(StoreError::from)?;
    let waiting = CLIENT.wait_for(&mut connection, id, timeout);
    match answer_of(timeout.saturating_add(ANSWER_TIMEOUT), waiting).await? {
        Ok(execution) => Ok(execution),
        Err(WaitError::TimedOut(seen)) => Err(OperationError::Failed(format!(
            "execution {} is still {} after {}",
            seen.execution_id,
            seen.state_name,
            sexton_model::duration::format(timeout)
        ))),
        Err(WaitError::Missing(id)) => Err(execution_ids::missing(id)),
        Err(WaitError::Read(error)) => Err(failed(error)),
    }
}

async fn refused(store: &Store, job: &str, error: Error) -> OperationError {
    match error {
        Error::UnknownJob(_) => job_names::missing(store, job).await,
        Error::InvalidArgument(refusal) | Error::InvalidParams(refusal) => {
            InvalidRequest::Other(refusal.detail.unwrap_or(refusal.message)).into()
        }
        error @ (Error::PausedJob(_) | Error::DeletedJob(_)) => {
            Conflict::Other(error.to_string()).into()
        }
        error => failed(error),
    }
}

fn failed(error: Error) -> OperationError {
    match error {
        Error::Database(error) => StoreError::from(error).into(),
        error => OperationError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_a_period_of_whole_seconds() {
        assert_eq!(parse_unique_for("open"), Ok(UniqueFor::Open));
        let hour = UniqueFor::Period(Duration::from_hours(1));
        assert_eq!(parse_unique_for("1h"), Ok(hour));
        for text in ["", "0s", "10ms", "401d", "1"] {
            assert!(parse_unique_for(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_line_needs_a_key_and_problems_name_it() {
        assert!(EnqueueLine::parse(1, "{}").unwrap_err().starts_with("has no key"));
        assert!(EnqueueLine::parse(1, "[1]").unwrap_err().starts_with("is not an object"));
        assert!(EnqueueLine::parse(1, "{").unwrap_err().starts_with("is not JSON"));
        let lines = [4, 9].map(|number| EnqueueLine::parse(number, r#"{"key": "a"}"#).unwrap());
        assert_eq!(name_line("item 2: key is empty", &lines), "line 9: key is empty");
        assert_eq!(name_line("item 3: key is empty", &lines), "item 3: key is empty");
    }
}
