//! The message: a ticket for one attempt, and other messages in a main queue.
//!
//! The identity of a ticket is `(execution id, attempt)`, carried by the message id and the header `sexton-attempt`,
//! and repeated in the body for tools that move bodies only. Everything else in the body is for people and for other
//! systems' consumers: a worker acts on the row.

use std::collections::HashMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::exact_json::{self, InexactJson};
use crate::id::{AttemptNumber, ExecutionId, JobId};
use crate::job::MAX_TASK_TYPE_BYTES;
use crate::jobs_file::limits::MAX_TARGET_BYTES;
use crate::params::RESERVED_NAME;
use crate::quoting::quoted;
use crate::{key, params};

/// The version of the body, and of the header `sexton-schema`.
pub const SCHEMA_VERSION: i64 = 1;
/// Largest body that is parsed, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Longest reason written into a parked message, in bytes.
pub const MAX_REASON_BYTES: usize = 2_000;

/// The authority to open one attempt.
#[derive(Clone, PartialEq, Debug)]
pub struct Ticket {
    /// The message id.
    pub execution_id: ExecutionId,
    /// The fence.
    pub attempt: AttemptNumber,
    /// The job's id, on the wire `scheduler_id`.
    pub job_id: JobId,
    /// The job's name.
    pub job: String,
    /// The message's `type`.
    pub task_type: String,
    /// The job's target, on the wire `id`.
    pub target: Option<String>,
    /// On the wire `params_scheduler`.
    pub params: Value,
    /// Unique for the job.
    pub execution_key: String,
    /// The nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// The same over retries and requeues.
    pub idempotency_key: String,
}

/// Further fields of a parked ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParkedDetails {
    /// When it was parked.
    pub failed_at: DateTime<Utc>,
    /// The reason, for people.
    pub failed_reason: String,
    /// Retries used.
    pub retry_count: u32,
}

impl Ticket {
    /// Returns the body, with the documented names.
    pub fn body(&self, parked: Option<&ParkedDetails>) -> Vec<u8> {
        let body = Body {
            attempt: self.attempt,
            execution_id: self.execution_id,
            execution_key: &self.execution_key,
            failed_at: parked.map(|parked| format_instant(parked.failed_at)),
            failed_reason: parked.map(|parked| truncate(&parked.failed_reason, MAX_REASON_BYTES)),
            id: self.target.as_deref().map(Target::of),
            idempotency_key: &self.idempotency_key,
            job: &self.job,
            params_scheduler: &self.params,
            retry_count: parked.map(|parked| parked.retry_count),
            scheduled_for: format_instant(self.scheduled_for),
            scheduler_id: self.job_id,
            task_type: &self.task_type,
            v: SCHEMA_VERSION,
        };
        serde_json::to_vec(&body)
            .expect("texts, numbers and a value of JSON, under names that are texts")
    }
}

/// The body's fields, in their order. It borrows, because a ticket is written for every attempt.
#[derive(Serialize)]
struct Body<'a> {
    attempt: AttemptNumber,
    execution_id: ExecutionId,
    execution_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_reason: Option<&'a str>,
    id: Option<Target<'a>>,
    idempotency_key: &'a str,
    job: &'a str,
    params_scheduler: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_count: Option<u32>,
    scheduled_for: String,
    scheduler_id: JobId,
    #[serde(rename = "type")]
    task_type: &'a str,
    v: i64,
}

/// The attempt's number or nothing.
#[derive(Serialize)]
#[serde(untagged)]
enum Target<'a> {
    Number(i64),
    Text(&'a str),
}

impl<'a> Target<'a> {
    fn of(text: &'a str) -> Self {
        text.parse().map_or(Self::Text(text), Self::Number)
    }
}

/// Formats RFC 3339 in UTC, with milliseconds if there are any.
pub fn format_instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Returns the longest prefix of `text` that fits `bytes`, cut between characters.
pub fn truncate(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The parts of a delivery that identify it.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// The property `message_id`.
    pub message_id: Option<&'a str>,
    /// The header `sexton-attempt`.
    pub attempt: Option<i64>,
    /// The header `sexton-schema`.
    pub schema: Option<i64>,
    /// Why its properties could not be read.
    pub flaw: Option<&'a str>,
    /// The payload.
    pub body: &'a [u8],
}

/// The kind of a delivery.
#[derive(Clone, PartialEq, Debug)]
pub enum IncomingMessage {
    /// A ticket: it names an execution and an attempt.
    Ticket {
        /// The execution.
        execution_id: ExecutionId,
        /// The attempt it authorises.
        attempt: AttemptNumber,
    },
    /// A task that another system published in the documented form.
    Foreign(ForeignTask),
    /// Neither: parked as it is.
    Unreadable {
        /// The problem, for people.
        reason: String,
    },
}

/// A task published by another system.
#[derive(Clone, PartialEq, Debug)]
pub struct ForeignTask {
    /// The body's `type`.
    pub task_type: String,
    /// The message id, which deduplicates; without one a crash between the adoption and the acknowledgement can run
    /// the task twice.
    pub key: Option<String>,
    /// The body's `id`.
    pub target: Option<String>,
    /// `params_scheduler`, with the body's `id` and `scheduler_id` beside it.
    pub params: Value,
}

/// Classifies a delivery. Never panics, for any bytes.
pub fn read_message(envelope: Envelope<'_>) -> IncomingMessage {
    match try_read(envelope) {
        Ok(incoming) => incoming,
        Err(reason) => IncomingMessage::Unreadable { reason },
    }
}

