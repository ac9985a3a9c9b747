//! Watches a bulk until it has ended or the operator interrupts.

use std::time::Duration;

use serde_json::json;
use sexton_operations::bulks::blocked_questions::{BlockedNotice, describe_blocked};
use sexton_operations::bulks::watch::{Watch, is_scheduler_running, summary};
use sexton_store::Store;
use sexton_store::bulk::Bulk;
use tokio::time::sleep;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Progress, lines};

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Watches until the bulk has ended, and prints the outcome; an interrupt ends only the watching. Returns at once if no
/// scheduler runs, and when all that is left waits for the verify command.
///
/// # Errors
///
/// [`Failure::Reported`] when it did not do everything, is paused or stopped, or waits for the verify command.
pub(in crate::commands) async fn follow(
    store: &Store,
    id: i64,
    detach: bool,
    session: &Session,
) -> Result<(), Failure> {
    let mut watch = Watch::new(id);
    let mut seen = watch.poll(store).await?;
    if detach || !is_scheduler_running(store).await? {
        return match seen.unanswered {
            0 => render_detached(&seen.bulk, detach, session),
            left => render_unanswered(&seen.bulk, left, session),
        };
    }
    let progress = Progress::new(usize::MAX);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut notice = BlockedNotice::default();
    while seen.is_running() {
        let (bulk, left) = (&seen.bulk, seen.unanswered);
        if seen.is_stalled {
            drop(progress);
            return render_unanswered(bulk, left, session);
        }
        if let Some(blocked) = notice.poll(store, bulk).await? {
            progress.warn(&format!("bulk {}: {}", bulk.id, describe_blocked(blocked)));
        }
        progress.set((bulk.selected - bulk.remaining()) as u64, bulk.selected as u64);
        tokio::select! {
            _ = &mut interrupt => {
                drop(progress);
                return match left {
                    0 => render_detached(bulk, true, session),
                    left => render_unanswered(bulk, left, session),
                };
            }
            () = sleep(POLL_INTERVAL) => {}
        }
        seen = watch.poll(store).await?;
    }
    drop(progress);
    render_end(&seen.bulk, session)
}

fn render_unanswered(bulk: &Bulk, left: u64, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        session.out.document(&json!({"bulk": bulk, "unasked": left}))?;
    }
    let (id, progress_text) = (bulk.id, summary(bulk));
    let verb = if left == 1 { "waits" } else { "wait" };
    let message = format!(
        "bulk {id}: {progress_text}; {left} {verb} for the verify command; to run it: sexton bulks verify {id} CMD"
    );
    Err(Failure::Reported { exit: Exit::Partly, message })
}

fn render_detached(bulk: &Bulk, at_work: bool, session: &Session) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({"bulk": bulk}));
    }
    let id = bulk.id;
    session.out.print(if at_work {
        format!("Bulk {id} continues without this command.")
    } else {
        format!("Bulk {id} is recorded; no scheduler runs, and the bulk begins when one does.")
    })?;
    session.out.print(format!("Watch it: sexton bulks watch {id}. Stop it: sexton bulks stop {id}"))
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
                "bulk {id} is paused: {}\n{progress_text}; `sexton bulks resume {id}` goes on with the rest, \
                 `sexton bulks stop {id}` leaves it",
                lines(why)
            ),
        ),
        "stopped" => {
            let by = bulk.stopped_by.as_deref().unwrap_or("an operator");
            let text =
                format!("bulk {id} was stopped by {}: {}\n{progress_text}", lines(by), lines(why));
            failure(Exit::NothingDone, text)
        }
        _ if bulk.refused + bulk.left_alone > 0 => failure(
            Exit::Partly,
            format!("bulk {id}: {progress_text}; `sexton bulks show {id}` says which and why"),
        ),
        _ if session.out.is_json() => Ok(()),
        _ => session.out.print(format!("Bulk {id}: {progress_text}.")),
    }
}
