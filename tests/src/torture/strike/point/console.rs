//! Points of the operators' console: a command dies between what it did and its answer.

use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Result, bail, ensure};
use tokio::time::Instant;
use uuid::Uuid;

use crate::torture::arena::Arena;
use crate::torture::strike::failure::{crashed, follows, undone};
use crate::torture::strike::manual::{carry, park, present, until_state};
use crate::torture::strike::{Outcome, Struck};
use crate::torture::{jobs, rows};

pub(super) async fn strike(arena: &mut Arena, name: &str) -> Result<Outcome> {
    match name {
        "console.triggered" => triggered(arena, name).await,
        "console.requeued" | "console.discarded" | "console.restored" => {
            of_failed(arena, name).await
        }
        "console.edited" => edited(arena, name).await,
        "console.approved" | "console.claimed" => approved(arena, name).await,
        "console.cancelled" => cancelled(arena, name).await,
        "console.applied" => applied(arena, name).await,
        "console.caught_up" => caught_up(arena, name).await,
        "console.paused" | "console.resumed" => paused(arena, name).await,
        "console.backfilled" => backfilled(arena, name).await,
        "console.backfill_done" => approved_backfill(arena, name).await,
        "console.deleted" => deleted(arena, name).await,
        "console.grouped" => grouped(arena, name).await,
        "console.keys_assigned" => keys_assigned(arena, name).await,
        _ => bail!("there is no recipe for {name}: write one beside this"),
    }
}

/// Runs a command that dies at the point, before it has answered anything.
pub(super) async fn dies(arena: &Arena, name: &str, args: &[&str]) -> Result<Instant> {
    let output = arena.platform.try_sexton_with(&[("FAULT_POINT", name)], args).await?;
    let line = format!("fault point {name}: killing this process");
    if output.stderr.contains("panicked at") {
        return Err(crashed(format!("sexton {args:?}: {output}")));
    }
    ensure!(
        output.status.signal() == Some(9) && output.stderr.contains(&line),
        "sexton {args:?} ended otherwise: {output}"
    );
    Ok(Instant::now())
}

/// An operator without an answer repeats the command; the refusal "done already" is an answer, too.
pub(super) async fn again(arena: &Arena, args: &[&str]) -> Result<()> {
    let output = arena.platform.try_sexton(args).await?;
    let answered = matches!(output.status.code(), Some(0 | 4));
    follows(answered, &format!("sexton {args:?} failed when it was repeated: {output}"))
}

async fn triggered(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let key = format!("console-{}", Uuid::new_v4());
    let command = ["jobs", "trigger", jobs::TRIGGERED, "--key", &key];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let executions = rows::ids(arena.pool(), &format!("e.execution_key = '{key}'")).await?;
    Ok(Struck::at(at, executions).recovery(arena, name).await)
}

async fn of_failed(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let text = id.to_string();
    let requeue = ["failed", "requeue", &text, "--yes"];
    let discard = ["failed", "discard", &text, "--yes", "--reason", "torture"];
    let restore = ["failed", "restore", &text];
    let command: &[&str] = match name {
        "console.requeued" => &requeue,
        "console.discarded" => &discard,
        _ => &restore,
    };
    if name == "console.restored" {
        again(arena, &discard).await?;
    }
    let at = dies(arena, name, command).await?;
    again(arena, command).await?;
    let action = match name {
        "console.requeued" => "requeue",
        "console.discarded" => "discard",
        _ => "restore",
    };
    done_once(arena, id, action).await?;
    if name == "console.requeued" {
        // Failed and parked is an end, too, so the recovery alone would not wait for the run.
        let ran = until_state(arena, id, "succeeded", 2).await;
        ran.map_err(|error| undone(format!("requeued, and not run: {error:#}")))?;
        return Ok(Struck::at(at, vec![id]).recovery(arena, name).await);
    }
    let outcome = Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past();
    if name == "console.restored" {
        // A restore takes a discard back; from here on the execution may run again.
        again(arena, &requeue).await?;
    }
    Ok(outcome)
}

async fn edited(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let (text, params) = (id.to_string(), r#"{"edited": true}"#);
    let command = ["failed", "edit", &*text, "--params", params, "--reason", "torture", "--yes"];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    done_once(arena, id, "edit").await?;
    done_once(arena, id, "requeue").await?;
    let ran = until_state(arena, id, "succeeded", 2).await;
    ran.map_err(|error| undone(format!("edited and requeued, and not run: {error:#}")))?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await)
}