fn try_read(envelope: Envelope<'_>) -> Result<IncomingMessage, String> {
    if let Some(flaw) = envelope.flaw {
        return Err(with_correction_hint(format!(
            "the message's properties cannot be read: {flaw}"
        )));
    }
    if let Some(schema) = envelope.schema
        && schema != SCHEMA_VERSION
    {
        return Err(unknown_version(&schema.to_string(), "the header sexton-schema"));
    }
    // The properties alone make a ticket, whatever its body.
    if let Some(number) = envelope.attempt {
        let id = envelope.message_id.and_then(|id| Uuid::parse_str(id).ok()).ok_or_else(|| {
            "the header sexton-attempt is there, but the message id is not an execution's id"
                .to_owned()
        })?;
        return ticket(id, number);
    }
    let body = parse_object(envelope.body).map_err(with_correction_hint)?;
    if let Some(version) = body.get("v")
        && version.as_i64() != Some(SCHEMA_VERSION)
    {
        let version = match version {
            Value::Number(number) => number.to_string(),
            Value::String(text) => quoted(text),
            other => quoted(&other.to_string()),
        };
        return Err(unknown_version(&version, "the body"));
    }
    // Tools that move a body without its headers must not turn a ticket into a second execution.
    if let (Some(id), Some(number)) = (
        body.get("execution_id").and_then(Value::as_str),
        body.get("attempt").and_then(Value::as_i64),
    ) {
        let id = Uuid::parse_str(id)
            .map_err(|_| "the body's execution_id is not an execution's id".to_owned())?;
        return ticket(id, number);
    }
    check_exactness(envelope.body).map_err(|error| with_correction_hint(error.to_string()))?;
    foreign(body, envelope.message_id).map(IncomingMessage::Foreign).map_err(with_correction_hint)
}

fn parse_object(body: &[u8]) -> Result<Map<String, Value>, String> {
    if body.len() > MAX_BODY_BYTES {
        return Err(format!("the body has {} bytes, more than {MAX_BODY_BYTES}", body.len()));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err("the body is not a JSON object".to_owned()),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    }
}

/// A newer program's message is whole: it only needs a worker that can read it.
fn unknown_version(version: &str, place: &str) -> String {
    format!(
        "unknown version {version} in {place}; this worker reads {SCHEMA_VERSION}: upgrade the workers, then \
         move the message back to its queue"
    )
}

fn with_correction_hint(reason: String) -> String {
    reason + "; publish it again, corrected"
}

fn ticket(id: Uuid, number: i64) -> Result<IncomingMessage, String> {
    let attempt = i32::try_from(number)
        .ok()
        .and_then(AttemptNumber::new)
        .ok_or_else(|| format!("{number} is not an attempt number"))?;
    Ok(IncomingMessage::Ticket { execution_id: ExecutionId::new(id), attempt })
}

fn foreign(mut body: Map<String, Value>, message_id: Option<&str>) -> Result<ForeignTask, String> {
    let task_type = match body.get("type") {
        Some(Value::String(text)) => text.clone(),
        Some(_) => return Err("the body's type is not a text".to_owned()),
        None => return Err("the body has no type".to_owned()),
    };
    if !is_task_type(&task_type) {
        return Err(format!(
            "the body's type {} is not a task type: 1 to {MAX_TASK_TYPE_BYTES} of A-Z a-z 0-9 . _ -",
            quoted(&task_type)
        ));
    }
    let key = message_id.filter(|id| !id.is_empty()).map(str::to_owned);
    if let Some(key) = &key {
        key::check(key).map_err(|error| format!("the message id cannot be a key: {error}"))?;
    }
    let mut params = foreign_params(body.remove("params_scheduler"))?;
    let target = foreign_target(body.get("id"))?;
    for name in ["id", "scheduler_id"] {
        if let Some(value) = body.remove(name) {
            params.entry(name).or_insert(value);
        }
    }
    params::check(&params).map_err(|error| format!("the params {error}"))?;
    let params = Value::Object(params);
    Ok(ForeignTask { task_type, key, target, params })
}

/// Checks what is kept of a foreign body. Parsed, it would be something else already.
fn check_exactness(body: &[u8]) -> Result<(), InexactJson> {
    let parts: HashMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    if parts.contains_key(RESERVED_NAME) {
        return Err(InexactJson::Reserved);
    }
    let kept = ["id", "scheduler_id", "params_scheduler"];
    kept.iter()
        .filter_map(|name| parts.get(*name))
        .try_for_each(|part| exact_json::check(part.get().as_bytes()))
}

/// Accepts an object, or a string with one as JSON; absent and null are an empty object.
fn foreign_params(params: Option<Value>) -> Result<Map<String, Value>, String> {
    match params {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(Value::String(text)) => {
            exact_json::check(text.as_bytes()).map_err(|error| error.to_string())?;
            match serde_json::from_str(&text) {
                Ok(Value::Object(map)) => Ok(map),
                Ok(_) => Err("params_scheduler is a text, but not of a JSON object".to_owned()),
                Err(error) => Err(format!("params_scheduler is a text, but not JSON: {error}")),
            }
        }
        Some(_) => Err("params_scheduler is neither an object nor a text".to_owned()),
    }
}

/// It becomes an environment variable of the task, which has limits of its own.
fn foreign_target(id: Option<&Value>) -> Result<Option<String>, String> {
    match id {
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(Value::String(text)) if text.len() > MAX_TARGET_BYTES => {
            Err(format!("the body's id has {} bytes, more than {MAX_TARGET_BYTES}", text.len()))
        }
        Some(Value::String(text)) if text.contains('\0') => {
            Err("the body's id holds the character U+0000, which no task can be given".to_owned())
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        _ => Ok(None),
    }
}

/// Returns whether `text` can name a task type, for catalogues and log lines.
pub fn is_task_type(text: &str) -> bool {
    (1..=MAX_TASK_TYPE_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests;
