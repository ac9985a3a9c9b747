//! Points that the ordinary load passes, and those of a scheduler's start.

use anyhow::Result;
use tokio::time::Instant;
use uuid::Uuid;

use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::{Arena, Role};
use crate::torture::fault::Program;
use crate::torture::ledger::TaskBehavior;
use crate::torture::strike::Outcome;
use crate::torture::strike::failure::follows;
use crate::torture::{jobs, rows};

/// How the rows show, after the death, which executions were inside a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inside {
    /// Claimed by the process, and not published.
    ClaimedUnpublished,
    /// The first that the process claimed.
    ClaimedFirst,
    /// Held back until its job was free.
    Waiter,
    /// A member of a flow.
    Member,
    /// Taken by the relay, which hides them for half a minute.
    Taken,
    /// A ticket that was delivered and not opened.
    InHand,
    /// An attempt that was open.
    Open,
    /// The last attempt that the process opened.
    LastOpened,
}

pub(super) async fn strike(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name);
    let (inside, is_triggered) = match name {
        "scheduler.claimed" => (Inside::ClaimedUnpublished, false),
        "scheduler.published" => (Inside::ClaimedFirst, false),
        "scheduler.waiting" | "scheduler.admitting" | "scheduler.admitted" => {
            (Inside::Waiter, true)
        }
        "scheduler.flow_made" => (Inside::Member, true),
        "scheduler.relay_taken" | "scheduler.relayed" => (Inside::Taken, true),
        "worker.received" => (Inside::InHand, false),
        "worker.opened" | "worker.ran" | "worker.let_go" => (Inside::Open, false),
        _ if target.program == Program::Scheduler => (Inside::ClaimedFirst, true),
        _ => (Inside::LastOpened, false),
    };
    let behavior = match name {
        "worker.renewed" | "worker.let_go" => TaskBehavior::TakesVictim(7),
        // Over at once, with a retry to follow.
        _ => TaskBehavior::FailsFirst,
    };
    arena.behavior(jobs::NON_OVERLAPPING, behavior)?;
    if is_triggered {
        target.alone(arena);
    }
    // Otherwise tickets are held for twenty minutes.
    target.start_with(arena, &[("ACK_DEADLINE_MS", "500")])?;
    let feed = async |arena: &mut Arena| -> Result<()> {
        if is_triggered {
            let job = if inside == Inside::Member { jobs::FLOW } else { jobs::TRIGGERED };
            arena.trigger(job, None).await?;
        }
        Ok(())
    };
    let Some(at) = target.dies(arena, feed).await? else { return Ok(not_passed(name)) };
    let executions = in_rows(arena, target, inside).await?;
    target.recovery(arena, at, executions).await
}

async fn in_rows(arena: &mut Arena, target: CrashTarget<'_>, inside: Inside) -> Result<Vec<Uuid>> {
    let by = target.by(arena)?;
    let condition = match inside {
        Inside::LastOpened => return CrashTarget::last_opened(arena).await,
        Inside::ClaimedUnpublished => format!(
            "e.claimed_by = '{by}' AND e.state = 'pending' AND e.ticket_published_at IS NULL"
        ),
        Inside::ClaimedFirst => format!(
            "e.claimed_by = '{by}' AND e.state <> 'skipped' AND e.claimed_at =
             (SELECT min(claimed_at) FROM sexton.executions
              WHERE claimed_by = '{by}' AND state <> 'skipped')"
        ),
        Inside::Waiter => "e.state = 'pending' AND e.waits IS NOT NULL".to_owned(),
        Inside::Member => format!("e.flow_id IS NOT NULL AND {}", rows::under_way()),
        Inside::Taken => "e.relay_after > now() + interval '20 seconds'".to_owned(),
        Inside::Open => {
            let me = arena.worker_id(Role::Victim).await?.unwrap_or_default();
            format!("e.state = 'running' AND e.worker_id = '{me}'")
        }
        // The peer may have opened it in the meantime, and even have come to its end.
        Inside::InHand => format!(
            "e.pool = '{}' AND ({} OR e.finished_at > now() - interval '1 second')
             AND (e.state <> 'running' OR e.started_at > now() - interval '1 second')
             AND (e.next_attempt_at IS NULL OR e.next_attempt_at <= now())",
            jobs::VICTIM_POOL,
            rows::under_way()
        ),
    };
    rows::ids(arena.pool(), &condition).await
}

