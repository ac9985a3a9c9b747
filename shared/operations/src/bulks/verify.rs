//! Runs a verify command for each item of a bulk, before the item is requeued.

use std::time::Duration;

use serde_json::Value;
use sexton_model::verify_task::VerifyAnswer;
use sexton_service::fault;
use sexton_store::bulk::{self, Item};
use sexton_store::operator::AuditContext;
use sexton_store::{Store, executions};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::verify_command::run_command;
use super::watch::find;
use crate::error::OperationError;

/// Maximum number of commands that run at once.
const MAX_CONCURRENT_COMMANDS: usize = 4;
/// Number of items in one page.
const PAGE_ITEMS: i64 = 100;
/// Number of items selected in one transaction.
const SELECT_BATCH_ITEMS: i64 = 2_000;
/// Pause between two polls while another process selects them.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The bulk, the command and the operator.
#[derive(Clone, Copy, Debug)]
pub struct Verification<'a> {
    /// The bulk.
    pub id: i64,
    /// The command.
    pub command: &'a str,
    /// The operator, in whose name executions are resolved.
    pub by: AuditContext<'a>,
}

/// Runs the command for each item without an answer, until none is left or the bulk is stopped.
///
/// The commands run on this machine, four at a time. A drop kills the running ones; the next call runs the command
/// again for items without an answer. So a crash loses the answers that were not recorded.
///
/// # Errors
///
/// Those of the database.
pub async fn verify_all(
    store: &Store,
    verification: Verification<'_>,
) -> Result<(), OperationError> {
    let Verification { id, command, by } = verification;
    if !bulk::record_verify_command(store, id, command, by).await? {
        return Ok(());
    }
    fault::point("console.bulk_verifying");
    let mut after = 0;
    loop {
        let bulk = find(store, id).await?;
        if !matches!(bulk.state.as_str(), "preparing" | "running") {
            return Ok(());
        }
        let page = bulk::list_items(store, id, &["unasked"], after, PAGE_ITEMS).await?;
        let Some(last) = page.last() else {
            if bulk.prepared_at.is_some() {
                return Ok(());
            }
            // Any process may select the items; without a scheduler this command does.
            if bulk::prepare(store, id, SELECT_BATCH_ITEMS, None).await?.is_none() {
                sleep(POLL_INTERVAL).await;
            }
            continue;
        };
        after = last.ordinal;
        verify_page(store, verification, page).await?;
    }
}

async fn verify_page(
    store: &Store,
    verification: Verification<'_>,
    page: Vec<Item>,
) -> Result<(), OperationError> {
    let mut running = JoinSet::new();
    for item in page {
        if running.len() >= MAX_CONCURRENT_COMMANDS {
            join_result(running.join_next().await)?;
        }
        let (store, id) = (store.clone(), verification.id);
        let (command, actor) = (verification.command.to_owned(), verification.by.actor.to_owned());
        let reason = verification.by.reason.map(str::to_owned);
        running.spawn(async move {
            let by = AuditContext { actor: &actor, reason: reason.as_deref() };
            verify_item(&store, Verification { id, command: &command, by }, &item).await
        });
    }
    while let Some(done) = running.join_next().await {
        join_result(Some(done))?;
    }
    Ok(())
}

fn join_result(
    done: Option<Result<Result<(), OperationError>, tokio::task::JoinError>>,
) -> Result<(), OperationError> {
    match done {
        Some(Err(error)) => {
            Err(OperationError::Failed(format!("a verification broke off: {error}")))
        }
        Some(Ok(result)) => result,
        None => Ok(()),
    }
}

async fn verify_item(
    store: &Store,
    verification: Verification<'_>,
    item: &Item,
) -> Result<(), OperationError> {
    let (answer, params) = match executions::find(store, item.execution_id).await? {
        // The command does not run for it, and it is left: it may fail again at this attempt before its turn.
        Some(row) if row.state != "failed" || row.attempt != item.seen => (
            VerifyAnswer::Unknown(format!("it is not failed at attempt {} any more", item.seen)),
            row.params,
        ),
        Some(row) => (run_command(verification.command, &row).await, row.params),
        None => (VerifyAnswer::Unknown("it is not there any more".to_owned()), Value::Null),
    };
    fault::point("console.bulk_answered");
    bulk::record_answer(
        store,
        verification.id,
        item.ordinal,
        &answer,
        &params,
        verification.by,
        None,
    )
    .await?;
    fault::point("console.bulk_judged");
    Ok(())
}
