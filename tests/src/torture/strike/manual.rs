//! Somebody does what no part of the platform would do: doubles, keeps, hurries and moves messages.

use std::time::Duration;

use anyhow::{Context as _, Result};
use sexton_model::id::ExecutionId;
use sexton_store::operator;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::failure::{follows, undone};
use super::{Outcome, Struck};
use crate::torture::arena::{Arena, ME, require};
use crate::torture::broker_client::BrokerClient;
use crate::torture::fault::{Fault, ManualAction};
use crate::torture::ledger::TaskBehavior;
use crate::torture::{jobs, queues, rows};

pub(super) async fn strike(arena: &mut Arena, action: ManualAction) -> Result<Outcome> {
    let hand = arena.hand().await?;
    let struck = match action {
        ManualAction::TicketDoubled => double(arena, &hand).await,
        ManualAction::TicketKept => keep(arena, &hand).await,
        ManualAction::TicketEarly => hurry(arena, &hand).await,
        ManualAction::ParkedMovedTwice => move_twice(arena, &hand).await,
        ManualAction::DiscardedMoved => move_discarded(arena, &hand).await,
        ManualAction::CancelledFirst => cancel_first(arena, &hand).await,
        ManualAction::TriggeredTwice => trigger_twice(arena).await,
        ManualAction::ClockAhead => set_ahead(arena).await,
        _ => set_back(arena).await,
    }?;
    let name = Fault::Manual(action).to_string();
    let mut outcome = struck.recovery(arena, &name).await;
    if matches!(action, ManualAction::DiscardedMoved | ManualAction::CancelledFirst) {
        outcome = outcome.of_the_past();
    }
    until_taken(arena, &hand).await?;
    hand.let_go().await;
    Ok(outcome)
}

/// Waits until no message is ready in the victims' queue: what was put there has been looked at.
pub(super) async fn until_taken(arena: &Arena, hand: &BrokerClient) -> Result<()> {
    let queue = arena.queue(jobs::VICTIM_POOL)?;
    let taken = arena
        .until(arena.timeouts.recovery, async || Ok((hand.depth(&queue).await? == 0).then_some(())))
        .await;
    follows(taken.is_some(), "the workers do not take what is in their queue")
}

/// Waits until the execution is in this state with this attempt number.
pub(super) async fn until_state(arena: &Arena, id: Uuid, state: &str, attempt: i32) -> Result<()> {
    let there = arena
        .until(arena.timeouts.strike, async || {
            let (now, number) = rows::state(arena.pool(), id).await?;
            Ok((now == state && number == attempt).then_some(()))
        })
        .await;
    if there.is_none() {
        let row = rows::describe(arena.pool(), id).await;
        anyhow::bail!("an execution was not {state} at attempt {attempt}: {row}");
    }
    Ok(())
}

async fn double(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    arena.behavior(jobs::TRIGGERED, TaskBehavior::Takes(2))?;
    let id = arena.trigger(jobs::TRIGGERED, None).await?;
    until_state(arena, id, "running", 1).await?;
    let struck = Struck::now(vec![id]);
    for _ in 0..4 {
        hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 1).await?;
    }
    Ok(struck)
}

/// Brings an execution into the failed queue: attempt 1 has failed, and ticket 2 is parked.
pub(super) async fn park(arena: &Arena) -> Result<Uuid> {
    arena.behavior(jobs::TRIGGERED, TaskBehavior::Fails)?;
    let id = arena.trigger(jobs::TRIGGERED, None).await?;
    until_state(arena, id, "failed", 2).await?;
    let parked = arena.ended(&[id], arena.timeouts.recovery).await;
    if parked.is_err() {
        let row = queues::describe(arena, id).await;
        return Err(undone(format!("a failed execution was not parked: {row}")));
    }
    arena.calm()?;
    Ok(id)
}

async fn keep(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    let id = park(arena).await?;
    let struck = Struck::now(vec![id]);
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 1).await?;
    until_taken(arena, hand).await?;
    // One who has seen it requeues it, so that it does not stay.
    let failed = rows::state(arena.pool(), id).await?;
    if failed == ("failed".to_owned(), 2) {
        let seen = sexton_model::id::AttemptNumber::new(2).context("a number")?;
        operator::requeue(arena.platform.store(), ExecutionId::new(id), seen, ME, None).await?;
    }
    Ok(struck)
}

async fn hurry(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    arena.behavior(jobs::LONG_RETRY, TaskBehavior::FailsFirst)?;
    let id = arena.trigger(jobs::LONG_RETRY, None).await?;
    until_state(arena, id, "retrying", 2).await?;
    let struck = Struck::now(vec![id]);
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 2).await?;
    Ok(struck)
}

/// Takes the ticket that nobody takes, as soon as it is published; tickets that follow go to where the
/// workers are.
pub(super) async fn take_unserved(arena: &Arena, id: Uuid) -> Result<()> {
    take(arena, &arena.queue(jobs::UNSERVED_POOL)?, id).await?;
    sqlx::query("UPDATE sexton.executions SET pool = $2 WHERE id = $1")
        .bind(id)
        .bind(jobs::VICTIM_POOL)
        .execute(arena.pool())
        .await?;
    Ok(())
}

