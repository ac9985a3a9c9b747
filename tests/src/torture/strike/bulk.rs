//! Bulks, created by the real command, while faults strike the processes and servers that carry them out.
//!
//! Of the executions that fail, one half has had its effect before, as the ledger says, and the verify task of
//! their job looks there. So each of a bulk is either resolved and never run again, or is run once more.

use anyhow::{Context as _, Result};
use serde_json::Value;
use sexton_model::id::ExecutionId;
use sexton_store::operator;
use tokio::time::Instant;
use uuid::Uuid;

use super::failure::{follows, undone};
use super::manual::until_state;
use super::process::victim_worker_id;
use super::{Outcome, Struck};
use crate::torture::arena::{Arena, ME, Role, require};
use crate::torture::fault::{Fault, ManualAction, Program};
use crate::torture::ledger::TaskBehavior;
use crate::torture::{jobs, rows};

/// Executions of each half.
const EXECUTIONS_PER_HALF: usize = 3;

/// Strikes while a bulk is carried out.
pub(super) async fn strike(arena: &mut Arena, action: ManualAction) -> Result<Outcome> {
    let ids = fail(arena).await?;
    let (bulk, at) = match action {
        ManualAction::BulkQuestioned => in_a_question(arena).await?,
        ManualAction::BulkPaced => between_batches(arena).await?,
        ManualAction::BulkRaced => beside_an_operator(arena, &ids).await?,
        _ => after_its_canary(arena, &ids).await?,
    };
    arena.calm()?;
    arena.ledger.question_takes(0)?;
    arena.complete()?;
    done(arena, bulk, &ids).await?;
    Ok(Struck::at(at, ids).recovery(arena, &Fault::Manual(action).to_string()).await)
}

/// Executions that failed for good and are parked: the first half had their effect before. No other execution of
/// their job has failed, so a bulk of the job selects exactly these, and its canary is one of them.
pub(super) async fn fail(arena: &Arena) -> Result<Vec<Uuid>> {
    discard_failed(arena).await?;
    arena.behavior(jobs::CHARGED, TaskBehavior::Fails)?;
    let mut ids = Vec::with_capacity(2 * EXECUTIONS_PER_HALF);
    for half in ["yes", "no"] {
        for _ in 0..EXECUTIONS_PER_HALF {
            let key = format!("{half}-{}", Uuid::new_v4());
            ids.push(arena.trigger(jobs::CHARGED, Some(&key)).await?);
        }
    }
    for id in &ids {
        until_state(arena, *id, "failed", 2).await?;
    }
    let parked = arena.ended(&ids, arena.timeouts.recovery).await;
    parked.map_err(|_| undone("failed executions were not parked".to_owned()))?;
    arena.calm()?;
    Ok(ids)
}

/// Discards what an earlier strike has left failed, such as the canary of its bulk.
async fn discard_failed(arena: &Arena) -> Result<()> {
    let failed = format!(
        "e.state = 'failed' AND e.job_id = (SELECT id FROM sexton.jobs WHERE name = '{}')",
        jobs::CHARGED
    );
    for id in rows::ids(arena.pool(), &failed).await? {
        operator::discard(arena.platform.store(), ExecutionId::new(id), ME, None).await?;
    }
    Ok(())
}

/// The command that asks for a requeue of all of them, with more options.
pub(super) fn requeue<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let all = ["failed", "requeue", "--job", jobs::CHARGED, "--yes", "--detach"];
    [&all[..], &["--reason", "torture"], more].concat()
}

/// Asks for it; the number of the bulk.
pub(super) async fn ask(arena: &Arena, more: &[&str]) -> Result<i64> {
    let command = [&["--json"][..], &requeue(more)].concat();
    let output = arena.platform.try_sexton(&command).await?;
    let answer: Option<Value> = serde_json::from_str(&output.stdout).ok();
    let id = answer.and_then(|answer| answer["bulk"]["id"].as_i64());
    id.with_context(|| format!("sexton {command:?} does not say which bulk: {output}"))
}

/// The latest bulk.
pub(super) async fn newest(arena: &Arena) -> Result<i64> {
    let newest = sqlx::query_scalar("SELECT max(id) FROM sexton.bulks").fetch_one(arena.pool());
    let id: Option<i64> = newest.await?;
    id.context("no bulk was written down")
}

/// A worker is killed while it runs a question.
async fn in_a_question(arena: &mut Arena) -> Result<(i64, Instant)> {
    arena.ledger.question_takes(3)?;
    let worker = victim_worker_id(arena).await?;
    let bulk = ask(arena, &[]).await?;
    let runs =
        format!("e.state = 'running' AND e.asks_about IS NOT NULL AND e.worker_id = '{worker}'");
    let running = arena
        .until(arena.timeouts.strike, async || {
            let ids = rows::ids(arena.pool(), &runs).await?;
            Ok((!ids.is_empty()).then_some(()))
        })
        .await;
    let at = Instant::now();
    arena.kill(Program::Worker, Role::Victim);
    // Otherwise the bulk would stay, and a later one would be beside it.
    if running.is_none() {
        arena.ledger.question_takes(0)?;
        arena.complete()?;
        over(arena, bulk).await?;
    }
    require(running.is_some(), "the worker was handed no question")?;
    Ok((bulk, at))
}

