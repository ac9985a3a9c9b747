//! A process is killed or frozen from outside.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Outcome, Struck};
use crate::torture::arena::{Arena, POLL_INTERVAL, Role};
use crate::torture::fault::{Fault, ProcessFault, Program, Server};
use crate::torture::ledger::TaskBehavior;
use crate::torture::{jobs, rows};

/// Tasks that outlast a lease, the rescuer's next look and the fault: only their worker's clock, or
/// nothing, ends them before another attempt begins.
pub(in crate::torture::strike) const LONG_TASK: TaskBehavior = TaskBehavior::TakesVictim(12);

pub(super) async fn strike(
    arena: &mut Arena,
    program: Program,
    blow: ProcessFault,
) -> Result<Outcome> {
    let executions = at_work(arena, program, LONG_TASK).await?;
    let mut struck = Struck::now(executions);
    match blow {
        ProcessFault::Killed => {
            arena.kill(program, Role::Victim);
            struck.still_inside(arena, program).await?;
            if arena.random.below(2) == 0 {
                arena.start(program, Role::Victim, &[])?;
            }
        }
        ProcessFault::Frozen => {
            let time = arena.timeouts.lease * 2;
            arena.process(program, Role::Victim)?.pause();
            let inside = struck.still_inside(arena, program).await;
            sleep(time).await;
            arena.process(program, Role::Victim)?.resume();
            inside?;
        }
    }
    arena.proxy(Program::Scheduler, Server::RabbitMq).pass();
    arena.calm()?;
    Ok(struck.recovery(arena, &Fault::Process(program, blow).to_string()).await)
}

/// Brings the victim to work; the executions that it is at work on.
///
/// A worker runs a task. A scheduler has claimed firings whose tickets are on their way to a broker
/// that is slow to confirm.
pub(in crate::torture::strike) async fn at_work(
    arena: &mut Arena,
    program: Program,
    behavior: TaskBehavior,
) -> Result<Vec<Uuid>> {
    match program {
        Program::Worker => {
            let worker = victim_worker_id(arena).await?;
            arena.behavior(jobs::TRIGGERED, behavior)?;
            // Not whatever it runs at the moment: only these tasks last.
            let lasting = format!(
                "e.state = 'running' AND e.worker_id = '{worker}' AND e.attempt = 1
                 AND e.job_id = (SELECT id FROM sexton.jobs WHERE name = '{}')",
                jobs::TRIGGERED
            );
            let end = Instant::now() + arena.timeouts.strike;
            while Instant::now() < end {
                // The peer takes its share of them, and is done with them at once.
                arena.trigger(jobs::TRIGGERED, None).await?;
                if let Some(open) = until_some(arena, &lasting, Duration::from_secs(1)).await {
                    return Ok(open);
                }
            }
            bail!("the worker opened nothing")
        }
        Program::Scheduler => {
            let delay = Duration::from_millis(400);
            arena.proxy(Program::Scheduler, Server::RabbitMq).delay(delay);
            let process = arena.process(program, Role::Victim)?;
            let by = format!("{}:{}", process.name(), process.pid());
            let on_their_way = format!(
                "e.claimed_by = '{by}' AND e.state = 'pending' AND e.ticket_published_at IS NULL"
            );
            let found = until_some(arena, &on_their_way, arena.timeouts.strike).await;
            found.context("the scheduler claimed nothing")
        }
    }
}

/// The victim's worker id, once it takes tickets.
pub(in crate::torture::strike) async fn victim_worker_id(arena: &mut Arena) -> Result<Uuid> {
    let end = Instant::now() + arena.timeouts.strike;
    while Instant::now() < end {
        if let Ok(Some(id)) = arena.worker_id(Role::Victim).await {
            return Ok(id);
        }
        sleep(POLL_INTERVAL).await;
    }
    bail!("the worker did not introduce itself")
}

async fn until_some(arena: &Arena, condition: &str, within: Duration) -> Option<Vec<Uuid>> {
    arena
        .until(within, async || {
            let ids = rows::ids(arena.pool(), condition).await?;
            Ok((!ids.is_empty()).then_some(ids))
        })
        .await
}
