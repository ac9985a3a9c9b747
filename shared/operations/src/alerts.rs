//! Channels and routes as a file, and the notifications that go to channels.

use std::collections::BTreeSet;

use sexton_model::alerts_file::{self, AlertsFile};
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::alerts::config::{self, AlertsChange, AlertsError};
use sexton_store::alerts::list::{self, ListedNotification, NotificationFilter};
use sexton_store::alerts::requeue::{self, ParkedSelection};
use uuid::Uuid;

use crate::actor::Actor;
use crate::channels::find;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};

/// Parses an alerts file.
///
/// # Errors
///
/// [`InvalidRequest::AlertsFile`] with every problem and its place.
pub fn read_file(file_name: &str, text: &str) -> Result<AlertsFile, OperationError> {
    Ok(alerts_file::parse(file_name, text).map_err(InvalidRequest::AlertsFile)?)
}

/// Makes channels and routes those of the file. One transaction, with its record in the audit. With `dry_run` nothing changes.
///
/// # Errors
///
/// Those of the database; [`OperationError::Failed`]: somebody else changes them.
pub async fn apply(
    store: &Store,
    file: &AlertsFile,
    dry_run: bool,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<AlertsChange, OperationError> {
    let applied = config::apply(store, file, dry_run, actor.because(reason), None).await;
    let change = applied.map_err(|error| match error {
        AlertsError::Store(error) => error.into(),
        error @ AlertsError::Locked => OperationError::Failed(error.to_string()),
    })?;
    if !dry_run && change.is_change() {
        fault::point("console.alerts_applied");
    }
    Ok(change)
}

/// Reads the channels and routes that are applied.
///
/// # Errors
///
/// Those of the database.
pub async fn read(store: &Store) -> Result<AlertsFile, OperationError> {
    Ok(config::read(store).await?)
}

/// Lists notifications, the newest first.
///
/// # Errors
///
/// [`OperationError::NotFound`]: there is no such channel.
pub async fn notifications(
    store: &Store,
    state: Option<&str>,
    channel: Option<&str>,
    limit: i64,
) -> Result<Vec<ListedNotification>, OperationError> {
    let filter = NotificationFilter { id: None, state, channel };
    let listed = list::notifications(store, filter, limit).await?;
    if let (true, Some(channel)) = (listed.is_empty(), channel) {
        find(store, channel).await?;
    }
    Ok(listed)
}

/// Lets parked notifications be tried again. One transaction, with its record in the audit. Returns their ids.
///
/// # Errors
///
/// [`InvalidRequest`]: a text is no id; [`OperationError::NotFound`]: there is no such channel; [`Conflict`]: none of them is parked.
pub async fn requeue(
    store: &Store,
    ids: &[String],
    channel: Option<&str>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Vec<Uuid>, OperationError> {
    let selection = match channel {
        Some(channel) => {
            find(store, channel).await?;
            ParkedSelection::Channel(channel.to_owned())
        }
        None => ParkedSelection::Ids(parse_ids(ids)?),
    };
    let requeued = requeue::requeue(store, &selection, actor.because(reason), None).await?;
    if requeued.is_empty() {
        let none = "none of these notifications is parked; nothing was done".to_owned();
        return Err(Conflict::Other(none).into());
    }
    fault::point("console.notifications_requeued");
    Ok(requeued)
}

fn parse_ids(ids: &[String]) -> Result<Vec<Uuid>, OperationError> {
    let parse = |text: &String| {
        text.parse::<Uuid>().map_err(|_| {
            OperationError::from(InvalidRequest::Other(format!("{text:?} is no notification's id")))
        })
    };
    let ids: BTreeSet<Uuid> = ids.iter().map(parse).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(InvalidRequest::NothingSelected.into());
    }
    Ok(ids.into_iter().collect())
}

/// Returns the error of a channel that does not exist.
pub(crate) fn no_channel(name: &str) -> OperationError {
    NotFound::Channel(name.to_owned()).into()
}
