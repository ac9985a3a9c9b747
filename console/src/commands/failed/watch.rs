//! Watching a bulk: how far it is, until it has ended or whoever watches has had enough.

use std::time::Duration;

use serde_json::json;
use sexton_store::bulk::{self, Bulk};
use sexton_store::{Store, instances};
use tokio::time::{Instant, sleep};

use super::blocked_questions;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Progress, lines};
use crate::verify_command::COMMAND_TIMEOUT;

/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// When no answer has come for so long, nobody's command is being asked.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(COMMAND_TIMEOUT.as_secs() + 5);
/// A scheduler that was not heard of for so long is not at work, in milliseconds.
const MAX_HEARTBEAT_AGE_MS: i64 = 30_000;

/// Watches until the bulk has ended, and says how; an interrupt ends the watching alone. Without a
/// scheduler at work nobody waits, nor when nothing is left to do but what a command has to be asked of.
///
/// # Errors
///
/// [`Failure::Reported`] when it did not do all that was asked, is paused or stopped, or was not asked of.
pub(super) async fn follow(
    store: &Store,
    id: i64,
    detach: bool,
    session: &Session,
) -> Result<(), Failure> {
    let mut bulk = find(store, id).await?;
    if detach || !is_scheduler_running(store).await? {
        return match count_unanswered(store, &bulk).await? {
            0 => render_detached(&bulk, detach, session),
            left => render_unanswered(&bulk, left, session),
        };
    }
    let progress = Progress::new(usize::MAX);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut waiting = (0, Instant::now());
    let mut notice = blocked_questions::BlockedNotice::default();
    while matches!(bulk.state.as_str(), "preparing" | "running") {
        let left = count_unanswered(store, &bulk).await?;
        if left != waiting.0 {
            waiting = (left, Instant::now());
        }
        let only_unanswered_left = bulk.prepared_at.is_some() && left >= bulk.remaining() as u64;
        if left > 0 && only_unanswered_left && waiting.1.elapsed() > ANSWER_TIMEOUT {
            drop(progress);
            return render_unanswered(&bulk, left, session);
        }
        notice.update(store, &bulk, &progress).await?;
        progress.set((bulk.selected - bulk.remaining()) as u64, bulk.selected as u64);
        tokio::select! {
            _ = &mut interrupt => {
                drop(progress);
                return match left {
                    0 => render_detached(&bulk, true, session),
                    left => render_unanswered(&bulk, left, session),
                };
            }
            () = sleep(POLL_INTERVAL) => {}
        }
        bulk = find(store, id).await?;
    }
    drop(progress);
    render_end(&bulk, session)
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

async fn is_scheduler_running(store: &Store) -> Result<bool, Failure> {
    let all = instances::list(store, None).await?;
    Ok(all.iter().any(|it| it.kind == "scheduler" && it.silent_ms < MAX_HEARTBEAT_AGE_MS))
}

/// How many of a bulk that goes on wait for a command's answer.
async fn count_unanswered(store: &Store, bulk: &Bulk) -> Result<u64, Failure> {
    let waits = matches!(bulk.state.as_str(), "preparing" | "running")
        && bulk.verify.as_deref() == Some("command");
    if waits { Ok(bulk::count_unasked(store, bulk.id).await?) } else { Ok(0) }
}

fn render_unanswered(bulk: &Bulk, left: u64, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        session.out.document(&json!({"bulk": bulk, "unasked": left}))?;
    }
    let (id, progress_text) = (bulk.id, summary(bulk));
    let (noun, them) = if left == 1 { ("it is", "it") } else { ("they are", "them") };
    let message = format!(
        "bulk {id}: {progress_text}; nobody has answered yet for {left}, and nothing is done until {noun} answered \
         for. To ask a command of {them}: sexton failed bulk verify {id} CMD"
    );
    Err(Failure::Reported { exit: Exit::Partly, message })
}

fn render_detached(bulk: &Bulk, at_work: bool, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({"bulk": bulk}));
    }
    let id = bulk.id;
    session.out.print(if at_work {
        format!("Bulk {id} goes on without this command.")
    } else {
        format!("Bulk {id} is written down; no scheduler is at work, and it begins when one is.")
    })?;
    session.out.print(format!(
        "Watch it: sexton failed bulk watch {id}. Stop it: sexton failed bulk stop {id}"
    ))
}

fn render_end(bulk: &Bulk, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        session.out.document(&json!({"bulk": bulk}))?;
    }
    let id = bulk.id;
    let progress_text = summary(bulk);
    let why = bulk.why.as_deref().unwrap_or_default();
    let failure = |exit, message: String| Err(Failure::Reported { exit, message });
    match bulk.state.as_str() {
        "paused" => failure(
            Exit::Failed,
            format!(
                "bulk {id} is paused: {}\n{progress_text}; `sexton failed bulk resume {id}` goes on with the rest, \
                 `sexton failed bulk stop {id}` leaves it",
                lines(why)
            ),
        ),
        "stopped" => {
            let by = bulk.stopped_by.as_deref().unwrap_or("somebody");
            let text =
                format!("bulk {id} was stopped by {}: {}\n{progress_text}", lines(by), lines(why));
            failure(Exit::NothingDone, text)
        }
        _ if bulk.refused + bulk.left_alone > 0 => failure(
            Exit::Partly,
            format!(
                "bulk {id}: {progress_text}; `sexton failed bulk show {id}` says which and why"
            ),
        ),
        _ if session.out.is_json() => Ok(()),
        _ => session.out.print(format!("Bulk {id}: {progress_text}.")),
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
