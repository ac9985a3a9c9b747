//! Channels and routes as a file, and the notifications that go to channels.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sexton_model::alerts_file::{self, AlertsFile};
use sexton_model::notification::NotificationState;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::alerts::config::{self, AlertsChange, AlertsError};
use sexton_store::alerts::list::{self, ListedNotification, NotificationFilter};
use sexton_store::alerts::requeue::{self, ParkedSelection};
use uuid::Uuid;

use crate::actor::Actor;
use crate::channels::find;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};

/// The most notifications that are requeued by their ids at once.
pub const MAX_REQUEUED_IDS: usize = 1_000;

/// What applying a file has changed, or would.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppliedAlerts {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The changes.
    pub change: AlertsChange,
}

/// The channels and routes that are applied.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertsDocument {
    /// The channels by name, each with its kind and settings, which refer to secrets and hold none.
    pub channels: Value,
    /// The routes, in their order.
    pub routes: Value,
    /// Both as a file in TOML. Applied again, it changes nothing.
    pub text: String,
}

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
) -> Result<AppliedAlerts, OperationError> {
    let applied = config::apply(store, file, dry_run, actor.because(reason), None).await;
    let change = applied.map_err(|error| match error {
        AlertsError::Store(error) => error.into(),
        error @ AlertsError::Locked => OperationError::Failed(error.to_string()),
    })?;
    if !dry_run && change.is_change() {
        fault::point("console.alerts_applied");
    }
    Ok(AppliedAlerts { dry_run, change })
}

/// Reads the channels and routes that are applied.
///
/// # Errors
///
/// Those of the database.
pub async fn read(store: &Store) -> Result<AlertsFile, OperationError> {
    Ok(config::read(store).await?)
}

/// Returns the channels and routes that are applied, as documents and as a file.
///
/// # Errors
///
/// Those of the database.
pub async fn show(store: &Store) -> Result<AlertsDocument, OperationError> {
    let file = read(store).await?;
    let mut document = config::document(&file);
    let (channels, routes) = (document["channels"].take(), document["routes"].take());
    Ok(AlertsDocument { channels, routes, text: file.to_toml() })
}

/// Returns a page of at most `limit` notifications, the newest first, behind `cursor`.
///
/// # Errors
///
/// [`InvalidRequest`] for a cursor of another list; [`OperationError::NotFound`]: there is no such channel.
pub async fn notifications(
    store: &Store,
    state: Option<NotificationState>,
    channel: Option<&str>,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<ListedNotification>, OperationError> {
    let before = Cursor::read::<(DateTime<Utc>, Uuid)>(PagedList::Notifications, cursor)?;
    let state = state.map(NotificationState::as_str);
    let filter = NotificationFilter { id: None, state, channel, before };
    let rows = list::notifications(store, filter, limit + 1).await?;
    if let (true, Some(channel)) = (rows.is_empty(), channel) {
        find(store, channel).await?;
    }
    let position = |row: &ListedNotification| (row.created_at, row.id);
    Ok(Page::from_rows(rows, limit, PagedList::Notifications, position))
}

/// Lets parked notifications be tried again: those with these ids, or all of a channel. One transaction, with its record in the audit.
/// Returns their ids.
///
/// # Errors
///
/// [`InvalidRequest`]: nothing is selected, or too much; [`OperationError::NotFound`]: there is no such channel; [`Conflict`]: none of them
/// is parked.
pub async fn requeue(
    store: &Store,
    ids: &[Uuid],
    channel: Option<&str>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Vec<Uuid>, OperationError> {
    let selection = select_parked(ids, channel)?;
    if let Some(channel) = channel {
        find(store, channel).await?;
    }
    let requeued = requeue::requeue(store, &selection, actor.because(reason), None).await?;
    if requeued.is_empty() {
        let none = "none of these notifications is parked; nothing was done".to_owned();
        return Err(Conflict::Other(none).into());
    }
    fault::point("console.notifications_requeued");
    Ok(requeued)
}

fn select_parked(ids: &[Uuid], channel: Option<&str>) -> Result<ParkedSelection, InvalidRequest> {
    match channel {
        Some(_) if !ids.is_empty() => {
            let problem = "does not go with ids: it selects all that are parked of it";
            Err(InvalidRequest::field("channel", problem))
        }
        Some(channel) => Ok(ParkedSelection::Channel(channel.to_owned())),
        None if ids.is_empty() => Err(InvalidRequest::NothingSelected),
        None if ids.len() > MAX_REQUEUED_IDS => {
            let problem = format!("are {}; at most {MAX_REQUEUED_IDS} are possible", ids.len());
            Err(InvalidRequest::field("ids", problem))
        }
        None => Ok(ParkedSelection::Ids(ids.to_vec())),
    }
}

/// Returns the error of a channel that does not exist.
pub(crate) fn no_channel(name: &str) -> OperationError {
    NotFound::Channel(name.to_owned()).into()
}