/// The claim was not committed: the next planner claims the firing.
pub(super) async fn claiming(arena: &mut Arena, name: &str) -> Result<Outcome> {
    // By itself, so that the cursor stays where this one found it.
    let target = CrashTarget::at(name).alone(arena);
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let due = sqlx::query_scalar::<_, String>(
        "SELECT next_fire_at::text FROM sexton.jobs WHERE name = $1 AND next_fire_at <= now()",
    );
    let due = due.bind(jobs::LOAD).fetch_optional(arena.pool()).await?;
    let Some(due) = due else { return Ok(not_passed(name)) };
    let firing = format!("e.scheduled_for = '{due}'");
    claimed_next(arena, target, at, (jobs::LOAD, &firing)).await
}

/// Watches the execution of a job for which a condition comes to hold.
async fn claimed_next(
    arena: &mut Arena,
    target: CrashTarget<'_>,
    at: Instant,
    (job, condition): (&str, &str),
) -> Result<Outcome> {
    let at = target.blow(arena, at).await?;
    target.go_on(arena)?;
    arena.complete()?;
    let next = format!(
        "e.state <> 'skipped' AND {condition}
         AND e.job_id = (SELECT id FROM sexton.jobs WHERE name = '{job}')"
    );
    let claimed = arena
        .until(arena.timeouts.recovery, async || {
            let mut ids = rows::ids(arena.pool(), &next).await?;
            ids.truncate(1);
            Ok((!ids.is_empty()).then_some(ids))
        })
        .await;
    let otherwise =
        format!("the firing of {job} that {} was about to claim is in no row", target.name);
    follows(claimed.is_some(), &otherwise)?;
    target.recovery(arena, at, claimed.unwrap_or_default()).await
}

/// The jobs of the environment are applied, and nothing is at work yet.
pub(super) async fn applied(arena: &mut Arena, name: &str) -> Result<Outcome> {
    // Once in four years by itself.
    let variable = ("CRON_JOBS", "{\"work\": {\"schedule\": \"0 0 29 2 *\"}}");
    let target = CrashTarget::at(name);
    target.start_with(arena, &[variable])?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let since = rows::clock(arena.pool()).await?;
    let due =
        "UPDATE sexton.jobs SET next_fire_at = date_trunc('second', now()) WHERE name = 'work'";
    follows(rows::change(arena.pool(), due).await? == 1, "the job was not applied")?;
    let claimed = format!("e.claimed_at >= '{since}'");
    claimed_next(arena, target, at, ("work", &claimed)).await
}

/// Rows past retention, which a scheduler deletes when it starts.
pub(super) async fn pruned(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let target = CrashTarget::at(name).alone(arena);
    arena.kill(Program::Scheduler, Role::Victim);
    let id = old_rows(arena).await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let at = target.blow(arena, at).await?;
    target.go_on(arena)?;
    arena.complete()?;
    // The process that starts next finishes it.
    let rest = "SELECT (SELECT count(*) FROM sexton.gaps WHERE recorded_at < now() - interval '35 days')
                + (SELECT count(*) FROM sexton.instances WHERE heartbeat_at < now() - interval '35 days')";
    let gone = arena
        .until(arena.timeouts.recovery, async || {
            let count: i64 = sqlx::query_scalar(rest).fetch_one(arena.pool()).await?;
            Ok((count == 0).then_some(()))
        })
        .await;
    follows(gone.is_some(), "what is past retention was not deleted")?;
    Ok(target.recovery(arena, at, vec![id]).await?.of_the_past())
}

/// An execution, a gap and an instance that are past retention.
async fn old_rows(arena: &Arena) -> Result<Uuid> {
    use crate::factory::NewExecution;
    use sexton_model::{id::JobId, state::State};
    let pool = arena.pool();
    let job: Uuid = sqlx::query_scalar("SELECT id FROM sexton.jobs WHERE name = 'torture.hand'")
        .fetch_one(pool)
        .await?;
    let at = crate::torture::arena::now() - chrono::TimeDelta::days(40);
    let id = NewExecution::new(JobId::new(job), State::Succeeded, at).insert(pool).await?;
    rows::change(
        pool,
        "INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
         SELECT id, now() - interval '40 days', now() - interval '40 days', 1, 'paused',
                now() - interval '40 days' FROM sexton.jobs WHERE name = 'torture.hand'",
    )
    .await?;
    // As if the last pass had been yesterday's.
    rows::change(pool, "UPDATE sexton.retention SET passed_at = NULL").await?;
    rows::change(
        pool,
        "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
         VALUES (gen_random_uuid(), 'scheduler', 'old', 1, '0', now() - interval '40 days',
                 now() - interval '40 days')",
    )
    .await?;
    Ok(id.get())
}
