//! Enqueues executions.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_operations::enqueue::{self, Enqueue, IfExists, MAX_AHEAD, MAX_BATCH, parse_unique_for};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, Path};
use super::problem_of_field;
use crate::access::{Allowed, Operator};
use crate::problem::Problem;

/// What becomes of an execution that has the key already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownKey {
    /// It stays as it is.
    #[default]
    Keep,
    /// It gets the new params and labels, unless it has begun.
    Replace,
    /// It gets the new params, labels and time, unless it has begun.
    Postpone,
}

/// An execution to be enqueued.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueExecution {
    /// The job's name.
    job: String,
    /// Fields that override those of the job's params.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
    /// The caller's own key: what it names is enqueued once.
    key: Option<String>,
    /// How long the key stands for one execution: `ever`, `open` (until it has ended), or a period such as `1h`.
    unique_for: Option<String>,
    /// What becomes of an execution that has the key already.
    #[serde(default)]
    if_exists: KnownKey,
    /// When it runs; at once if absent.
    run_at: Option<DateTime<Utc>>,
    /// Or so many seconds after now.
    #[schema(maximum = 34_560_000)]
    delay_s: Option<u64>,
    /// Labels, for people.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// An execution that was enqueued, or that had the key.
#[derive(Debug, Serialize, ToSchema)]
pub struct EnqueuedExecution {
    /// Its id.
    execution_id: Uuid,
    /// Its key.
    key: String,
    /// Whether this request made it.
    created: bool,
    /// Its state.
    state: String,
}

/// Enqueues an execution of a job, as programs do: a job that is paused takes none. The audit records it.
///
/// Send it again after 503: with a key it is enqueued once. A program that shares the database enqueues in its transaction instead, by
/// `sexton.enqueue`.
#[utoipa::path(post, path = "/enqueue", tag = "executions", operation_id = "enqueue", extensions(("x-role" = json!("operator"))),
    request_body = EnqueueExecution,
    responses((status = 200, description = "The execution.", body = EnqueuedExecution)))]
pub async fn enqueue(
    allowed: Allowed<Operator>,
    Body(request): Body<EnqueueExecution>,
) -> Result<Json<EnqueuedExecution>, Problem> {
    let parts = Parts {
        params: request.params.as_ref(),
        key: request.key.as_deref(),
        unique_for: request.unique_for.as_deref(),
        if_exists: request.if_exists,
        run_at: request.run_at,
        delay_s: request.delay_s,
        labels: &request.labels,
    };
    let enqueue = parts.read(&request.job, "")?;
    let (store, actor) = (allowed.writes(), allowed.actor());
    let done = enqueue::enqueue_as(&store, &request.job, &enqueue, actor).await?;
    Ok(Json(EnqueuedExecution {
        execution_id: done.execution_id,
        key: done.key,
        created: done.created,
        state: done.state,
    }))
}

/// An execution of many.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueItem {
    /// The caller's own key: what it names is enqueued once.
    key: String,
    /// Fields that override those of the job's params.
    #[schema(value_type = Option<Object>)]
    params: Option<Map<String, Value>>,
    /// How long the key stands for one execution: `ever`, `open` (until it has ended), or a period such as `1h`.
    unique_for: Option<String>,
    /// What becomes of an execution that has the key already.
    #[serde(default)]
    if_exists: KnownKey,
    /// When it runs; at once if absent.
    run_at: Option<DateTime<Utc>>,
    /// Or so many seconds after now.
    #[schema(maximum = 34_560_000)]
    delay_s: Option<u64>,
    /// Labels, for people.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Many executions of one job.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueEach {
    /// The executions, at most 10,000.
    #[schema(min_items = 1, max_items = 10_000)]
    items: Vec<EnqueueItem>,
}

/// How many executions were enqueued.
#[derive(Debug, Serialize, ToSchema)]
pub struct EnqueuedEach {
    /// The job.
    job_name: String,
    /// New executions.
    created: usize,
    /// Keys that had an execution already.
    known: usize,
}

/// Enqueues an execution of a job for each of many keys: all of them or, on any problem, none. The audit records them in one row.
///
/// Send it again after 503: each key is enqueued once.
#[utoipa::path(post, path = "/jobs/{name}/enqueue-each", tag = "jobs", operation_id = "enqueue_each",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = EnqueueEach,
    responses((status = 200, description = "How many were enqueued.", body = EnqueuedEach)))]
pub async fn enqueue_each(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(EnqueueEach { items }): Body<EnqueueEach>,
) -> Result<Json<EnqueuedEach>, Problem> {
    if !(1..=MAX_BATCH).contains(&items.len()) {
        let detail = format!("must have 1 to {MAX_BATCH} executions");
        return Err(problem_of_field("/items", &detail));
    }
    let read = |(index, item): (usize, &EnqueueItem)| {
        let parts = Parts {
            params: item.params.as_ref(),
            key: Some(&item.key),
            unique_for: item.unique_for.as_deref(),
            if_exists: item.if_exists,
            run_at: item.run_at,
            delay_s: item.delay_s,
            labels: &item.labels,
        };
        parts.read(&name, &format!("/items/{index}"))
    };
    let all = items.iter().enumerate().map(read).collect::<Result<Vec<Enqueue>, Problem>>()?;
    let (store, actor) = (allowed.writes(), allowed.actor());
    let created = enqueue::enqueue_many_as(&store, &name, &all, actor).await?;
    Ok(Json(EnqueuedEach { job_name: name, created, known: all.len() - created }))
}

/// What an execution is enqueued with.
struct Parts<'a> {
    params: Option<&'a Map<String, Value>>,
    key: Option<&'a str>,
    unique_for: Option<&'a str>,
    if_exists: KnownKey,
    run_at: Option<DateTime<Utc>>,
    delay_s: Option<u64>,
    labels: &'a BTreeMap<String, String>,
}

impl Parts<'_> {
    /// Reads it for a job; problems name the fields of the object at `pointer`.
    fn read(&self, job: &str, pointer: &str) -> Result<Enqueue, Problem> {
        let wrong =
            |field: &str, detail: &str| problem_of_field(&format!("{pointer}/{field}"), detail);
        let mut enqueue = Enqueue::new(job.to_owned());
        if let Some(params) = self.params {
            enqueue =
                enqueue.params(params).map_err(|error| wrong("params", &error.to_string()))?;
        }
        if self.key.is_none() && self.unique_for.is_some() {
            return Err(wrong("unique_for", "goes with a key"));
        }
        if let Some(key) = self.key {
            enqueue = enqueue.key(key.to_owned());
        }
        if let Some(text) = self.unique_for {
            let period = parse_unique_for(text).map_err(|error| wrong("unique_for", &error))?;
            enqueue = enqueue.unique_for(period);
        }
        enqueue = enqueue.if_exists(match self.if_exists {
            KnownKey::Keep => IfExists::Keep,
            KnownKey::Replace => IfExists::Replace,
            KnownKey::Postpone => IfExists::Postpone,
        });
        enqueue = match (self.run_at, self.delay_s.map(Duration::from_secs)) {
            (Some(_), Some(_)) => return Err(wrong("delay_s", "goes without run_at")),
            (Some(at), None) => enqueue.run_at(at),
            (None, Some(delay)) if delay > MAX_AHEAD => {
                return Err(wrong("delay_s", "is longer than 400 days"));
            }
            (None, Some(delay)) => enqueue.delay(delay),
            (None, None) => enqueue,
        };
        for (name, text) in self.labels {
            enqueue = enqueue.label(name.clone(), text.clone());
        }
        Ok(enqueue)
    }
}
