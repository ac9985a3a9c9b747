//! A process dies at a fault point.
//!
//! Each point has a recipe that leads load through it. A point without its own recipe is fed by the
//! schedules and by triggers, so that a new point is struck as soon as it is listed, if load of
//! that kind passes it.

mod alerts;
mod bulk;
mod console;
mod failure_index;
mod load;
mod lost;
mod sql;
mod sweep;
mod tickets;

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::failure::crashed;
use super::{Outcome, Struck};
use crate::torture::arena::{Arena, Role, require};
use crate::torture::fault::{Program, ServerFault};
use crate::torture::rows;

/// How often a doomed process is fed.
const FEED_EVERY: Duration = Duration::from_millis(700);

pub(super) async fn strike(arena: &mut Arena, name: &str) -> Result<Outcome> {
    match name {
        "scheduler.sweep_failed" => sweep::failed(arena, name).await,
        "scheduler.sweep_marked_unpublished" => sweep::unpublished(arena, name).await,
        "scheduler.sweep_declared" => sweep::declared(arena, name).await,
        _ if name.starts_with("scheduler.sweep_") => sweep::copies(arena, name).await,
        "scheduler.rescued" => lost::rescued(arena, name).await,
        "scheduler.relay_marked" => tickets::refused(arena, name).await,
        "scheduler.declared" => tickets::missed(arena, name, true).await,
        "scheduler.marked_unpublished" => tickets::missed(arena, name, false).await,
        "scheduler.claiming" => load::claiming(arena, name).await,
        "scheduler.applied" => load::applied(arena, name).await,
        "scheduler.pruned" | "scheduler.pruned_gaps" => load::pruned(arena, name).await,
        "scheduler.failures_aggregated" => failure_index::strike(arena, name).await,
        "worker.instance_locked" | "worker.inherited" => lost::inherited(arena, name).await,
        "worker.late" => lost::late(arena, name).await,
        "worker.stopping" => lost::stopping(arena, name).await,
        "worker.renewed_first" => tickets::locked(arena, name).await,
        "worker.gave_up" => tickets::unheard(arena, name).await,
        "worker.skipped" => tickets::stale(arena, name).await,
        "worker.moved" => tickets::early(arena, name).await,
        "worker.handed_back" => tickets::handed_back(arena, name).await,
        "worker.adopted" => tickets::foreign(arena, name, true).await,
        "worker.adopted_published" => tickets::foreign(arena, name, false).await,
        "console.alerts_applied" | "console.notifications_requeued" | "console.channel_tested" => {
            alerts::commanded(arena, name).await
        }
        _ if name.starts_with("scheduler.notification_") => alerts::sending(arena, name).await,
        _ if name.starts_with("scheduler.heartbeat_") => alerts::beating(arena, name).await,
        "console.bulk_created" | "console.bulk_stopped" | "console.bulk_resumed" => {
            bulk::commanded(arena, name).await
        }
        _ if name.starts_with("console.bulk_") => bulk::judged(arena, name).await,
        _ if name.starts_with("scheduler.bulk_") => bulk::carried(arena, name).await,
        _ if name.starts_with("worker.sql_") => sql::strike(arena, name).await,
        _ if name.starts_with("console.") => console::strike(arena, name).await,
        _ => load::strike(arena, name).await,
    }
}

/// A process that will die at a point.
#[derive(Clone, Copy, Debug)]
struct CrashTarget<'a> {
    program: Program,
    name: &'a str,
}

impl<'a> CrashTarget<'a> {
    /// The victim of the program that the point is in.
    fn at(name: &'a str) -> Self {
        let of_scheduler = name.starts_with("scheduler.");
        let program = if of_scheduler { Program::Scheduler } else { Program::Worker };
        Self { program, name }
    }

    /// Stops the peer, so that the victim does all the work.
    fn alone(self, arena: &mut Arena) -> Self {
        arena.kill(self.program, Role::Peer);
        self
    }

    /// Starts the process.
    fn start(self, arena: &mut Arena) -> Result<()> {
        self.start_with(arena, &[])
    }

    /// Starts it with more environment variables.
    fn start_with(self, arena: &mut Arena, env: &[(&str, &str)]) -> Result<()> {
        let mut env = [&[("FAULT_POINT", self.name)], env].concat();
        if arena.storm.is_some() {
            env.push(("FAULT_ACTION", "stop"));
        }
        arena.start(self.program, Role::Victim, &env)
    }

