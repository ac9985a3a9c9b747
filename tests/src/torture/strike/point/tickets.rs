//! Points that a ticket passes only in trouble: refused, missed, locked, early, foreign.

use anyhow::{Context as _, Result};
use sexton_model::id::ExecutionId;
use sexton_store::operator;
use tokio::time::sleep;
use uuid::Uuid;

use super::{CrashTarget, mend, not_passed, nothing};
use crate::torture::arena::{Arena, ME, Role, require};
use crate::torture::fault::{Program, Server};
use crate::torture::ledger::TaskBehavior;
use crate::torture::strike::Outcome;
use crate::torture::strike::manual::{carry, present, take, take_unserved, until_state};
use crate::torture::{jobs, rows};

/// The queue of a pool is deleted: the broker returns what is published to it.
pub(super) async fn refused(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    target.start(arena)?;
    // The first makes the pool known to this process, so that it does not declare it again.
    let first = arena.trigger(jobs::UNSERVED, None).await?;
    carry(arena, first).await?;
    let queue = arena.queue(jobs::UNSERVED_POOL)?;
    let hand = arena.hand().await?;
    hand.delete(&queue).await?;
    hand.let_go().await;
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let broker_dies = arena.storm == Some(Server::RabbitMq);
    let at = target.blow(arena, at).await?;
    arena.complete()?;
    if broker_dies {
        mend(arena, &queue).await?;
    }
    carry(arena, id).await?;
    target.recovery(arena, at, vec![id]).await
}

/// A ticket vanishes from its queue, or with its queue; for the rows, ten minutes pass.
pub(super) async fn missed(arena: &mut Arena, name: &str, with_queue: bool) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let queue = arena.queue(jobs::UNSERVED_POOL)?;
    take(arena, &queue, id).await?;
    let marked = arena
        .until(arena.timeouts.strike, async || {
            let marked = format!("e.id = '{id}' AND e.ticket_published_at IS NOT NULL");
            Ok((!rows::ids(arena.pool(), &marked).await?.is_empty()).then_some(()))
        })
        .await;
    require(marked.is_some(), "a ticket was not marked as published")?;
    arena.kill(Program::Scheduler, Role::Victim);
    if with_queue {
        let hand = arena.hand().await?;
        hand.delete(&queue).await?;
        hand.let_go().await;
    }
    rows::change(
        arena.pool(),
        "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
             ticket_published_at = ticket_published_at - interval '10 minutes'
         WHERE pool = 'nobodys' AND state = 'pending'",
    )
    .await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let broker_dies = arena.storm == Some(Server::RabbitMq);
    let at = target.blow(arena, at).await?;
    arena.complete()?;
    if with_queue && broker_dies {
        mend(arena, &queue).await?;
    }
    carry(arena, id).await?;
    target.recovery(arena, at, vec![id]).await
}

/// The row is locked for so long that the lease is not fresh when it is opened.
pub(super) async fn locked(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    target.start(arena)?;
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    take_unserved(arena, id).await?;
    arena.process(Program::Worker, Role::Victim)?.try_ready().await?;
    let mut lock = arena.pool().begin().await?;
    sqlx::query("SELECT FROM sexton.executions WHERE id = $1 FOR UPDATE")
        .bind(id)
        .execute(&mut *lock)
        .await?;
    present(arena, id).await?;
    // More than a quarter of the lease; the worker waits for a whole one.
    sleep(arena.timeouts.lease.mul_f64(0.6)).await;
    lock.rollback().await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, vec![id]).await
}

/// A task type that no worker has offered for an hour.
pub(super) async fn unheard(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    take_unserved(arena, id).await?;
    rows::change(
        arena.pool(),
        "UPDATE sexton.executions SET task_type = 'unheard',
             next_attempt_at = next_attempt_at - interval '61 minutes'
         WHERE job_id = (SELECT id FROM sexton.jobs WHERE name = 'torture.nobody') AND state = 'pending' AND task_type = 'work'",
    )
    .await?;
    target.start(arena)?;
    present(arena, id).await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let outcome = target.recovery(arena, at, vec![id]).await;
    operator::discard(arena.platform.store(), ExecutionId::new(id), ME, None).await?;
    outcome
}

/// The ticket of a firing that is an hour old, which is more than its job allows.
pub(super) async fn stale(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    take_unserved(arena, id).await?;
    rows::change(
        arena.pool(),
        "UPDATE sexton.executions SET execution_key = 'once-' || id, own_key = false,
             scheduled_for = scheduled_for - interval '1 hour'
         WHERE job_id = (SELECT id FROM sexton.jobs WHERE name = 'torture.nobody') AND state = 'pending' AND task_type = 'work'",
    )
    .await?;
    target.start(arena)?;
    present(arena, id).await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, vec![id]).await
}

/// A ticket long before it is due, which goes to a delay queue.
pub(super) async fn early(arena: &mut Arena, name: &str) -> Result<Outcome> {
    arena.behavior(jobs::LONG_RETRY, TaskBehavior::FailsFirst)?;
    let target = CrashTarget::at(name);
    target.start(arena)?;
    let id = arena.trigger(jobs::LONG_RETRY, None).await?;
    until_state(arena, id, "retrying", 2).await?;
    let feed = async |arena: &mut Arena| -> Result<()> {
        let (state, attempt) = rows::state(arena.pool(), id).await?;
        require(state == "retrying" && attempt == 2, "its time came before the worker took it")?;
        let hand = arena.hand().await?;
        hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 2).await?;
        hand.let_go().await;
        Ok(())
    };
    let Some(at) = target.dies(arena, feed).await? else { return Ok(not_passed(name)) };
    target.recovery(arena, at, vec![id]).await
}

/// Tasks that another system publishes, with a key or without.
pub(super) async fn foreign(arena: &mut Arena, name: &str, with_key: bool) -> Result<Outcome> {
    let target = CrashTarget::at(name);
    target.start(arena)?;
    let feed = async |arena: &mut Arena| -> Result<()> {
        let key = with_key.then(|| format!("foreign-{}", Uuid::new_v4()));
        let hand = arena.hand().await?;
        hand.foreign(&arena.queue(jobs::VICTIM_POOL)?, key.as_deref()).await?;
        hand.let_go().await;
        Ok(())
    };
    let Some(at) = target.dies(arena, feed).await? else { return Ok(not_passed(name)) };
    let by = target.by(arena)?;
    let executions = rows::ids(arena.pool(), &format!("e.claimed_by = '{by}'")).await?;
    executions.first().context("no execution was made of the message")?;
    target.recovery(arena, at, executions).await
}

/// A ticket before it is due, whose delay queue is missing: the broker returns the copy, and the
/// worker returns the ticket to its queue.
pub(super) async fn handed_back(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    take_unserved(arena, id).await?;
    due_in(arena, id, 29).await?;
    target.start(arena)?;
    arena.process(Program::Worker, Role::Victim)?.try_ready().await?;
    let hand = arena.hand().await?;
    hand.delete(&format!("{}_retry.30000", arena.queue(jobs::VICTIM_POOL)?)).await?;
    hand.let_go().await;
    present(arena, id).await?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    due_in(arena, id, 0).await?;
    target.recovery(arena, at, vec![id]).await
}

async fn due_in(arena: &Arena, id: Uuid, seconds: i32) -> Result<()> {
    sqlx::query(
        "UPDATE sexton.executions SET next_attempt_at = now() + $2 * interval '1 second' WHERE id = $1",
    )
    .bind(id)
    .bind(f64::from(seconds))
    .execute(arena.pool())
    .await?;
    Ok(())
}
