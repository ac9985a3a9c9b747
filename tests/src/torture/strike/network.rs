//! Loses the traffic between a program and a server.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::process::{LONG_TASK, at_work};
use super::{Outcome, Struck};
use crate::torture::arena::{Arena, Role, name, require};
use crate::torture::fault::{Fault, NetworkFault, Program, Server};
use crate::torture::ledger::TaskBehavior;
use crate::torture::oracle::Violation;
use crate::torture::{jobs, rows};

/// The limit for the return of a program that was cut off.
const RECONNECT_TIME: Duration = Duration::from_secs(100);

/// `LEASE_MS` of a worker that waits for an answer longer than any statement's limit.
const LONG_LEASE_MS: &str = "20000";

pub(super) async fn strike(
    arena: &mut Arena,
    program: Program,
    server: Server,
    loss: NetworkFault,
) -> Result<Outcome> {
    let fault = Fault::Network(program, server, loss).to_string();
    // A new process has no silent connections from the fault before.
    arena.start(program, Role::Victim, &[])?;
    match loss {
        NetworkFault::Answer => answer(arena, program, server, &fault).await,
        NetworkFault::AnswerToOpen => answer_to_open(arena, &fault).await,
        NetworkFault::Cut | NetworkFault::Late | NetworkFault::BlackHole => {
            let struck = disturb(arena, program, server, loss).await?;
            finish(arena, struck, program, &fault).await
        }
    }
}

/// Disturbs the network for a while in which the victim works.
async fn disturb(
    arena: &mut Arena,
    program: Program,
    server: Server,
    loss: NetworkFault,
) -> Result<Struck> {
    let behavior =
        if loss == NetworkFault::BlackHole { LONG_TASK } else { TaskBehavior::TakesVictim(2) };
    let executions = at_work(arena, program, behavior).await?;
    let proxy = arena.proxy(program, server);
    let mut struck = Struck::now(executions);
    let time = match loss {
        NetworkFault::Late => {
            proxy.delay(Duration::from_millis(300));
            Duration::from_secs(3)
        }
        NetworkFault::BlackHole => {
            proxy.black_hole();
            arena.timeouts.lease * 2
        }
        NetworkFault::Cut | NetworkFault::Answer | NetworkFault::AnswerToOpen => {
            proxy.cut();
            Duration::from_secs(1)
        }
    };
    if loss == NetworkFault::Cut {
        struck.still_inside(arena, program).await?;
    }
    let proxy = arena.proxy(program, server);
    sleep(time).await;
    proxy.pass();
    arena.proxy(Program::Scheduler, Server::RabbitMq).pass();
    arena.calm()?;
    Ok(struck)
}

/// Waits until the struck executions have ended and the program works again.
async fn finish(
    arena: &mut Arena,
    struck: Struck,
    program: Program,
    fault: &str,
) -> Result<Outcome> {
    let outcome = struck.recovery(arena, fault).await;
    let process = arena.process(program, Role::Victim)?;
    let until = Instant::now() + RECONNECT_TIME;
    loop {
        match process.try_ready().await {
            Ok(()) => return Ok(outcome),
            Err(_) if Instant::now() < until && process.ended().is_none() => {}
            Err(error) => {
                let what = format!("{} after {fault}: {error:#}", process.name());
                return Ok(Outcome::Broken(Violation::NotReady { what }));
            }
        }
    }
}

