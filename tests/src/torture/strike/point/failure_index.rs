//! The failure index: a scheduler dies between two of its steps.

use anyhow::Result;
use uuid::Uuid;

use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::{Arena, Role};
use crate::torture::fault::Program;
use crate::torture::strike::Outcome;
use crate::torture::strike::failure::follows;
use crate::torture::strike::manual::park;

/// A failure whose fingerprint is missing, as a statement by hand leaves it.
pub(super) async fn strike(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let target = CrashTarget::at(name).alone(arena);
    arena.kill(Program::Scheduler, Role::Victim);
    sqlx::query("UPDATE sexton.executions SET fingerprint = NULL WHERE id = $1")
        .bind(id)
        .execute(arena.pool())
        .await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let at = target.blow(arena, at).await?;
    target.go_on(arena)?;
    arena.complete()?;
    let indexed = arena.until(arena.timeouts.recovery, async || registered(arena, id).await).await;
    follows(indexed.is_some(), "the failure index lacks a failure, or its counts differ")?;
    Ok(target.recovery(arena, at, vec![id]).await?.of_the_past())
}

/// Whether the failure has its row with a fingerprint, and the counts agree with the rows.
async fn registered(arena: &Arena, id: Uuid) -> Result<Option<()>> {
    let fits: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM sexton.failures WHERE execution_id = $1 AND fingerprint IS NOT NULL)
            AND (SELECT coalesce(sum(n), 0) FROM (SELECT standing AS n FROM sexton.failure_counts
                    UNION ALL SELECT change FROM sexton.failure_changes) n)
                = (SELECT count(*) FROM sexton.failures WHERE NOT discarded AND fingerprint IS NOT NULL)",
    )
    .bind(id)
    .fetch_one(arena.pool())
    .await?;
    Ok(fits.then_some(()))
}