/// Takes the ticket that nobody takes to where the workers are.
pub(super) async fn carry(arena: &Arena, id: Uuid) -> Result<()> {
    take_unserved(arena, id).await?;
    present(arena, id).await
}

/// Puts the execution's first ticket where the workers are.
pub(super) async fn present(arena: &Arena, id: Uuid) -> Result<()> {
    let hand = arena.hand().await?;
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 1).await?;
    hand.let_go().await;
    Ok(())
}

/// Takes the message of `id` out of a queue that it is in, or is on its way to.
pub(super) async fn take(arena: &Arena, queue: &str, id: Uuid) -> Result<()> {
    // By a new hand each time: a queue that is not there yet costs the hand its channel, and a sweep
    // may hold the message at this moment.
    let taken = arena
        .until(arena.timeouts.recovery, async || {
            let hand = arena.hand().await?;
            let found = hand.take(queue, id).await;
            hand.let_go().await;
            Ok(found?.then_some(()))
        })
        .await;
    require(taken.is_some(), "a message was not in its queue")
}

async fn move_twice(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    let id = park(arena).await?;
    take(arena, &arena.failed_queue(), id).await?;
    arena.will_move(id);
    let struck = Struck::now(vec![id]);
    for _ in 0..2 {
        hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 2).await?;
    }
    // Failed and parked is an end, too, so the recovery alone would not wait for the second run.
    let ran = until_state(arena, id, "succeeded", 2).await;
    ran.map_err(|error| undone(format!("moved by hand, and not run: {error:#}")))?;
    Ok(struck)
}

async fn move_discarded(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    let id = park(arena).await?;
    take(arena, &arena.failed_queue(), id).await?;
    operator::discard(arena.platform.store(), ExecutionId::new(id), ME, None).await?;
    let struck = Struck::now(vec![id]);
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 2).await?;
    until_taken(arena, hand).await?;
    Ok(struck)
}

async fn cancel_first(arena: &mut Arena, hand: &BrokerClient) -> Result<Struck> {
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    take(arena, &arena.queue(jobs::UNSERVED_POOL)?, id).await?;
    operator::cancel(arena.platform.store(), ExecutionId::new(id), ME, None).await?;
    let struck = Struck::now(vec![id]);
    hand.ticket(&arena.queue(jobs::VICTIM_POOL)?, id, 1).await?;
    until_taken(arena, hand).await?;
    Ok(struck)
}

/// By the command itself, twice at once, as after an answer that was lost.
async fn trigger_twice(arena: &mut Arena) -> Result<Struck> {
    let key = format!("twice-{}", Uuid::new_v4());
    let command = ["jobs", "trigger", jobs::TRIGGERED, "--key", &key];
    let struck = Instant::now();
    let both =
        tokio::try_join!(arena.platform.try_sexton(&command), arena.platform.try_sexton(&command))?;
    for output in [&both.0, &both.1] {
        require(output.status.success(), &format!("sexton jobs trigger failed: {output}"))?;
    }
    let executions = rows::ids(arena.pool(), &format!("e.execution_key = '{key}'")).await?;
    Ok(Struck::at(struck, executions))
}

/// Its worker lives and renews, and by the database's clock the lease is over all the same, again and again.
async fn set_ahead(arena: &mut Arena) -> Result<Struck> {
    arena.behavior(jobs::TRIGGERED, TaskBehavior::Takes(6))?;
    let id = arena.trigger(jobs::TRIGGERED, None).await?;
    until_state(arena, id, "running", 1).await?;
    let struck = Struck::now(vec![id]);
    for _ in 0..20 {
        let ahead = sqlx::query(
            "UPDATE sexton.executions SET lease_until = lease_until - interval '1 hour'
             WHERE id = $1 AND state = 'running' AND attempt = 1",
        );
        let done = timeout(rows::QUERY_TIMEOUT, ahead.bind(id).execute(arena.pool())).await??;
        if done.rows_affected() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(struck)
}

/// The planner passes once more over firings that it has claimed.
async fn set_back(arena: &mut Arena) -> Result<Struck> {
    rows::change(
        arena.pool(),
        "UPDATE sexton.jobs SET next_fire_at = next_fire_at - interval '5 seconds'
         WHERE name = 'torture.load'",
    )
    .await?;
    let again = "e.scheduled_for > now() - interval '6 seconds' AND e.job_id =
                 (SELECT id FROM sexton.jobs WHERE name = 'torture.load')";
    let struck = Struck::now(rows::ids(arena.pool(), again).await?);
    let passed = "SELECT 1 FROM sexton.jobs WHERE name = 'torture.load' AND next_fire_at > now()";
    let passed = arena
        .until(arena.timeouts.recovery, async || {
            let row: Option<i32> = sqlx::query_scalar(passed).fetch_optional(arena.pool()).await?;
            Ok(row)
        })
        .await;
    follows(passed.is_some(), "the planner did not catch up")?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(struck)
}
