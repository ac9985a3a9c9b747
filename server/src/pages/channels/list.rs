//! The page: channels, and the newest notifications.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use sexton_model::access::Role;
use sexton_operations::error::OperationError;
use sexton_operations::{alerts, channels};
use sexton_store::Store;
use sexton_store::alerts::list::{ChannelState, ListedNotification};

use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Notifications that the page shows.
const MAX_NOTIFICATIONS: i64 = 50;

/// Which notifications to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChannelsQuery {
    /// Only those of this channel.
    channel: Option<String>,
    /// The channel to which a test was just sent.
    tested: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "channels/list.html")]
struct ChannelsPage {
    frame: Frame,
    query: ChannelsQuery,
    channels: Vec<ChannelState>,
    notifications: Vec<ListedNotification>,
    /// What became of a test, and whether it arrived.
    tested: Option<(String, bool)>,
    role: Role,
}

impl ChannelsPage {
    fn state(&self, channel: &ChannelState) -> &'static str {
        match (channel.failing_since, channel.last_sent_at) {
            (Some(_), _) => "failing",
            (None, Some(_)) => "works",
            (None, None) => "unused",
        }
    }

    fn action(&self, channel: &ChannelState) -> String {
        format!("/channels/{}/test", channel.name)
    }

    fn command(&self, channel: &ChannelState) -> String {
        copy::command(&["channels", "test", &channel.name, "--via-scheduler"])
    }

    fn request(&self, channel: &ChannelState) -> String {
        copy::request("POST", &self.action(channel), &Value::Null)
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<ChannelsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Other).await?;
    let (store, query) = (visit.reads(), query.values);
    let reading = async {
        let channels = channels::list(store).await?;
        let channel = query.channel.as_deref();
        let notifications = newest(store, channel).await?;
        let tested = match query.tested.as_deref() {
            Some(name) => newest(store, Some(name)).await?,
            None => Vec::new(),
        };
        Ok((channels, notifications, tested))
    };
    let read: Result<_, OperationError> = reading.await;
    let (channels, notifications, tested) = read.map_err(|error| visit.refuse(error))?;
    let tested = tested.iter().find(|notification| notification.kind == "test").map(outcome);
    let role = Role::Operator;
    Ok(html(&ChannelsPage { frame, query, channels, notifications, tested, role }))
}

async fn newest(
    store: &Store,
    channel: Option<&str>,
) -> Result<Vec<ListedNotification>, OperationError> {
    let page = alerts::notifications(store, None, channel, None, MAX_NOTIFICATIONS).await?;
    Ok(page.items)
}

/// What became of a test, in a sentence, and whether it arrived.
fn outcome(test: &ListedNotification) -> (String, bool) {
    let channel = &test.channel;
    match (test.state.as_str(), &test.last_error) {
        ("sent", _) => (format!("{channel} has accepted the test."), true),
        (_, Some(error)) => (format!("{channel} has not accepted the test: {error}"), false),
        ("pending", None) => {
            let untried = "No scheduler has tried the test yet; it waits until one does. A channel that fails is tried at growing intervals.";
            (untried.to_owned(), false)
        }
        (state, None) => (format!("The test to {channel} is {state}."), false),
    }
}
