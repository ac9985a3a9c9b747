//! Points of attempts whose worker is gone, or that an operator cancels.

use anyhow::{Context as _, Result};
use sexton_model::id::ExecutionId;
use sexton_store::operator;
use uuid::Uuid;

use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::{Arena, ME, Role};
use crate::torture::fault::Program;
use crate::torture::rows;
use crate::torture::strike::Outcome;
use crate::torture::strike::failure::follows;
use crate::torture::strike::process::{LONG_TASK, at_work};

/// Workers are killed in the middle of their tasks, and a scheduler ends the attempts.
pub(super) async fn rescued(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    at_work(arena, Program::Worker, LONG_TASK).await?;
    arena.kill(Program::Worker, Role::Victim);
    let since = rows::clock(arena.pool()).await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let ended = format!(
        "EXISTS (SELECT FROM sexton.all_attempts a WHERE a.execution_id = e.id AND a.outcome = 'lost'
                 AND a.finished_at >= '{since}')"
    );
    let executions = rows::ids(arena.pool(), &ended).await?;
    target.recovery(arena, at, executions).await
}

/// A worker dies as it ends the attempts of its predecessor of the same name.
pub(super) async fn inherited(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name);
    let executions = at_work(arena, Program::Worker, LONG_TASK).await?;
    arena.kill(Program::Worker, Role::Victim);
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, executions).await
}

/// A frozen worker resumes when another has its attempt.
pub(super) async fn late(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name);
    target.start(arena)?;
    let executions = at_work(arena, Program::Worker, LONG_TASK).await?;
    arena.process(Program::Worker, Role::Victim)?.pause();
    let id = *executions.first().context("the worker opened nothing")?;
    let lost = arena.until(arena.timeouts.recovery, async || {
        let (state, attempt) = rows::state(arena.pool(), id).await?;
        Ok((attempt > 1 || state != "running").then_some(()))
    });
    let lost = lost.await;
    arena.process(Program::Worker, Role::Victim)?.resume();
    follows(lost.is_some(), "the attempt of a frozen worker was not lost")?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, executions).await
}

/// A task is stopped, because an operator cancels it.
pub(super) async fn stopping(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name);
    target.start(arena)?;
    let executions: Vec<Uuid> = at_work(arena, Program::Worker, LONG_TASK).await?;
    for id in &executions {
        operator::cancel(arena.platform.store(), ExecutionId::new(*id), ME, None).await?;
    }
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, executions).await
}
