//! Channels: their state, and tests of them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::channel::{Channel, ChannelKind};
use sexton_model::incident::NotificationKind;
use sexton_model::notification::Message;
use sexton_outbound::channel::Delivery;
use sexton_outbound::channel::send::{SendError, Sender};
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::alerts::config;
use sexton_store::alerts::list::{self, ChannelState, ListedNotification, NotificationFilter};
use sexton_store::alerts::requeue;
use sexton_store::status;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::actor::Actor;
use crate::alerts::no_channel;
use crate::error::OperationError;

/// How often a test that a scheduler sends is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// What became of a test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TestOutcome {
    /// The receiver accepted it.
    Accepted,
    /// The receiver did not accept it, for this reason.
    NotAccepted(String),
    /// No scheduler has tried it in time.
    Untried,
}

/// Lists the channels by name, with their states.
///
/// # Errors
///
/// Those of the database.
pub async fn list(store: &Store) -> Result<Vec<ChannelState>, OperationError> {
    Ok(list::channels(store, None).await?)
}

/// Returns a channel.
///
/// # Errors
///
/// [`OperationError::NotFound`].
pub async fn find(store: &Store, name: &str) -> Result<Channel, OperationError> {
    let channels = config::read(store).await?.channels;
    channels.into_iter().find(|channel| channel.name == name).ok_or_else(|| no_channel(name))
}

/// Returns what this process lacks to send to a channel: the references of secrets that it cannot read, in words.
pub async fn missing_here(sender: &Sender, channel: &Channel) -> Vec<String> {
    let missing = sender.missing_secrets(&channel.settings).await;
    missing.iter().map(ToString::to_string).collect()
}

/// Sends a test to a channel from this process, with its record in the audit.
///
/// # Errors
///
/// Those of the database. A receiver that does not accept the test is an outcome.
pub async fn test_here(
    store: &Store,
    sender: &Sender,
    channel: &Channel,
    actor: &Actor,
) -> Result<TestOutcome, OperationError> {
    requeue::record_direct_test(store, &channel.name, actor.because(None), None).await?;
    let now = status::clock(store).await?;
    let sent = sender.send(&channel.settings, &test_delivery(channel, actor, now), now).await;
    Ok(match sent {
        Ok(()) => TestOutcome::Accepted,
        Err(SendError { message, .. }) => TestOutcome::NotAccepted(message),
    })
}

fn test_delivery(channel: &Channel, actor: &Actor, now: DateTime<Utc>) -> Delivery {
    let message = Message {
        id: Uuid::now_v7(),
        kind: NotificationKind::Test,
        detail: format!("A test by {}", actor.name),
        created_at: now,
        thread: None,
        incident: None,
    };
    if channel.settings.kind() == ChannelKind::Alertmanager {
        Delivery::Batch(vec![message])
    } else {
        Delivery::Single(Box::new(message))
    }
}

/// Lets a scheduler send a test to a channel, and waits for the first try. One transaction, with its record in the audit.
///
/// # Errors
///
/// [`OperationError::NotFound`]: there is no such channel.
pub async fn test_by_scheduler(
    store: &Store,
    name: &str,
    patience: Duration,
    actor: &Actor,
) -> Result<TestOutcome, OperationError> {
    let id = Uuid::now_v7();
    if !requeue::write_test(store, name, id, actor.because(None), None).await? {
        return Err(no_channel(name));
    }
    fault::point("console.channel_tested");
    let end = Instant::now() + patience;
    loop {
        let filter = NotificationFilter { id: Some(id), ..NotificationFilter::default() };
        let row = list::notifications(store, filter, 1).await?.pop();
        if let Some(outcome) = row.and_then(outcome_of) {
            return Ok(outcome);
        }
        if Instant::now() >= end {
            return Ok(TestOutcome::Untried);
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// Returns what became of a test so far; `None`: it is not tried, or under way.
fn outcome_of(row: ListedNotification) -> Option<TestOutcome> {
    match (row.state.as_str(), row.last_error) {
        ("sent", _) => Some(TestOutcome::Accepted),
        ("pending", None) => None,
        (_, error) => Some(TestOutcome::NotAccepted(error.unwrap_or(row.state))),
    }
}
