//! Watching a bulk: how far it is, until it has ended or whoever watches has had enough.

use std::time::Duration;

use serde_json::json;
use sexton_store::bulk::{self, Bulk};
use sexton_store::{Store, instances};
use tokio::time::{Instant, sleep};

use super::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Progress, lines};
use crate::verify::LIMIT;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// When no answer has come for so long, nobody's command is being asked.
const NOBODY_ASKS: Duration = Duration::from_secs(LIMIT.as_secs() + 5);
/// A scheduler that was not heard of for so long is not at work, in milliseconds.
const SILENT_MS: i64 = 30_000;

/// Watches until the bulk has ended, and says how; an interrupt ends the watching alone. Without a
/// scheduler at work nobody waits, nor when nothing is left to do but what a command has to be asked of.
///
/// # Errors
///
/// [`Failure::Told`] when it did not do all that was asked, is paused or stopped, or was not asked of.
pub(super) async fn follow(
    store: &Store,
    id: i64,
    detach: bool,
    session: &Session,
) -> Result<(), Failure> {
    let mut bulk = find(store, id).await?;
    if detach || !scheduler_is_there(store).await? {
        return match unasked(store, &bulk).await? {
            0 => tell_going_on(&bulk, detach, session),
            left => tell_unasked(&bulk, left, session),
        };
    }
    let progress = Progress::new(usize::MAX);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut waiting = (0, Instant::now());
    let mut notice = waits::Notice::default();
    while matches!(bulk.state.as_str(), "preparing" | "running") {
        let left = unasked(store, &bulk).await?;
        if left != waiting.0 {
            waiting = (left, Instant::now());
        }
        let rest_waits = bulk.prepared_at.is_some() && left >= bulk.remaining() as u64;
        if left > 0 && rest_waits && waiting.1.elapsed() > NOBODY_ASKS {
            drop(progress);
            return tell_unasked(&bulk, left, session);
        }
        notice.look(store, &bulk, &progress).await?;
        progress.at((bulk.selected - bulk.remaining()) as u64, bulk.selected as u64);
        tokio::select! {
            _ = &mut interrupt => {
                drop(progress);
                return match left {
                    0 => tell_going_on(&bulk, true, session),
                    left => tell_unasked(&bulk, left, session),
                };
            }
            () = sleep(LOOK) => {}
        }
        bulk = find(store, id).await?;
    }
    drop(progress);
    ended(&bulk, session)
}

/// One bulk.
///
/// # Errors
///
/// [`Failure::NotFound`].
pub(super) async fn find(store: &Store, id: i64) -> Result<Bulk, Failure> {
    bulk::find(store, id).await?.ok_or_else(|| {
        Failure::NotFound(format!(
            "there is no bulk {id}; `sexton failed bulks` shows those there are"
        ))
    })
}

async fn scheduler_is_there(store: &Store) -> Result<bool, Failure> {
    let all = instances::list(store, None).await?;
    Ok(all.iter().any(|it| it.kind == "scheduler" && it.silent_ms < SILENT_MS))
}

/// How many of a bulk that goes on wait for a command's answer.
async fn unasked(store: &Store, bulk: &Bulk) -> Result<u64, Failure> {
    let waits = matches!(bulk.state.as_str(), "preparing" | "running")
        && bulk.verify.as_deref() == Some("command");
    if waits { Ok(bulk::count_unasked(store, bulk.id).await?) } else { Ok(0) }
}

fn tell_unasked(bulk: &Bulk, left: u64, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        session.out.document(&json!({"bulk": bulk, "unasked": left}))?;
    }
    let (id, told) = (bulk.id, summary(bulk));
    let (noun, them) = if left == 1 { ("it is", "it") } else { ("they are", "them") };
    let message = format!(
        "bulk {id}: {told}; nobody has answered yet for {left}, and nothing is done until {noun} answered \
         for. To ask a command of {them}: sexton failed bulk verify {id} CMD"
    );
    Err(Failure::Told { exit: Exit::Partly, message })
}

fn tell_going_on(bulk: &Bulk, at_work: bool, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({"bulk": bulk}));
    }
    let id = bulk.id;
    session.out.say(if at_work {
        format!("Bulk {id} goes on without this command.")
    } else {
        format!("Bulk {id} is written down; no scheduler is at work, and it begins when one is.")
    })?;
    session.out.say(format!(
        "Watch it: sexton failed bulk watch {id}. Stop it: sexton failed bulk stop {id}"
    ))
}

fn ended(bulk: &Bulk, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        session.out.document(&json!({"bulk": bulk}))?;
    }
    let id = bulk.id;
    let told = summary(bulk);
    let why = bulk.why.as_deref().unwrap_or_default();
    let failure = |exit, message: String| Err(Failure::Told { exit, message });
    match bulk.state.as_str() {
        "paused" => failure(
            Exit::Failed,
            format!(
                "bulk {id} is paused: {}\n{told}; `sexton failed bulk resume {id}` goes on with the rest, \
                 `sexton failed bulk stop {id}` leaves it",
                lines(why)
            ),
        ),
        "stopped" => {
            let by = bulk.stopped_by.as_deref().unwrap_or("somebody");
            let text = format!("bulk {id} was stopped by {}: {}\n{told}", lines(by), lines(why));
            failure(Exit::NothingDone, text)
        }
        _ if bulk.refused + bulk.left_alone > 0 => failure(
            Exit::Partly,
            format!("bulk {id}: {told}; `sexton failed bulk show {id}` says which and why"),
        ),
        _ if session.out.is_json() => Ok(()),
        _ => session.out.say(format!("Bulk {id}: {told}.")),
    }
}

/// How far it is, in words.
pub(super) fn summary(bulk: &Bulk) -> String {
    let done = match bulk.kind.as_str() {
        "discard" => "discarded",
        "restore" => "restored",
        _ => "requeued",
    };
    let mut parts = vec![format!("{} of {} {done}", bulk.done, bulk.selected)];
    if bulk.refused > 0 {
        parts.push(format!("{} were not, somebody else was faster", bulk.refused));
    }
    if bulk.resolved > 0 {
        parts.push(format!("{} had happened already", bulk.resolved));
    }
    if bulk.left_alone > 0 {
        parts.push(format!("{} left as they are", bulk.left_alone));
    }
    if bulk.remaining() > 0 {
        parts.push(format!("{} to go", bulk.remaining()));
    }
    parts.join(", ")
}
