//! `sexton jobs trigger`, `pause` and `resume`.

use serde_json::json;
use sexton_operations::jobs::pause;
use sexton_operations::jobs::trigger::{TriggerRequest, read_params, trigger as trigger_job};

use super::{Pause, Resume, Trigger};
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{ago, line};

pub(super) async fn trigger(arguments: &Trigger, session: &Session) -> Result<(), Failure> {
    let params = read_params(arguments.params.as_deref())?;
    let store = session.store().await?;
    let request = TriggerRequest {
        job: &arguments.name,
        key: arguments.key.as_deref(),
        params: arguments.params.is_some().then_some(&params),
        reason: arguments.reason.as_deref(),
    };
    let done = trigger_job(&store, request, &session.actor).await?;
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
    session.out.print(format!("`sexton executions show {id}` shows its progress."))
}

pub(super) async fn pause(arguments: &Pause, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let name = &arguments.name;
    pause::pause(&store, name, &session.actor, &arguments.reason).await?;
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
    let reason = arguments.reason.as_deref();
    let resumed = pause::resume(&store, name, &session.actor, reason).await?;
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
