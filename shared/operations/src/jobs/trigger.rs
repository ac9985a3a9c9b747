//! Runs a job now, also if it is paused or still under way.

use serde_json::{Map, Value};
use sexton_model::id::ExecutionId;
use sexton_model::params::check;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{self, Trigger, TriggerError, Triggered};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{InvalidRequest, OperationError};
use crate::job_names;
use crate::params_schemas::ParamsSchemas;

/// Far more than the params of an execution may have; the store measures exactly.
const MAX_PARAMS_BYTES: usize = 1024 * 1024;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct TriggerRequest<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The caller's own key: the same key never runs twice.
    pub key: Option<&'a str>,
    /// Fields that replace those of the job's params; see [`read_params`]. `None`: the job's own params.
    pub params: Option<&'a Map<String, Value>>,
    /// Why, for the audit.
    pub reason: Option<&'a str>,
}

/// Claims an execution; with a key that is used already, answers with the execution that has it. One transaction; a
/// crash after it leaves a pending execution, whose ticket the relay publishes.
///
/// Params that are given are validated, since they run at once. The job's own are what its firings run with, too, and
/// are not.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`]; [`InvalidRequest`] for a key or params that cannot be.
pub async fn trigger(
    store: &Store,
    request: TriggerRequest<'_>,
    actor: &Actor,
) -> Result<Triggered, OperationError> {
    let TriggerRequest { job, key, params, reason } = request;
    if let Some(params) = params {
        check_params(store, job, params).await?;
    }
    let claimer = actor.claimer();
    let trigger = Trigger {
        job,
        key,
        params: params.cloned().unwrap_or_default(),
        id: ExecutionId::new(Uuid::now_v7()),
        claimed_by: &claimer,
    };
    let by = audit_context(key.is_some(), actor, reason);
    let done = match trigger::trigger(store, trigger, by, None).await {
        Ok(done) => done,
        Err(TriggerError::Missing(name)) => return Err(job_names::missing(store, &name).await),
        Err(TriggerError::Store(error)) => return Err(error.into()),
        Err(error @ TriggerError::Locked(_)) => {
            return Err(OperationError::Failed(error.to_string()));
        }
        Err(error @ (TriggerError::Key(_) | TriggerError::Params(_))) => {
            return Err(InvalidRequest::Other(error.to_string()).into());
        }
    };
    if done.created {
        claimed_fault_point();
    }
    Ok(done)
}

/// In whose name a trigger is recorded; `None`: nobody's, since a program asks. It brings a key of its own, gives no
/// reason, and nobody waits for the answer; the execution's row says which program it is.
pub(super) fn audit_context<'a>(
    has_key: bool,
    actor: &'a Actor,
    reason: Option<&'a str>,
) -> Option<AuditContext<'a>> {
    let is_program = has_key && reason.is_none() && !actor.is_interactive;
    (!is_program).then(|| actor.because(reason))
}

/// Executions are claimed, and nobody knows yet.
pub(super) fn claimed_fault_point() {
    fault::point("console.triggered");
}

/// Refuses params that, with the job's own, do not fit what the workers at work say of the job's task type.
async fn check_params(
    store: &Store,
    name: &str,
    given: &Map<String, Value>,
) -> Result<(), OperationError> {
    let job = job_names::find(store, name).await?;
    let mut params = job.params;
    if let Some(all) = params.as_object_mut() {
        all.extend(given.clone());
    }
    Ok(ParamsSchemas::load(store, &job.task_type, &job.pool).await?.check(&params)?)
}

/// Reads the params of a trigger: a JSON object that can be stored. `None`: none are given.
///
/// # Errors
///
/// [`InvalidRequest`] of the field `params`.
pub fn read_params(text: Option<&str>) -> Result<Map<String, Value>, InvalidRequest> {
    let Some(text) = text else { return Ok(Map::new()) };
    let invalid = |problem: String| InvalidRequest::field("params", problem);
    if text.len() > MAX_PARAMS_BYTES {
        return Err(invalid(format!("has {} bytes: too many", text.len())));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(params)) => match check(&params) {
            Ok(()) => Ok(params),
            Err(error) => Err(invalid(format!(": they {error}"))),
        },
        Ok(_) => {
            Err(invalid("is not a JSON object; write it as in '{\"customer\": 4891}'".to_owned()))
        }
        Err(error) => {
            Err(invalid(format!("is not JSON ({error}); write it as in '{{\"customer\": 4891}}'")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_an_object_that_can_be_stored() {
        assert_eq!(read_params(None).unwrap(), Map::new());
        assert_eq!(read_params(Some(r#"{"a": {"b": 1}}"#)).unwrap()["a"]["b"], 1);
        for text in ["", "[1]", "{", r#"{"a": "\u0000"}"#, r#"{"a": [{"\u0000": 1}]}"#] {
            assert!(matches!(read_params(Some(text)), Err(InvalidRequest::Field { .. })), "{text}");
        }
    }
}