/// One person's discard waits for another one, whose approval is not carried out. The rule holds only so long.
async fn approved(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let text = id.to_string();
    let discard = ["failed", "discard", &text, "--yes", "--reason", "torture"];
    let request = requested(arena, &discard).await?;
    let approve = ["approvals", "approve", &request, "--yes"];
    let at = dies(arena, name, &approve).await?;
    if name == "console.claimed" {
        lapse(arena).await?;
    }
    again(arena, &approve).await?;
    done_once(arena, id, "discard").await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}

async fn approved_backfill(arena: &mut Arena, name: &str) -> Result<Outcome> {
    // Two or three firings, so that the rule concerns them.
    let job = another(arena, "every = \"24h\"\nmisfire = { policy = \"skip\" }").await?;
    again(arena, &["jobs", "pause", &job, "--reason", "torture"]).await?;
    let backfill = ["jobs", "backfill", &job, "--since", "71h59m", "--yes"];
    let request = requested(arena, &backfill).await?;
    let approve = ["approvals", "approve", &request, "--yes"];
    let at = dies(arena, name, &approve).await?;
    lapse(arena).await?;
    again(arena, &approve).await?;
    let of_job = format!("e.job_id = (SELECT id FROM sexton.jobs WHERE name = '{job}')");
    let ids = rows::ids(arena.pool(), &of_job).await?;
    let count =
        "SELECT (proposal ->> 'count')::bigint FROM sexton.approval_requests WHERE id = $1::bigint";
    let count: i64 = sqlx::query_scalar(count).bind(&request).fetch_one(arena.pool()).await?;
    follows(
        ids.len() as i64 == count,
        &format!("{} executions of {count} firings whose backfill was approved", ids.len()),
    )?;
    for id in &ids {
        carry(arena, *id).await?;
    }
    Ok(Struck::at(at, ids).recovery(arena, name).await)
}

/// Requests what a rule concerns, as another person, and returns the request's number.
async fn requested(arena: &Arena, command: &[&str]) -> Result<String> {
    again(arena, &["approvals", "rules", "set", "torture", "--above", "1"]).await?;
    let waits = arena.platform.try_sexton_with(&[("USER", "requester")], command).await?;
    again(arena, &["approvals", "rules", "delete", "torture"]).await?;
    ensure!(waits.status.code() == Some(11), "sexton {command:?} does not wait: {waits}");
    let newest = "SELECT max(id) FROM sexton.approval_requests";
    let request: i64 = sqlx::query_scalar(newest).fetch_one(arena.pool()).await?;
    Ok(request.to_string())
}

/// Lets the claims of requests for approval lapse, as two minutes do.
async fn lapse(arena: &Arena) -> Result<()> {
    let past = "UPDATE sexton.approval_requests SET claimed_at = claimed_at - interval '2 minutes'";
    sqlx::query(past).execute(arena.pool()).await?;
    Ok(())
}

async fn cancelled(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let text = id.to_string();
    let command = ["executions", "cancel", &text];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    // Its ticket, if there is one, opens nothing.
    present(arena, id).await?;
    done_once(arena, id, "cancel").await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}

/// The audit has the action once, however often the command ran.
async fn done_once(arena: &Arena, id: Uuid, action: &str) -> Result<()> {
    let times: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sexton.operator_actions WHERE execution_id = $1 AND action = $2",
    )
    .bind(id)
    .bind(action)
    .fetch_one(arena.pool())
    .await?;
    follows(
        times == 1,
        &format!("a {action} of {id} was requested twice and recorded {times} times"),
    )
}

async fn applied(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let path = arena.platform.folder().join("applied.toml");
    let execution = Uuid::new_v4();
    let file = format!(
        "[[job]]\nname = \"torture.applied\"\ntask = \"work\"\npool = \"{}\"\ndescription = \"{execution}\"\n",
        jobs::UNSERVED_POOL
    );
    std::fs::write(&path, file)?;
    let path = path.to_string_lossy().into_owned();
    let command = ["jobs", "apply", "-f", &path];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let id = arena.trigger("torture.applied", None).await?;
    carry(arena, id).await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await)
}

