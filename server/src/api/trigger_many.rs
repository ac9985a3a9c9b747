//! Triggers many: one execution of each of several jobs, or many of one job.

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_model::state::State;
use sexton_operations::error::OperationError;
use sexton_operations::jobs::trigger_jobs::{
    JobOutcome, JobTrigger, LAST_JOB, MAX_JOBS, MAX_JOBS_WITHOUT_KEY, TIME_LIMIT, trigger_all,
};
use sexton_operations::jobs::trigger_many::{TriggerItemRequest, TriggerLines};
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Body, Path};
use super::problem_of_field;
use crate::access::{Allowed, Operator, Unattended};
use crate::problem::{Problem, ProblemPlace};

/// A trigger of several jobs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerJobs {
    /// The jobs' names.
    #[schema(min_items = 1, max_items = 1_000)]
    jobs: Vec<String>,
    /// The caller's own key, for each of the jobs: what is sent twice with one key runs once. Needed for more than 100 jobs.
    key: Option<String>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// What became of each job of a trigger.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggeredJobs {
    /// In the order of the request.
    items: Vec<TriggeredJob>,
}

/// A job that was triggered, or was not.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggeredJob {
    /// The job's name.
    job: String,
    /// What became of it.
    outcome: TriggerOutcome,
    /// Its execution; absent: it has none, or nobody knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<Uuid>,
    /// Whether this request made the execution.
    created: bool,
    /// The execution's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// Why it was refused, or why nobody knows what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// What became of a job of a trigger. Send one that is `unknown` or `not_tried` again with the same key; without one, look first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerOutcome {
    /// This request made its execution.
    Created,
    /// The key has its execution already.
    Known,
    /// It was refused.
    Refused,
    /// The database did not answer. Send it again with the same key; without one, look first.
    Unknown,
    /// The time was up, or the database did not answer for a job before it. Send it again with the same key.
    NotTried,
}

impl From<JobTrigger> for TriggeredJob {
    fn from(JobTrigger { job, outcome }: JobTrigger) -> Self {
        let without = |outcome, problem: Option<Problem>| (outcome, None, None, problem);
        let (outcome, execution_id, state, problem) = match outcome {
            JobOutcome::Done(done) => {
                let outcome =
                    if done.created { TriggerOutcome::Created } else { TriggerOutcome::Known };
                (outcome, Some(done.id.get()), Some(done.state), None)
            }
            JobOutcome::Refused(error) => without(TriggerOutcome::Refused, Some(error.into())),
            JobOutcome::Unknown(error) => without(TriggerOutcome::Unknown, Some(error.into())),
            JobOutcome::NotTried => without(TriggerOutcome::NotTried, None),
        };
        let created = outcome == TriggerOutcome::Created;
        Self { job, outcome, execution_id, created, state, problem }
    }
}

/// Triggers jobs, with a key and a reason. A client who leaves does not end it.
pub(crate) async fn trigger_jobs_by(
    allowed: &Allowed<Operator>,
    jobs: Vec<String>,
    (key, reason): (Option<String>, Option<String>),
) -> Result<Vec<JobTrigger>, OperationError> {
    let busy = "other requests trigger many jobs at this moment; nothing was triggered, send this one again in some seconds";
    let (store, actor) = (allowed.writes(), allowed.actor().clone());
    let work = async move {
        let (options, limits) =
            ((key.as_deref(), reason.as_deref()), (Instant::now() + TIME_LIMIT, LAST_JOB));
        trigger_all(&store, jobs, options, &actor, limits).await
    };
    let running = allowed.spawn_limited(Unattended::Triggers, work);
    let running = running.ok_or_else(|| OperationError::Failed(busy.to_owned()))?;
    running.await.map_err(|error| OperationError::Failed(error.to_string()))?
}

/// Runs several jobs now, each with its own params, each by itself: one that is refused keeps no other from running.
///
/// When its time is up, or the database does not answer, it tries no other: the answer says which were not tried. Send them again with the same key.
#[utoipa::path(post, path = "/jobs:trigger", tag = "jobs", operation_id = "trigger_jobs", extensions(("x-role" = json!("operator"))),
    request_body = TriggerJobs,
    responses((status = 200, description = "What became of each.", body = TriggeredJobs)))]
pub async fn trigger_jobs(
    allowed: Allowed<Operator>,
    Body(TriggerJobs { jobs, key, reason }): Body<TriggerJobs>,
) -> Result<Json<TriggeredJobs>, Problem> {
    if !(1..=MAX_JOBS).contains(&jobs.len()) {
        let detail = format!("must have 1 to {MAX_JOBS} names");
        return Err(problem_of_field("/jobs", &detail));
    }
    let mut places = Vec::new();
    if key.is_none() && jobs.len() > MAX_JOBS_WITHOUT_KEY {
        let detail = format!(
            "is needed for more than {MAX_JOBS_WITHOUT_KEY} jobs: those that are not tried in time are sent again with it"
        );
        places.push(ProblemPlace::at("/key", detail));
    }
    for (index, name) in jobs.iter().enumerate() {
        if jobs[..index].contains(name) {
            places.push(ProblemPlace::at(format!("/jobs/{index}"), "is there twice"));
        }
    }
    if !places.is_empty() {
        return Err(Problem::several(places));
    }
    let done = trigger_jobs_by(&allowed, jobs, (key, reason)).await;
    let done = done.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(TriggeredJobs { items: done.into_iter().map(TriggeredJob::from).collect() }))
}

/// An execution of many.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggeredItem {
    /// The caller's own key: what is sent twice with one key runs once.
    key: String,
    /// Fields that override those of the job's params.
    #[serde(default)]
    #[schema(value_type = Object)]
    params: Map<String, Value>,
}

/// Many executions of one job.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerEach {
    /// The executions, at most 100,000; of a job that runs one at a time, 1,000.
    #[schema(min_items = 1, max_items = 100_000)]
    items: Vec<TriggeredItem>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// How many executions were triggered.
#[derive(Debug, Serialize, ToSchema)]
pub struct TriggeredEach {
    /// The job.
    job_name: String,
    /// New executions.
    created: u64,
    /// Of these, how many wait until the job is free.
    waiting: u64,
    /// Keys that had an execution already.
    known: u64,
}

/// Triggers an execution of a job for each of many keys: all are checked before the first one is triggered.
///
/// Sent again after 503 without its `Idempotency-Key`, or with a new one, it triggers the others.
#[utoipa::path(post, path = "/jobs/{name}/trigger-each", tag = "jobs", operation_id = "trigger_each",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = TriggerEach,
    responses((status = 200, description = "How many were triggered.", body = TriggeredEach)))]
pub async fn trigger_each(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(TriggerEach { items, reason }): Body<TriggerEach>,
) -> Result<Json<TriggeredEach>, Problem> {
    let items =
        items.into_iter().map(|item| TriggerItemRequest { key: item.key, params: item.params });
    let lines = TriggerLines::of_items("items", &items.collect::<Vec<_>>())?;
    let store = allowed.writes();
    let done = lines.trigger(&store, &name, allowed.actor(), reason.as_deref()).await?;
    Ok(Json(TriggeredEach {
        job_name: name,
        created: done.created,
        waiting: done.waiting,
        known: done.known,
    }))
}
