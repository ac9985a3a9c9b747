//! Triggers a job now, even if it is paused or still under way.

use serde_json::{Map, Value};
use sexton_model::exact_json;
use sexton_model::id::ExecutionId;
use sexton_model::params::check;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{self, Trigger, TriggerError, Triggered};
use uuid::Uuid;

use crate::actor::Actor;
use crate::error::{InvalidRequest, OperationError};
use crate::failed::masked::masked_places;
use crate::job_names;
use crate::params_schemas::ParamsSchemas;

/// Far more than the params of an execution may have; the store checks the exact limit.
const MAX_PARAMS_BYTES: usize = 1024 * 1024;

/// A trigger.
#[derive(Clone, Copy, Debug)]
pub struct TriggerRequest<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The caller's own key: a key never runs twice.
    pub key: Option<&'a str>,
    /// Fields that override those of the job's params; see [`read_params`]. `None`: the job's own params.
    pub params: Option<&'a Map<String, Value>>,
    /// The reason for the audit.
    pub reason: Option<&'a str>,
}

/// Claims an execution; a key that is used already returns its execution. One transaction; a crash after it leaves a
/// pending execution, whose ticket the relay publishes.
///
/// Given params are validated, since they run at once, and have no mask of a secret. The job's own params are not,
/// since its firings run with them too.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`]; [`InvalidRequest`] for an invalid key or invalid params.
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
        Err(
            error @ (TriggerError::Key(_) | TriggerError::Params(_) | TriggerError::Template(_)),
        ) => {
            return Err(InvalidRequest::Other(error.to_string()).into());
        }
    };
    if done.created {
        claimed_fault_point();
    }
    Ok(done)
}

/// Returns the operator for the audit; `None` for a program, which brings a key, gives no reason, and does not wait
/// for the answer; the execution's row names the program.
pub(super) fn audit_context<'a>(
    has_key: bool,
    actor: &'a Actor,
    reason: Option<&'a str>,
) -> Option<AuditContext<'a>> {
    let is_program = has_key && reason.is_none() && !actor.is_interactive;
    (!is_program).then(|| actor.because(reason))
}

/// A fault point after the claim and before its publication.
pub(super) fn claimed_fault_point() {
    fault::point("console.triggered");
}

/// Refuses params that, with the job's own, do not match the schemas of the active workers.
async fn check_params(
    store: &Store,
    name: &str,
    given: &Map<String, Value>,
) -> Result<(), OperationError> {
    let job = job_names::find(store, name).await?;
    check_masks(&job.params, given)?;
    let mut params = job.params;
    if let Some(all) = params.as_object_mut() {
        all.extend(given.clone());
    }
    Ok(ParamsSchemas::load(store, &job.task_type, &job.pool).await?.check(&params)?)
}

/// Refuses masks, which would take the place of secrets.
fn check_masks(job_params: &Value, given: &Map<String, Value>) -> Result<(), InvalidRequest> {
    let places = masked_places(job_params, &Value::Object(given.clone()));
    if places.is_empty() {
        return Ok(());
    }
    let problem = format!(
        ": {} is the mask of a secret; write the secret itself, or leave the field out for the job's own",
        places.join(", ")
    );
    Err(InvalidRequest::field("params", problem))
}

/// Parses the params of a trigger: a JSON object that can be stored. `None`: none are given.
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
    exact_json::check(text.as_bytes()).map_err(|error| invalid(format!(": {error}")))?;
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
    fn a_mask_is_no_param_unless_the_job_has_it_there() {
        let job_params = serde_json::json!({"api_token": "hunter2", "pin": "***"});
        let check = |given: &str| check_masks(&job_params, &read_params(Some(given)).unwrap());
        let refused = check(r#"{"api_token": "***", "login": {"password": "***"}}"#).unwrap_err();
        let text = refused.to_string();
        assert!(text.starts_with("params: /api_token, /login/password is the mask"), "{text}");
        for given in [r#"{"api_token": "other"}"#, r#"{"pin": "***", "note": "***"}"#] {
            check(given).unwrap();
        }
    }

    #[test]
    fn params_are_an_object_that_can_be_stored() {
        assert_eq!(read_params(None).unwrap(), Map::new());
        assert_eq!(read_params(Some(r#"{"a": {"b": 1}}"#)).unwrap()["a"]["b"], 1);
        for text in [
            "",
            "[1]",
            "{",
            r#"{"a": "\u0000"}"#,
            r#"{"a": [{"\u0000": 1}]}"#,
            r#"{"a": 18446744073709551616}"#,
        ] {
            assert!(matches!(read_params(Some(text)), Err(InvalidRequest::Field { .. })), "{text}");
        }
    }
}