/// The next request of a kind arrives, and its answer does not.
async fn answer(
    arena: &mut Arena,
    program: Program,
    server: Server,
    fault: &str,
) -> Result<Outcome> {
    let process = arena.process(program, Role::Victim)?;
    let by = format!("{}:{}", process.name(), process.pid());
    let pattern: &[u8] = match (program, server) {
        // The claim's commit.
        (Program::Scheduler, Server::PostgreSql) => b"COMMIT",
        // Only a settlement's parameters contain this: the task's own output.
        (Program::Worker, Server::PostgreSql) => b"said by torture.alone",
        // A ticket's body.
        (_, Server::RabbitMq) => b"torture.",
    };
    arena.behavior(jobs::NON_OVERLAPPING, TaskBehavior::FailsFirst)?;
    let begun = rows::clock(arena.pool()).await?;
    let swallowed = arena.proxy(program, server).swallow_answers_matching(pattern, 1);
    let lost =
        arena.until(arena.timeouts.strike, async || Ok(swallowed.is_over().then_some(()))).await;
    let at = Instant::now();
    arena.proxy(program, server).pass();
    arena.calm()?;
    if lost.is_none() {
        return Ok(Outcome::Missed("no answer was lost".to_owned()));
    }
    // The statement is executed at this moment; its rows are there a moment later.
    let condition = match program {
        Program::Scheduler => {
            format!("e.claimed_by = '{by}' AND e.state <> 'skipped' AND e.claimed_at >= '{begun}'")
        }
        Program::Worker => {
            let worker = arena.worker_id(Role::Victim).await?.context("a worker without an id")?;
            format!(
                "e.id = (SELECT execution_id FROM sexton.all_attempts WHERE worker_id = '{worker}'
                         ORDER BY opened_at DESC LIMIT 1)"
            )
        }
    };
    let executions = arena
        .until(Duration::from_secs(2), async || some(arena, &condition).await)
        .await
        .unwrap_or_default();
    Ok(Struck::at(at, executions).recovery(arena, fault).await)
}

/// An attempt is open, its worker does not know, and repeats the open when most of the lease is over.
async fn answer_to_open(arena: &mut Arena, fault: &str) -> Result<Outcome> {
    arena.start(Program::Worker, Role::Victim, &[("LEASE_MS", LONG_LEASE_MS)])?;
    arena.process(Program::Worker, Role::Victim)?.try_ready().await?;
    arena.behavior(jobs::LONG_LEASE, TaskBehavior::TakesVictim(6))?;
    // Another execution would lose the answer instead, and hold the only slot.
    rows::change(
        arena.pool(),
        "UPDATE sexton.jobs SET next_fire_at = next_fire_at + interval '40 seconds'
         WHERE name = 'torture.alone'",
    )
    .await?;
    let quiet = format!("e.pool = 'victims' AND {}", rows::under_way());
    let quiet = arena.until(arena.timeouts.strike, async || {
        Ok(rows::ids(arena.pool(), &quiet).await?.is_empty().then_some(()))
    });
    require(quiet.await.is_some(), "the victims' pool did not come to rest")?;
    let pid = arena.process(Program::Worker, Role::Victim)?.pid();
    let worker = arena.worker_id(Role::Victim).await?.context("a worker without an id")?;
    // The bytes of the statement's execution: its parameter that names the opener.
    let pattern = format!("{}:{pid}", name(Program::Worker, Role::Victim));
    let mine = format!(
        "e.worker_id = '{worker}' AND e.job_id = (SELECT id FROM sexton.jobs WHERE name = 'torture.leased')"
    );
    let proxy = arena.proxy(Program::Worker, Server::PostgreSql);
    let mut open = None;
    // Of three tickets at once the victim opens one; others of its pool come in between.
    for _ in 0..4 {
        let swallowed = proxy.swallow_answers_matching(pattern.as_bytes(), 1);
        for _ in 0..3 {
            arena.trigger(jobs::LONG_LEASE, None).await?;
        }
        let lost =
            arena.until(Duration::from_secs(8), async || Ok(swallowed.is_over().then_some(())));
        if lost.await.is_some() {
            open = arena.until(Duration::from_secs(2), async || some(arena, &mine).await).await;
        }
        if open.is_some() {
            break;
        }
    }
    proxy.pass();
    let Some(executions) = open else {
        return Ok(Outcome::Missed("no answer to an open of a long lease was lost".to_owned()));
    };
    let outcome = Struck::now(executions).recovery(arena, fault).await;
    arena.start(Program::Worker, Role::Victim, &[])?;
    Ok(outcome)
}

async fn some(arena: &Arena, condition: &str) -> Result<Option<Vec<Uuid>>> {
    let ids = rows::ids(arena.pool(), condition).await?;
    Ok((!ids.is_empty()).then_some(ids))
}
