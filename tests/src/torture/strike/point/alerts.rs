//! Notifications and heartbeats: a scheduler or a command dies between two of its steps.
//!
//! A scheduler sends them to a receiver that accepts all. Commands send nothing, so their channel leads nowhere.

use anyhow::Result;
use sexton_peers::http::Server;
use uuid::Uuid;

use super::console::{again, dies};
use super::{CrashTarget, not_passed, nothing};
use crate::torture::arena::{Arena, Role};
use crate::torture::fault::Program;
use crate::torture::rows;
use crate::torture::strike::manual::park;
use crate::torture::strike::{Outcome, Struck};

const CHANNEL: &str = "INSERT INTO sexton.channels (name, kind, config, updated_at)
    VALUES ('torture', 'webhook', jsonb_build_object('url', $1::text, 'allow_private', true), now())
    ON CONFLICT (name) DO UPDATE SET config = excluded.config, next_send_at = NULL";
/// Where nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9/";
const TEST: &str =
    "INSERT INTO sexton.notifications (id, channel, kind, detail, created_at, due_at)
    VALUES (gen_random_uuid(), 'torture', 'test', 'torture', now(), now())";
const PARK: &str = "UPDATE sexton.notifications SET state = 'parked', finished_at = now()
    WHERE channel = 'torture' AND state = 'pending'";

const WATCHED: &str = "UPDATE sexton.jobs
    SET heartbeat = jsonb_build_object('url', $1::text, 'on', '[\"success\"]'::jsonb, 'allow_private', true)
    WHERE id = (SELECT job_id FROM sexton.executions ORDER BY id DESC LIMIT 1)";
const ADDRESSES: &str = "UPDATE sexton.heartbeat_addresses SET next_send_at = NULL, failures = 0";
const BEAT: &str = "INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, address, created_at, due_at)
    SELECT id, gen_random_uuid(), 1, 'success', sexton.heartbeat_address(heartbeat), now(), now()
    FROM sexton.jobs WHERE heartbeat IS NOT NULL LIMIT 1";
const NO_BEATS: &str = "WITH gone AS (DELETE FROM sexton.heartbeats) UPDATE sexton.jobs SET heartbeat = NULL WHERE heartbeat IS NOT NULL";

/// A scheduler dies with a notification in hand.
pub(super) async fn sending(arena: &mut Arena, name: &str) -> Result<Outcome> {
    dies_sending(arena, name, CHANNEL, &[TEST], PARK).await
}

/// A scheduler dies with a heartbeat in hand.
pub(super) async fn beating(arena: &mut Arena, name: &str) -> Result<Outcome> {
    dies_sending(arena, name, WATCHED, &[ADDRESSES, BEAT], NO_BEATS).await
}

/// A scheduler dies with something in hand for the receiver that `to` sets and the statements of `before` have made; `after` takes
/// away what is left.
async fn dies_sending(
    arena: &mut Arena,
    name: &str,
    to: &'static str,
    before: &[&'static str],
    after: &'static str,
) -> Result<Outcome> {
    let id = park(arena).await?;
    let target = CrashTarget::at(name).alone(arena);
    arena.kill(Program::Scheduler, Role::Victim);
    let receiver = Server::answering("200 OK", "", "").await;
    let url = format!("http://{}/", receiver.address);
    rows::change_with(arena.pool(), to, &url).await?;
    for statement in before {
        rows::change(arena.pool(), statement).await?;
    }
    target.start(arena)?;
    let Some(at) = target.dies(arena, nothing).await? else { return Ok(not_passed(name)) };
    let at = target.blow(arena, at).await?;
    target.go_on(arena)?;
    arena.complete()?;
    rows::change(arena.pool(), after).await?;
    Ok(target.recovery(arena, at, vec![id]).await?.of_the_past())
}

/// A command dies that changes channels or notifications.
pub(super) async fn commanded(arena: &mut Arena, name: &str) -> Result<Outcome> {
    let id = park(arena).await?;
    rows::change_with(arena.pool(), CHANNEL, NOWHERE).await?;
    let file = arena.platform.folder().join("alerts.toml");
    let channel = format!("c{}", &Uuid::new_v4().simple().to_string()[..8]);
    std::fs::write(
        &file,
        format!("[[channel]]\nname = \"{channel}\"\nslack = {{ url = {{ env = \"X\" }} }}\n"),
    )?;
    let path = file.display().to_string();
    let command: Vec<&str> = match name {
        "console.alerts_applied" => vec!["alerts", "apply", "-f", &path],
        "console.channel_tested" => vec!["channels", "test", "torture", "--via-scheduler"],
        _ => {
            rows::change(arena.pool(), TEST).await?;
            rows::change(arena.pool(), PARK).await?;
            vec!["alerts", "requeue", "--channel", "torture", "--all-parked"]
        }
    };
    let at = dies(arena, name, &command).await?;
    if name == "console.alerts_applied" {
        again(arena, &command).await?;
    }
    rows::change(arena.pool(), PARK).await?;
    Ok(Struck::at(at, vec![id]).recovery(arena, name).await.of_the_past())
}
