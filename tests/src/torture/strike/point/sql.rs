//! Points of a task that is a statement, whose effect must be there exactly once.

use anyhow::Result;

use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::Arena;
use crate::torture::strike::Outcome;
use crate::torture::strike::failure::follows;
use crate::torture::{effects, jobs};

pub(super) async fn strike(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    target.start(arena)?;
    let id = arena.trigger(jobs::STATEMENT, None).await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let outcome = target.recovery(arena, at, vec![id]).await?;
    let times = effects::of(arena.pool(), id).await?;
    follows(times == 1, &format!("the effect of {id} is there {times} times, not once"))?;
    Ok(outcome)
}
