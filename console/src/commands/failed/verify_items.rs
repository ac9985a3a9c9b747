//! Asks a command of each item of a bulk, before it is requeued.

use std::time::Duration;

use serde_json::Value;
use sexton_model::verify_task::VerifyAnswer;
use sexton_service::fault;
use sexton_store::bulk::{self, Item};
use sexton_store::operator::AuditContext;
use sexton_store::{Store, executions};
use tokio::signal::unix::SignalKind;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::watch::find;
use crate::failure::Failure;
use crate::verify_command::run_command;

/// Commands that run at once.
const MAX_CONCURRENT_COMMANDS: usize = 4;
/// Items of one page.
const PAGE_ITEMS: i64 = 100;
/// Items that are selected at once.
const SELECT_BATCH_ITEMS: i64 = 2_000;
/// While another one selects them.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// What is asked, and who asks it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verification<'a> {
    /// The bulk.
    pub id: i64,
    /// The command.
    pub command: &'a str,
    /// The operator: what is resolved is his deed.
    pub by: AuditContext<'a>,
}

/// Asks the command of each item that nobody has answered for, until none is left, the bulk is stopped, or the
/// operator interrupts; returns whether he did. What is not answered then is asked by `failed bulk verify`.
/// A crash loses the answers that were not recorded: they are asked for again.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn verify_all(
    store: &Store,
    verification: Verification<'_>,
) -> Result<bool, Failure> {
    let Verification { id, command, by } = verification;
    let answered = async {
        if !bulk::record_verify_command(store, id, command, by).await? {
            return Ok(false);
        }
        fault::point("console.bulk_asks");
        let mut after = 0;
        loop {
            let bulk = find(store, id).await?;
            if !matches!(bulk.state.as_str(), "preparing" | "running") {
                return Ok(false);
            }
            let page = bulk::list_items(store, id, &["unasked"], after, PAGE_ITEMS).await?;
            let Some(last) = page.last() else {
                if bulk.prepared_at.is_some() {
                    return Ok(false);
                }
                // Whoever comes first selects; without a scheduler it is this command.
                if bulk::prepare(store, id, SELECT_BATCH_ITEMS, None).await?.is_none() {
                    sleep(POLL_INTERVAL).await;
                }
                continue;
            };
            after = last.ordinal;
            verify_page(store, verification, page).await?;
        }
    };
    // The commands are process groups of their own, which no signal to this one's reaches: they end with the future.
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .map(tokio::signal::unix::signal);
    let [interrupt, terminate, hangup] = &mut signals;
    let (Ok(interrupt), Ok(terminate), Ok(hangup)) = (interrupt, terminate, hangup) else {
        return Err(Failure::Failed("signals cannot be listened for".to_owned()));
    };
    tokio::select! {
        done = answered => done,
        _ = interrupt.recv() => Ok(true),
        _ = terminate.recv() => Ok(true),
        _ = hangup.recv() => Ok(true),
    }
}

async fn verify_page(
    store: &Store,
    verification: Verification<'_>,
    page: Vec<Item>,
) -> Result<(), Failure> {
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
    done: Option<Result<Result<(), Failure>, tokio::task::JoinError>>,
) -> Result<(), Failure> {
    match done {
        Some(Err(error)) => Err(Failure::Failed(format!("a verification broke off: {error}"))),
        Some(Ok(result)) => result,
        None => Ok(()),
    }
}

async fn verify_item(
    store: &Store,
    verification: Verification<'_>,
    item: &Item,
) -> Result<(), Failure> {
    let (answer, params) = match executions::find(store, item.execution_id).await? {
        // Nothing is asked of it, and it is left: it may be failed again at this attempt before its turn.
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
