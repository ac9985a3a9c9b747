//! Points on the way of a bulk: a scheduler dies that carries it out, or the command that asks for it.

use anyhow::Result;
use tokio::time::Instant;
use uuid::Uuid;

use super::console::{again, dies};
use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::{Arena, Role};
use crate::torture::fault::Program;
use crate::torture::strike::bulk::{ask, done, fail, newest, over, requeue};
use crate::torture::strike::failure::follows;
use crate::torture::strike::{Outcome, Struck};

/// A scheduler dies between two effects; the command created the bulk while no scheduler ran.
pub(super) async fn carried(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let ids = fail(arena).await?;
    let target = CrashTarget::at(name).alone(arena);
    arena.kill(Program::Scheduler, Role::Victim);
    let bulk = ask(arena, &[]).await?;
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else {
        arena.complete()?;
        over(arena, bulk).await?;
        return Ok(not_passed(name));
    };
    let at = target.blow(arena, at).await?;
    target.go_on(arena)?;
    arena.complete()?;
    ends(arena, name, (bulk, at), ids).await
}

async fn ends(
    arena: &Arena,
    name: &str,
    (bulk, at): (i64, Instant),
    ids: Vec<Uuid>,
) -> Result<Outcome> {
    done(arena, bulk, &ids).await?;
    Ok(Struck::at(at, ids).recovery(arena, name).await)
}

/// The command dies after it has created a bulk, or after it has stopped or resumed it.
pub(super) async fn commanded(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let ids = fail(arena).await?;
    if name == "console.bulk_created" {
        let at = dies(arena, name, &requeue(&[])).await?;
        let bulk = newest(arena).await?;
        return ends(arena, name, (bulk, at), ids).await;
    }
    // Of what is to be run again the first is begun at once, and the others follow.
    let bulk = ask(arena, &["--rate", "1/s"]).await?;
    let id = bulk.to_string();
    let (stop, resume) = (["bulks", "stop", &id, "--reason", "torture"], ["bulks", "resume", &id]);
    let command: &[&str] = if name == "console.bulk_stopped" {
        &stop
    } else {
        again(arena, &stop).await?;
        &resume
    };
    let at = dies(arena, name, command).await?;
    again(arena, command).await?;
    steered_once(arena, bulk, name).await?;
    again(arena, &resume).await?;
    ends(arena, name, (bulk, at), ids).await
}

/// That it was stopped or resumed stands in the audit, and once.
async fn steered_once(arena: &Arena, bulk: i64, name: &str) -> Result<()> {
    let action = if name == "console.bulk_stopped" { "bulk_stop" } else { "bulk_resume" };
    let times: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sexton.operator_actions WHERE bulk_id = $1 AND action = $2",
    )
    .bind(bulk)
    .bind(action)
    .fetch_one(arena.pool())
    .await?;
    follows(
        times == 1,
        &format!("bulk {bulk}: {action} was requested twice and recorded {times} times"),
    )
}

/// The command dies while it asks another command of each execution; `bulks verify` asks for the rest later.
pub(super) async fn judged(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let ids = fail(arena).await?;
    let ledger = arena.ledger.file();
    let command =
        format!("grep -q \"^effect [0-9]* [^ ]* $SEXTON_IDEMPOTENCY_KEY$\" '{}'", ledger.display());
    let asking: Vec<&str> = requeue(&["--verify", &command]);
    let asking: Vec<&str> = asking.into_iter().filter(|word| *word != "--detach").collect();
    let at = dies(arena, name, &asking).await?;
    let bulk = newest(arena).await?;
    let id = bulk.to_string();
    let output = arena.platform.try_sexton(&["bulks", "verify", &id, &command]).await?;
    // All may have been answered for, and that nothing is left is an answer, too.
    let answered = matches!(output.status.code(), Some(0 | 4));
    follows(answered, &format!("the rest of bulk {bulk} was not asked: {output}"))?;
    ends(arena, name, (bulk, at), ids).await
}