    /// Waits until it is dead, or has stopped at the point if it shall, and feeds it all the while;
    /// `None`: it did not pass the point in time.
    ///
    /// # Errors
    ///
    /// It ended otherwise.
    async fn dies(
        self,
        arena: &mut Arena,
        mut feed: impl AsyncFnMut(&mut Arena) -> Result<()>,
    ) -> Result<Option<Instant>> {
        let end = Instant::now() + arena.timeouts.strike;
        while Instant::now() < end {
            feed(arena).await?;
            let next = Instant::now() + FEED_EVERY;
            while Instant::now() < next {
                let process = arena.process(self.program, Role::Victim)?;
                if process.ended().is_some() {
                    self.check(arena)?;
                    return Ok(Some(Instant::now()));
                }
                let line = format!("fault point {}: stopping this process", self.name);
                if process.log().contains(&line) {
                    return Ok(Some(Instant::now()));
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(None)
    }

    /// Checks that the process died at the point and nowhere else.
    fn check(self, arena: &mut Arena) -> Result<()> {
        let process = arena.process(self.program, Role::Victim)?;
        let log = process.log();
        if died_at(&log, self.name) {
            return Ok(());
        }
        let status = process.ended().map_or_else(String::new, |status| status.to_string());
        let last_line = log.lines().last().unwrap_or_default();
        Err(crashed(format!(
            "{} on the way to {}: {status}: {last_line}",
            process.name(),
            self.name
        )))
    }

    /// If it has stopped at the point: kills the server, and brings it back; the process stays
    /// stopped until [`Self::recovery`]. Call it as soon as the executions inside are known, before
    /// anything else. Returns the instant of the strike, or of the process's death.
    async fn blow(self, arena: &mut Arena, died: Instant) -> Result<Instant> {
        let Some(server) = arena.storm.take() else { return Ok(died) };
        let at = Instant::now();
        arena.site.blow(server, ServerFault::Killed, Duration::ZERO).await?;
        Ok(at)
    }

    /// Resumes a process that has stopped at the point.
    fn go_on(self, arena: &mut Arena) -> Result<()> {
        arena.process(self.program, Role::Victim)?.resume();
        Ok(())
    }

    /// Its name in the rows that it claims.
    fn by(self, arena: &mut Arena) -> Result<String> {
        let process = arena.process(self.program, Role::Victim)?;
        Ok(format!("{}:{}", process.name(), process.pid()))
    }

    /// The last attempt that this worker process opened.
    async fn last_opened(arena: &mut Arena) -> Result<Vec<Uuid>> {
        let me = arena.worker_id(Role::Victim).await?.context("the worker was not known")?;
        let last = format!(
            "e.id = (SELECT execution_id FROM sexton.all_attempts WHERE worker_id = '{me}'
                     ORDER BY opened_at DESC LIMIT 1)"
        );
        rows::ids(arena.pool(), &last).await
    }

    /// Watches the recovery. Every other time the dead process's successor under its name
    /// continues, or the peer alone.
    async fn recovery(
        self,
        arena: &mut Arena,
        at: Instant,
        executions: Vec<Uuid>,
    ) -> Result<Outcome> {
        let at = self.blow(arena, at).await?;
        arena.calm()?;
        self.go_on(arena)?;
        let left_dead = arena.random.below(2) == 0;
        if left_dead {
            arena.complete_but((self.program, Role::Victim))?;
        } else {
            arena.complete()?;
        }
        Ok(Struck::at(at, executions).recovery(arena, self.name).await)
    }
}

/// Whether a process's last log line says that it dies at a point.
fn died_at(log: &str, name: &str) -> bool {
    log.lines()
        .last()
        .is_some_and(|line| line == format!("fault point {name}: killing this process"))
}

/// A queue that was declared right before the broker died may come back without a leader, so that
/// it confirms nothing; a person deletes it then, as docs/operations/servers.md says.
pub(super) async fn mend(arena: &Arena, queue: &str) -> Result<()> {
    let mended = arena
        .until(arena.timeouts.recovery, async || {
            let hand = arena.hand().await?;
            let dead = hand.is_dead(queue).await;
            hand.let_go().await;
            if dead {
                let hand = arena.hand().await?;
                hand.delete(queue).await?;
                hand.let_go().await;
            }
            Ok((!dead).then_some(()))
        })
        .await;
    require(mended.is_some(), "a queue that came back dead could not be deleted")
}

/// The result for a point that was not passed.
fn not_passed(name: &str) -> Outcome {
    Outcome::Missed(format!("the process did not pass {name}"))
}

/// Feeds nothing: the schedules, or the preparation, are enough.
async fn nothing(_: &mut Arena) -> Result<()> {
    Ok(())
}
