//! `sexton jobs trigger --each`: one execution for each line of a file.

use std::path::Path;

use serde_json::json;
use sexton_operations::jobs::trigger_many::{MAX_FILE_BYTES, TriggerLines};
use sexton_store::trigger::TriggeredBatch;

use super::Trigger;
use crate::failure::Failure;
use crate::input_files::read_text_up_to;
use crate::session::Session;

pub(super) async fn trigger_many(
    arguments: &Trigger,
    file: &Path,
    session: &Session,
) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let text = read_text_up_to(file, MAX_FILE_BYTES + 1)
        .map_err(|error| Failure::Failed(format!("{shown} cannot be read: {error}")))?;
    let lines = TriggerLines::read(&shown, &text)?;
    let store = session.store().await?;
    let (name, reason) = (&arguments.name, arguments.reason.as_deref());
    let done = lines.trigger(&store, name, &session.actor, reason).await?;
    render(session, name, &done)
}

fn render(session: &Session, name: &str, done: &TriggeredBatch) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({
            "job_name": name,
            "created": done.created,
            "waiting": done.waiting,
            "known": done.known,
        }));
    }
    session.out.print(format!("Triggered {} executions of {name}.", done.created))?;
    if done.known > 0 {
        let known = done.known;
        session
            .out
            .print(format!("{known} keys had an execution already; nothing was done for them."))?;
    }
    if done.waiting > 0 {
        let waiting = done.waiting;
        session
            .out
            .print(format!("The job runs one at a time; {waiting} of them wait for their turn."))?;
    }
    if done.paused {
        session.out.print("The job is paused; these executions run all the same.")?;
    }
    Ok(())
}
