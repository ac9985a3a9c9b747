//! `sexton executions wait`: until an execution has ended, for scripts.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use sexton_model::duration;
use sexton_operations::enqueue;
use sexton_operations::execution_ids;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;

/// Which to wait for.
#[derive(Debug, Args)]
pub struct Wait {
    /// Id of the execution, or a unique beginning of it
    id: String,
    /// Give up after this time
    #[arg(long, value_parser = parse_timeout, value_name = "DURATION", default_value = "1h")]
    timeout: Duration,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

pub(super) async fn run(arguments: &Wait, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let id = execution_ids::resolve(&store, &arguments.id).await?;
    let ended = enqueue::wait_for(&store, id, arguments.timeout).await?;
    let succeeded = ended.state_name == "succeeded";
    if session.out.is_json() {
        session.out.document(&json!({
            "id": ended.execution_id,
            "job_name": ended.job,
            "execution_key": ended.key,
            "state": ended.state_name,
            "attempt": ended.attempt,
            "outcome": ended.outcome,
            "result": ended.result,
            "error_class": ended.error_class,
            "error_message": ended.error_message,
        }))?;
    } else {
        session.out.print(format!("{} is {}.", ended.execution_id, ended.state_name))?;
    }
    if succeeded {
        return Ok(());
    }
    let why = ended.error_message.map(|error| format!(": {error}")).unwrap_or_default();
    let message = format!("{} ended as {}{why}", ended.execution_id, ended.state_name);
    Err(Failure::Reported { exit: Exit::Failed, message })
}