async fn caught_up(arena: &mut Arena, name: &str) -> Result<Outcome> {
    // As if a scheduler had noticed a jump; what is late from here on is set aside until the release.
    sqlx::query(
        "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by)
         VALUES ('forward', now() - interval '2 days', now(), 'torture:1') ON CONFLICT DO NOTHING",
    )
    .execute(arena.pool())
    .await?;
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let command = ["jobs", "catch-up", "--release", "--yes"];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sexton.holds WHERE released_at IS NULL")
            .fetch_one(arena.pool())
            .await?;
    follows(left == 0, "the hold was ended, and goes on")?;
    carry(arena, id).await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await)
}

async fn paused(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let (pause, resume) = (
        ["jobs", "pause", jobs::UNSERVED, "--reason", "torture"],
        ["jobs", "resume", jobs::UNSERVED],
    );
    // What is under way goes on.
    let id = arena.trigger(jobs::UNSERVED, None).await?;
    let command: &[&str] = if name == "console.paused" {
        &pause
    } else {
        again(arena, &pause).await?;
        &resume
    };
    let at = dies(arena, name, command).await?;
    again(arena, command).await?;
    again(arena, &resume).await?;
    carry(arena, id).await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await)
}

/// A job that nobody's workers run, by a name that no other has.
async fn another(arena: &Arena, more: &str) -> Result<String> {
    let name = format!("torture.another-{}", Uuid::new_v4().simple());
    let path = arena.platform.folder().join("another.toml");
    let pool = jobs::UNSERVED_POOL;
    let file = format!("[[job]]\nname = \"{name}\"\ntask = \"work\"\npool = \"{pool}\"\n{more}\n");
    std::fs::write(&path, file)?;
    again(arena, &["jobs", "apply", "-f", &path.to_string_lossy()]).await?;
    Ok(name)
}

async fn backfilled(arena: &mut Arena, name: &str) -> Result<Outcome> {
    // Once a day: one firing within a day, or the next day's as well.
    let job = another(arena, "every = \"24h\"\nmisfire = { policy = \"skip\" }").await?;
    again(arena, &["jobs", "pause", &job, "--reason", "torture"]).await?;
    let command = ["jobs", "backfill", &job, "--since", "23h59m", "--yes"];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let of_job = format!("e.job_id = (SELECT id FROM sexton.jobs WHERE name = '{job}')");
    let ids = rows::ids(arena.pool(), &of_job).await?;
    follows(
        ids.len() == 1,
        &format!("{} executions of one firing that was backfilled", ids.len()),
    )?;
    for id in &ids {
        carry(arena, *id).await?;
    }
    Ok(Struck::at(at, ids).recovery(arena, name).await)
}

async fn deleted(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let job = another(arena, "").await?;
    let id = arena.trigger(&job, None).await?;
    let command = ["jobs", "delete", &job, "--cancel", "--reason", "torture", "--yes"];
    let at = dies(arena, name, &command).await?;
    let output = arena.platform.try_sexton(&command).await?;
    let gone = output.status.code() == Some(3);
    follows(gone, &format!("a job that was deleted is still there: {output}"))?;
    // Its ticket opens nothing.
    present(arena, id).await?;
    done_once(arena, id, "cancel").await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}

async fn grouped(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let group: String =
        sqlx::query_scalar("SELECT fingerprint FROM sexton.failures WHERE execution_id = $1")
            .bind(id)
            .fetch_one(arena.pool())
            .await?;
    let note = Uuid::new_v4().to_string();
    let command = ["groups", "note", &group, &note];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let noted: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sexton.operator_actions WHERE after ->> 'note' = $1",
    )
    .bind(&note)
    .fetch_one(arena.pool())
    .await?;
    follows(noted == 1, &format!("a note was audited {noted} times"))?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}

async fn keys_assigned(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    let service = format!("s{}", Uuid::new_v4().simple());
    let command = ["keys", "assign", &service];
    let at = dies(arena, name, &command).await?;
    again(arena, &command).await?;
    let assigned: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sexton.operator_actions WHERE action = 'assign_keys' AND after ->> 'service' = $1",
    )
    .bind(&service)
    .fetch_one(arena.pool())
    .await?;
    follows(assigned == 1, &format!("a range was audited {assigned} times"))?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}
