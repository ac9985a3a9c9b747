//! `sexton jobs trigger`, `pause` and `resume`.

use serde_json::{Map, Value, json};
use sexton_model::id::ExecutionId;
use sexton_model::params::check;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, PauseError};
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{self as triggering, TriggerError};
use uuid::Uuid;

use super::{Pause, Resume, Trigger, missing};
use crate::actor;
use crate::failure::Failure;
use crate::params_validation::ParamsSchemas;
use crate::session::Session;
use crate::show::{ago, line};

/// Far more than the params of an execution may have; the store measures exactly.
const MAX_PARAMS_BYTES: usize = 1024 * 1024;

pub(super) async fn trigger(arguments: &Trigger, session: &Session) -> Result<(), Failure> {
    let params = parse_params(arguments.params.as_deref())?;
    let store = session.store().await?;
    if arguments.params.is_some() {
        check_params(&store, &arguments.name, &params).await?;
    }
    let claimed_by = actor::trigger_claimer(&session.actor);
    let request = triggering::Trigger {
        job: &arguments.name,
        key: arguments.key.as_deref(),
        params,
        id: ExecutionId::new(Uuid::now_v7()),
        claimed_by: &claimed_by,
    };
    let by = audit_context(arguments.key.is_some(), arguments, session);
    let done = match triggering::trigger(&store, request, by, None).await {
        Ok(done) => done,
        Err(TriggerError::Missing(name)) => return Err(missing(&store, &name).await),
        Err(TriggerError::Store(error)) => return Err(error.into()),
        Err(error @ TriggerError::Locked(_)) => return Err(Failure::Failed(error.to_string())),
        Err(error @ (TriggerError::Key(_) | TriggerError::Params(_))) => {
            return Err(Failure::Usage(error.to_string()));
        }
    };
    if done.created {
        claimed_fault_point();
    }
    if session.out.is_json() {
        return session.out.document(&json!({
            "id": done.id,
            "job_name": arguments.name,
            "execution_key": done.execution_key,
            "created": done.created,
            "state": done.state,
            "waits": done.waits,
            "attempt": done.attempt,
            "scheduled_for": done.scheduled_for,
        }));
    }
    let (id, key) = (done.id, line(&done.execution_key, 80));
    if !done.created {
        return session.out.print(format!(
            "The key {key} is used already, by execution {id} ({}); nothing was triggered.",
            done.state.as_str()
        ));
    }
    session.out.print(format!("Execution {id} of {} is pending.", arguments.name))?;
    if done.waits {
        session
            .out
            .print("Another execution of the job is under way; this one waits for its turn.")?;
    }
    if done.paused {
        session.out.print("The job is paused; this execution runs all the same.")?;
    }
    session.out.print(format!("`sexton executions show {id}` tells how it goes."))
}

/// In whose name a trigger is recorded; `None`: nobody's, since a program asks.
pub(super) fn audit_context<'a>(
    has_key: bool,
    arguments: &'a Trigger,
    session: &'a Session,
) -> Option<AuditContext<'a>> {
    let reason = arguments.reason.as_deref();
    (!actor::is_program(has_key, reason)).then(|| AuditContext { actor: &session.actor, reason })
}

/// Executions are claimed, and nobody has been told.
pub(super) fn claimed_fault_point() {
    fault::point("console.triggered");
}

/// Refuses params that do not fit what the workers at work say of the job's task type: they would run at once. The
/// job's own, without any given here, are what its firings run with, too, and are not judged.
async fn check_params(
    store: &Store,
    name: &str,
    given: &Map<String, Value>,
) -> Result<(), Failure> {
    let Some(job) = jobs::find(store, name).await? else { return Err(missing(store, name).await) };
    let mut params = job.params;
    if let Some(all) = params.as_object_mut() {
        all.extend(given.clone());
    }
    ParamsSchemas::load(store, &job.task_type, &job.pool).await?.check(&params)
}

fn parse_params(text: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = text else { return Ok(Map::new()) };
    if text.len() > MAX_PARAMS_BYTES {
        return Err(Failure::Usage(format!("--params has {} bytes: too many", text.len())));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(params)) => match check(&params) {
            Ok(()) => Ok(params),
            Err(error) => Err(Failure::Usage(format!("--params: they {error}"))),
        },
        Ok(_) => Err(Failure::Usage(
            "--params is not a JSON object; write it as in '{\"customer\": 4891}'".to_owned(),
        )),
        Err(error) => Err(Failure::Usage(format!(
            "--params is not JSON ({error}); write it as in '{{\"customer\": 4891}}'"
        ))),
    }
}

pub(super) async fn pause(arguments: &Pause, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let name = &arguments.name;
    let by = AuditContext { actor: &session.actor, reason: Some(&arguments.reason) };
    if let Err(error) = jobs::pause(&store, name, by, None).await {
        return Err(pause_failure(&store, error, session).await);
    }
    fault::point("console.paused");
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "status": "paused"}));
    }
    session.out.print(format!(
        "{name} is paused; executions under way go on. `sexton jobs resume {name}` starts it again."
    ))
}

pub(super) async fn resume(arguments: &Resume, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let name = &arguments.name;
    let by = AuditContext { actor: &session.actor, reason: arguments.reason.as_deref() };
    let resumed = match jobs::resume(&store, name, by, None).await {
        Ok(resumed) => resumed,
        Err(error) => return Err(pause_failure(&store, error, session).await),
    };
    fault::point("console.resumed");
    if session.out.is_json() {
        return session.out.document(&json!({
            "name": name,
            "status": "active",
            "next_fire_at": resumed.next_fire_at,
            "passed": resumed.passed,
        }));
    }
    let now = session.now(&store).await?;
    let next = resumed.next_fire_at.map_or_else(
        || "it never fires again by itself".to_owned(),
        |at| format!("it fires next {}", ago(at, now)),
    );
    session.out.print(format!("{name} is active; {next}."))?;
    if resumed.passed > 0 {
        session.out.print(format!(
            "{} firings passed meanwhile; they are recorded as a gap and do not run.",
            resumed.passed
        ))?;
    }
    Ok(())
}

async fn pause_failure(store: &Store, error: PauseError, session: &Session) -> Failure {
    match error {
        PauseError::Missing(name) => missing(store, &name).await,
        PauseError::Paused(job) => {
            let since = match (job.paused_at, session.now(store).await) {
                (Some(at), Ok(now)) => format!(" since {}", ago(at, now)),
                _ => String::new(),
            };
            Failure::NothingDone(format!(
                "job {:?} is paused already{since}, by {}: {}",
                job.name,
                job.paused_by.as_deref().unwrap_or("somebody"),
                job.paused_why.as_deref().unwrap_or("no reason given")
            ))
        }
        error @ PauseError::Active(_) => Failure::NothingDone(error.to_string()),
        error @ PauseError::Locked(_) => Failure::Failed(error.to_string()),
        PauseError::Store(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_an_object_that_can_be_stored() {
        assert_eq!(parse_params(None).unwrap(), Map::new());
        assert_eq!(parse_params(Some(r#"{"a": {"b": 1}}"#)).unwrap()["a"]["b"], 1);
        for text in ["", "[1]", "{", r#"{"a": "\u0000"}"#, r#"{"a": [{"\u0000": 1}]}"#] {
            assert!(matches!(parse_params(Some(text)), Err(Failure::Usage(_))), "{text}");
        }
    }
}
