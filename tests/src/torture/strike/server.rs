//! A server is killed, frozen or wiped.

use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::process::at_work;
use super::{Outcome, Struck};
use crate::torture::arena::Arena;
use crate::torture::fault::{Fault, Program, Server, ServerFault};
use crate::torture::ledger::TaskBehavior;
use crate::torture::rows;

pub(super) async fn strike(
    arena: &mut Arena,
    server: Server,
    ruin: ServerFault,
) -> Result<Outcome> {
    // Effects of the last fault must not count for this one.
    sleep(Duration::from_millis(500)).await;
    at_work(arena, Program::Worker, TaskBehavior::Takes(3)).await?;
    let executions = rows::ids(arena.pool(), &rows::under_way()).await?;
    let struck = Struck::now(executions);
    let away = match ruin {
        ServerFault::Frozen => arena.timeouts.lease.mul_f64(1.5),
        ServerFault::Killed | ServerFault::Wiped => Duration::ZERO,
    };
    arena.site.blow(server, ruin, away).await?;
    arena.calm()?;
    let name = Fault::Server(server, ruin).to_string();
    if ruin != ServerFault::Wiped {
        return Ok(struck.recovery(arena, &name).await);
    }
    tokio::select! {
        outcome = struck.recovery(arena, &name) => Ok(outcome),
        never = age(arena) => never,
    }
}

/// Ages tickets that are due until they are overdue: the schedulers wait for five minutes, twice as long after each reconciliation. One
/// that an earlier fault aged, and that was published again and lost again, is aged again. Nothing runs before its time.
async fn age(arena: &Arena) -> Result<Outcome> {
    loop {
        sleep(Duration::from_secs(3)).await;
        let _ = rows::change(
            arena.pool(),
            "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
                 ticket_published_at = ticket_published_at - interval '10 minutes' * (1 << least(reconcile_count, 10))
             WHERE state IN ('pending', 'retrying') AND ticket_published_at IS NOT NULL
               AND next_attempt_at < now() - interval '2 seconds'
               AND ticket_published_at < now() - interval '2 seconds'
               AND greatest(next_attempt_at, ticket_published_at)
                   > now() - least(interval '5 minutes' * (1 << least(reconcile_count, 10)), interval '1 hour')",
        )
        .await;
    }
}
