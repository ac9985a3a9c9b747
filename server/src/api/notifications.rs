//! Notifications to channels.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_model::notification::NotificationState;
use sexton_operations::alerts;
use sexton_operations::paging::Page;
use sexton_store::alerts::list::ListedNotification;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::PageSize;
use super::extract::{Body, Query};
use super::paging::Paged;
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Which notifications to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListNotifications {
    /// Only notifications in this state.
    #[param(inline)]
    state: Option<NotificationState>,
    /// Only notifications to the channel of this name.
    channel: Option<String>,
    /// Notifications of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists notifications, the newest first.
#[utoipa::path(get, path = "/notifications", tag = "incidents", operation_id = "list_notifications",
    extensions(("x-role" = json!("viewer"))),
    params(ListNotifications),
    responses((status = 200, description = "A page of notifications.", body = Page<ListedNotification>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListNotifications>,
) -> Result<Paged<ListedNotification>, Problem> {
    let ListNotifications { state, channel, limit, cursor } = query;
    let (store, channel, cursor) = (allowed.reads(), channel.as_deref(), cursor.as_deref());
    Ok(Paged(alerts::notifications(store, state, channel, cursor, limit.get()).await?))
}

/// Which parked notifications to try again: either some by their ids, or all of a channel.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequeueNotifications {
    /// Their ids.
    #[serde(default)]
    #[schema(max_items = 1000)]
    ids: Vec<Uuid>,
    /// The name of a channel: all that are parked of it.
    channel: Option<String>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// Notifications that are tried again.
#[derive(Debug, Serialize, ToSchema)]
pub struct RequeuedNotifications {
    /// Their ids.
    requeued: Vec<Uuid>,
}

/// Lets parked notifications be tried again.
#[utoipa::path(post, path = "/notifications:requeue", tag = "incidents", operation_id = "requeue_notifications",
    extensions(("x-role" = json!("operator"))),
    request_body = RequeueNotifications,
    responses((status = 200, description = "Those that are tried again.", body = RequeuedNotifications)))]
pub async fn requeue(
    allowed: Allowed<Operator>,
    Body(request): Body<RequeueNotifications>,
) -> Result<Json<RequeuedNotifications>, Problem> {
    let RequeueNotifications { ids, channel, reason } = request;
    let (store, actor) = (allowed.writes(), allowed.actor());
    let requeued =
        alerts::requeue(&store, &ids, channel.as_deref(), actor, reason.as_deref()).await;
    let requeued = requeued.map_err(|error| Problem::from(error).in_body(&[]))?;
    Ok(Json(RequeuedNotifications { requeued }))
}
