//! Enqueues executions.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_operations::enqueue::{self, Enqueue, IfExists, MAX_AHEAD, parse_unique_for};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::Body;
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

/// Enqueues an execution of a job, as programs do: a job that is paused takes none.
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
    let enqueue = read(&request)?;
    let done = enqueue::enqueue(&allowed.writes(), &request.job, &enqueue).await?;
    Ok(Json(EnqueuedExecution {
        execution_id: done.execution_id,
        key: done.key,
        created: done.created,
        state: done.state,
    }))
}

fn read(request: &EnqueueExecution) -> Result<Enqueue, Problem> {
    let mut enqueue = Enqueue::new(request.job.clone());
    if let Some(params) = &request.params {
        enqueue = enqueue
            .params(params)
            .map_err(|error| problem_of_field("/params", &error.to_string()))?;
    }
    if request.key.is_none() && request.unique_for.is_some() {
        return Err(problem_of_field("/unique_for", "goes with a key"));
    }
    if let Some(key) = &request.key {
        enqueue = enqueue.key(key.clone());
    }
    if let Some(text) = &request.unique_for {
        let period = parse_unique_for(text);
        enqueue =
            enqueue.unique_for(period.map_err(|error| problem_of_field("/unique_for", &error))?);
    }
    enqueue = enqueue.if_exists(match request.if_exists {
        KnownKey::Keep => IfExists::Keep,
        KnownKey::Replace => IfExists::Replace,
        KnownKey::Postpone => IfExists::Postpone,
    });
    enqueue = match (request.run_at, request.delay_s.map(Duration::from_secs)) {
        (Some(_), Some(_)) => return Err(problem_of_field("/delay_s", "goes without run_at")),
        (Some(at), None) => enqueue.run_at(at),
        (None, Some(delay)) if delay > MAX_AHEAD => {
            return Err(problem_of_field("/delay_s", "is longer than 400 days"));
        }
        (None, Some(delay)) => enqueue.delay(delay),
        (None, None) => enqueue,
    };
    for (name, text) in &request.labels {
        enqueue = enqueue.label(name.clone(), text.clone());
    }
    Ok(enqueue)
}
