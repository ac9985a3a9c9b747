//! Points of the sweep, which keeps the failed queue in step with the rows.

use anyhow::{Context as _, Result};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::operator;
use uuid::Uuid;

use super::{CrashTarget, mend, not_passed, nothing};
use crate::torture::arena::{Arena, ME, Role, require};
use crate::torture::fault::{Program, Server};
use crate::torture::strike::Outcome;
use crate::torture::strike::failure::follows;
use crate::torture::strike::manual::{park, take, until_taken};
use crate::torture::{jobs, rows};

/// A hand has rejected a ticket, so that the broker parked it.
pub(super) async fn failed(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let queue = arena.queue(jobs::UNSERVED_POOL)?;
    let rejected = arena
        .until(arena.timeouts.strike, async || {
            let hand = arena.hand().await?;
            let rejected = hand.reject(&queue, id).await;
            hand.let_go().await;
            Ok(rejected?.then_some(()))
        })
        .await;
    require(rejected.is_some(), "no ticket was there to be rejected")?;
    // It looks when it starts, and then once in half a minute.
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let outcome = target.recovery(arena, at, vec![id]).await?;
    if matches!(outcome, Outcome::Struck { .. }) {
        leave_a_copy(arena, id).await?;
    }
    Ok(outcome)
}

/// A copy of the ticket that nobody could open, left over in another queue: it must open nothing.
async fn leave_a_copy(arena: &mut Arena, id: Uuid) -> Result<()> {
    arena.complete()?;
    let hand = arena.hand().await?;
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 1).await?;
    until_taken(arena, &hand).await?;
    hand.let_go().await;
    operator::discard(arena.platform.store(), ExecutionId::new(id), ME, None).await?;
    Ok(())
}

/// A parked message was copied by hand: the pass keeps one and removes one.
pub(super) async fn copies(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = park(arena).await?;
    arena.kill(Program::Scheduler, Role::Victim);
    let hand = arena.hand().await?;
    hand.ticket(&arena.failed_queue(), id, 2).await?;
    hand.let_go().await;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    requeued(arena, target, at, id).await
}

/// A parked message was taken away.
pub(super) async fn unpublished(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = park(arena).await?;
    arena.kill(Program::Scheduler, Role::Victim);
    take(arena, &arena.failed_queue(), id).await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    requeued(arena, target, at, id).await
}

/// The whole failed queue was deleted.
pub(super) async fn declared(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = park(arena).await?;
    target.start(arena)?;
    // It declares every queue when it connects and when it first publishes for a pool, so not before.
    arena.process(Program::Scheduler, Role::Victim)?.try_ready().await?;
    let by = target.by(arena)?;
    let published = format!(
        "e.claimed_by = '{by}' AND e.pool = '{}' AND e.state <> 'skipped'
         AND e.ticket_published_at IS NOT NULL",
        jobs::VICTIM_POOL
    );
    let published = arena.until(arena.timeouts.strike, async || {
        Ok((!rows::ids(arena.pool(), &published).await?.is_empty()).then_some(()))
    });
    require(published.await.is_some(), "the scheduler published nothing")?;
    // A worker that comes back to its queues would declare this one, too.
    for role in [Role::Victim, Role::Peer] {
        arena.kill(Program::Worker, role);
    }
    let hand = arena.hand().await?;
    hand.delete(&arena.failed_queue()).await?;
    hand.let_go().await;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let broker_dies = arena.storm == Some(Server::RabbitMq);
    let outcome = requeued(arena, target, at, id).await?;
    if broker_dies {
        mend(arena, &arena.failed_queue()).await?;
    }
    Ok(outcome)
}

/// The parked execution is requeued and runs: its end is the recovery.
async fn requeued(
    arena: &mut Arena,
    target: CrashTarget<'_>,
    at: tokio::time::Instant,
    id: Uuid,
) -> Result<Outcome> {
    let at = target.blow(arena, at).await?;
    let (state, attempt) = rows::state(arena.pool(), id).await?;
    follows(state == "failed", "the parked execution did not stay failed")?;
    let seen = AttemptNumber::new(attempt).context("a number")?;
    operator::requeue(arena.platform.store(), ExecutionId::new(id), seen, ME, None).await?;
    target.recovery(arena, at, vec![id]).await
}
