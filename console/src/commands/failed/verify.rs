//! Asks a command of each item of a bulk, before it is requeued.

use std::time::Duration;

use sexton_store::bulk::{self, Item, Verdict};
use sexton_store::{Store, executions};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::watch::find;
use crate::failure::Failure;
use crate::verify::{Answer, ask};

/// Commands that run at once.
const AT_ONCE: usize = 4;
/// Items of one page.
const PAGE: i64 = 100;
/// Items that are selected at once.
const SELECTED: i64 = 2_000;
/// While another one selects them.
const LOOK: Duration = Duration::from_millis(250);

/// Asks `command` of each item that nobody has answered for, until none is left, the bulk is stopped, or the
/// operator interrupts. What is not answered then is asked by `failed bulk verify`.
///
/// # Errors
///
/// Those of the database.
pub(super) async fn all(store: &Store, id: i64, command: &str) -> Result<(), Failure> {
    let asking = async {
        let mut after = 0;
        loop {
            let bulk = find(store, id).await?;
            if !matches!(bulk.state.as_str(), "preparing" | "running") {
                return Ok(());
            }
            let page = bulk::items(store, id, &["unasked"], after, PAGE).await?;
            let Some(last) = page.last() else {
                if bulk.prepared_at.is_some() {
                    return Ok(());
                }
                // Whoever comes first selects; without a scheduler it is this command.
                if bulk::prepare(store, id, SELECTED, None).await?.is_none() {
                    sleep(LOOK).await;
                }
                continue;
            };
            after = last.ordinal;
            of_page(store, id, command, page).await?;
        }
    };
    tokio::select! {
        done = asking => done,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn of_page(store: &Store, id: i64, command: &str, page: Vec<Item>) -> Result<(), Failure> {
    let mut running = JoinSet::new();
    for item in page {
        if running.len() >= AT_ONCE {
            joined(running.join_next().await)?;
        }
        let (store, command) = (store.clone(), command.to_owned());
        running.spawn(async move { one(&store, id, &command, &item).await });
    }
    while let Some(done) = running.join_next().await {
        joined(Some(done))?;
    }
    Ok(())
}

fn joined(
    done: Option<Result<Result<(), Failure>, tokio::task::JoinError>>,
) -> Result<(), Failure> {
    match done {
        Some(Err(error)) => Err(Failure::Failed(format!("a verification broke off: {error}"))),
        Some(Ok(result)) => result,
        None => Ok(()),
    }
}

async fn one(store: &Store, id: i64, command: &str, item: &Item) -> Result<(), Failure> {
    let answer = match executions::find(store, item.execution_id).await? {
        // Nothing is asked of it, and it is left: it may be failed again at this attempt before its turn.
        Some(row) if row.state != "failed" || row.attempt != item.seen => {
            Answer::Unknown(format!("it is not failed at attempt {} any more", item.seen))
        }
        Some(row) => ask(command, &row).await,
        None => Answer::Unknown("it is not there any more".to_owned()),
    };
    let verdict = match &answer {
        Answer::Happened => Verdict::Happened,
        Answer::NotYet => Verdict::NotYet,
        Answer::Unknown(why) => Verdict::Unknown(why),
    };
    bulk::judged(store, id, item.ordinal, verdict, None).await?;
    Ok(())
}