/// A scheduler is killed while the pace holds a part of the bulk back.
async fn between_batches(arena: &mut Arena) -> Result<(i64, Instant)> {
    let bulk = ask(arena, &["--rate", "1/s"]).await?;
    let begun = format!("id = {bulk} AND done > 0 AND state = 'running'");
    let begun = until_bulk(arena, &begun).await;
    let at = Instant::now();
    arena.kill(Program::Scheduler, Role::Victim);
    if arena.random.below(2) == 0 {
        arena.kill(Program::Scheduler, Role::Peer);
    }
    if !begun {
        arena.complete()?;
        over(arena, bulk).await?;
    }
    require(begun, "the bulk was done at once")?;
    Ok((bulk, at))
}

/// An operator gives one up that the pace still holds back, and a scheduler is killed.
async fn beside_an_operator(arena: &mut Arena, ids: &[Uuid]) -> Result<(i64, Instant)> {
    let bulk = ask(arena, &["--rate", "12/m"]).await?;
    let begun = until_bulk(arena, &format!("id = {bulk} AND done > 0 AND state = 'running'")).await;
    let waits = match ids.last() {
        Some(last) if begun => rows::state(arena.pool(), *last).await?.0 == "failed",
        _ => false,
    };
    let at = Instant::now();
    if let Some(last) = ids.last().filter(|_| waits) {
        operator::discard(arena.platform.store(), ExecutionId::new(*last), ME, None).await?;
        arena.kill(Program::Scheduler, Role::Victim);
    } else {
        over(arena, bulk).await?;
    }
    require(waits, "nothing waited for the pace of the bulk")?;
    Ok((bulk, at))
}

/// The first fails again, and an operator lets the rest go on; a scheduler is killed on either side of it.
async fn after_its_canary(arena: &mut Arena, ids: &[Uuid]) -> Result<(i64, Instant)> {
    arena.behavior(jobs::CHARGED, TaskBehavior::Fails)?;
    let bulk = ask(arena, &["--canary", "1"]).await?;
    arena.kill(Program::Scheduler, Role::Victim);
    let at = Instant::now();
    let paused = until_bulk(arena, &format!("id = {bulk} AND state = 'paused'")).await;
    follows(paused, &format!("bulk {bulk} was not paused by its canary"))?;
    let begun: i64 = sqlx::query_scalar(
        "SELECT count(DISTINCT execution_id) FROM sexton.all_attempts
         WHERE execution_id = ANY ($1) AND number > 1",
    )
    .bind(ids)
    .fetch_one(arena.pool())
    .await?;
    follows(begun == 1, &format!("bulk {bulk} has a canary of 1, and {begun} were run"))?;
    arena.calm()?;
    arena.kill(Program::Scheduler, Role::Peer);
    arena.start(Program::Scheduler, Role::Victim, &[])?;
    let id = bulk.to_string();
    let output = arena.platform.try_sexton(&["bulks", "resume", &id]).await?;
    follows(output.status.success(), &format!("bulk {bulk} is not resumed: {output}"))?;
    Ok((bulk, at))
}

async fn until_bulk(arena: &Arena, condition: &str) -> bool {
    let statement = format!("SELECT 1 FROM sexton.bulks WHERE {condition}");
    let found = arena
        .until(arena.timeouts.recovery, async || {
            let statement = sqlx::AssertSqlSafe(statement.clone());
            let row: Option<i32> =
                sqlx::query_scalar(statement).fetch_optional(arena.pool()).await?;
            Ok(row)
        })
        .await;
    found.is_some()
}

/// Waits until nothing is left for the bulk to do.
pub(super) async fn over(arena: &Arena, bulk: i64) -> Result<()> {
    let over = until_bulk(arena, &format!("id = {bulk} AND state = 'done'")).await;
    if over {
        return Ok(());
    }
    let row: Option<String> = sqlx::query_scalar(
        "SELECT format('%s, %s selected, %s done, %s refused, %s resolved, %s left', state, selected,
                       done, refused, resolved, left_alone)
         FROM sexton.bulks WHERE id = $1",
    )
    .bind(bulk)
    .fetch_optional(arena.pool())
    .await?;
    Err(undone(format!("bulk {bulk} comes to no end: {}", row.unwrap_or_default())))
}

/// Waits until the bulk is done and what it has requeued has ended, and looks at what became of each: it was run
/// again, or resolved, or its item says why not. Whether that was right is judged by the ledger.
pub(super) async fn done(arena: &Arena, bulk: i64, ids: &[Uuid]) -> Result<()> {
    over(arena, bulk).await?;
    let ended = arena.ended(ids, arena.timeouts.recovery).await;
    ended.map_err(|left| {
        undone(format!("bulk {bulk} is done, and of its executions not {left:?}"))
    })?;
    for id in ids {
        let wrong: Option<String> = sqlx::query_scalar(
            "SELECT format('%s: %s at attempt %s with the outcome %s, and its item is %s (%s)',
                           e.execution_key, e.state, e.attempt, e.outcome, i.state, i.note)
             FROM sexton.executions e LEFT JOIN sexton.bulk_items i ON i.execution_id = e.id AND i.bulk_id = $2
             WHERE e.id = $1 AND NOT coalesce(CASE i.state
                 WHEN 'resolved' THEN e.outcome = 'verified'
                 WHEN 'done' THEN e.state <> 'discarded'
                 -- The question died too often, or another operator was faster.
                 WHEN 'left' THEN i.note <> ''
                 WHEN 'refused' THEN i.note <> ''
                 ELSE false END, false)",
        )
        .bind(id)
        .bind(bulk)
        .fetch_optional(arena.pool())
        .await?;
        if let Some(wrong) = wrong {
            return Err(undone(format!("bulk {bulk} has done wrong of {id}: {wrong}")));
        }
    }
    Ok(())
}
