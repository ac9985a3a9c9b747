//! Channels, to which notifications go.

use std::time::Duration;

use axum::Json;
use serde::Serialize;
use sexton_operations::channels::{self, TestOutcome};
use sexton_store::alerts::list::ChannelState;
use utoipa::ToSchema;

use super::Items;
use super::extract::Path;
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// How long a request waits for a scheduler to send a test.
const TEST_PATIENCE: Duration = Duration::from_secs(15);

/// Lists channels with their states, without their settings.
#[utoipa::path(get, path = "/channels", tag = "incidents", operation_id = "list_channels", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The channels.", body = Items<ChannelState>)))]
pub async fn list(allowed: Allowed<Viewer>) -> Result<Json<Items<ChannelState>>, Problem> {
    Ok(Json(Items { items: channels::list(allowed.reads()).await? }))
}

/// What became of a test.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChannelTest {
    /// Whether the receiver accepted it.
    accepted: bool,
    /// Why it did not, or why nobody knows yet.
    detail: Option<String>,
}

/// Lets a scheduler send a test to a channel, and waits 15 s for the first try.
#[utoipa::path(post, path = "/channels/{name}/test", tag = "incidents", operation_id = "test_channel",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The channel's name.")),
    responses((status = 200, description = "What became of it.", body = ChannelTest)))]
pub async fn test(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
) -> Result<Json<ChannelTest>, Problem> {
    let store = allowed.writes();
    let outcome =
        channels::test_by_scheduler(&store, &name, TEST_PATIENCE, allowed.actor()).await?;
    let (accepted, detail) = match outcome {
        TestOutcome::Accepted => (true, None),
        TestOutcome::NotAccepted(why) => (false, Some(why)),
        TestOutcome::Untried => {
            (false, Some("no scheduler has tried it yet; it stays until one does".to_owned()))
        }
    };
    Ok(Json(ChannelTest { accepted, detail }))
}
