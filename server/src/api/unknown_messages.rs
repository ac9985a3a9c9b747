//! Unknown messages of the failed queue.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use sexton_operations::error::{Conflict, NotFound, OperationError};
use sexton_operations::paging::{Cursor, Page};
use sexton_operations::unknown_messages::{
    self, Content, ListedMessage, MessageDetails, describe_overflow, details, export,
};
use sexton_store::unknown_messages::{PendingAction, UnknownMessageError};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use super::paging::{NextPage, next_page};
use super::{PageSize, ReasonBody};
use crate::access::{Admin, Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Bytes of a body that are shown.
const SHOWN_BYTES: usize = 64 * 1024;

/// Which messages to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListMessages {
    /// Also messages that have left the queue, until retention removes them.
    all: bool,
    /// Messages of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A page of unknown messages.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnknownMessages {
    /// The rows.
    items: Vec<ListedMessage>,
    /// For the next page; absent: this is the last one.
    next_cursor: Option<Cursor>,
    /// Of messages for which the record had no room, in words; absent: there was room.
    overflow: Option<String>,
}

/// Lists messages of the failed queue that belong to no execution, the oldest first, as the last sweep saw them.
#[utoipa::path(get, path = "/unknown-messages", tag = "failures", operation_id = "list_unknown_messages",
    extensions(("x-role" = json!("viewer"))), params(ListMessages),
    responses((status = 200, description = "A page of messages.", body = UnknownMessages)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(ListMessages { all, limit, cursor }): Query<ListMessages>,
) -> Result<(Option<Extension<NextPage>>, Json<UnknownMessages>), Problem> {
    let store = allowed.reads();
    let page = unknown_messages::list(store, all, cursor.as_deref(), limit.get()).await?;
    let overflow = unknown_messages::overflow(store).await?;
    let Page { items, next_cursor } = page.map(ListedMessage::new);
    let overflow = overflow.as_ref().map(describe_overflow);
    let next = next_page(next_cursor.as_ref());
    Ok((next, Json(UnknownMessages { items, next_cursor, overflow })))
}

/// Shows an unknown message with its properties and the beginning of its body, at most 64 KiB, with secrets masked.
#[utoipa::path(get, path = "/unknown-messages/{id}", tag = "failures", operation_id = "show_unknown_message",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = String, Path, description = "The message's id, or a unique beginning.")),
    responses((status = 200, description = "The message.", body = MessageDetails)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<String>,
) -> Result<Json<MessageDetails>, Problem> {
    Ok(Json(details(allowed.reads(), &id, SHOWN_BYTES, true).await?))
}

/// Which body to send.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ShowBody {
    /// Also a body of which only the beginning is kept.
    cut: bool,
}

/// Sends the kept body of an unknown message, byte for byte, at most 1 MiB. Secrets are not masked, so it needs the role admin.
#[utoipa::path(get, path = "/unknown-messages/{id}/body", tag = "failures", operation_id = "show_unknown_message_body",
    extensions(("x-role" = json!("admin"))),
    params(("id" = String, Path, description = "The message's id, or a unique beginning."), ShowBody),
    responses((status = 200, description = "The body.", body = String, content_type = "application/octet-stream")))]
pub async fn body(
    allowed: Allowed<Admin>,
    Path(id): Path<String>,
    Query(ShowBody { cut }): Query<ShowBody>,
) -> Result<([(HeaderName, HeaderValue); 2], Vec<u8>), Problem> {
    let (_, Content { body, .. }) = export(allowed.reads(), &id, cut).await?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        // No browser shows what somebody else wrote as a page of this server.
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    ];
    Ok((headers, body))
}

/// How to discard a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscardMessage {
    /// Also if only its beginning is kept, so that no restore can publish it again.
    #[serde(default)]
    allow_truncated: bool,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::required_reason")]
    reason: String,
}

/// A message, and what the next sweep does with it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MarkedMessage {
    /// Its whole id.
    id: String,
    /// What the next sweep does.
    next: NextAction,
}

/// What the next sweep does with a message.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// It removes it from the queue.
    Discard,
    /// Nothing: it stays in the queue.
    Keep,
    /// It publishes it again.
    Restore,
}

impl MarkedMessage {
    fn new(
        id: String,
        marked: Result<PendingAction, UnknownMessageError>,
    ) -> Result<Json<Self>, Problem> {
        let next = match marked.map_err(refused)? {
            PendingAction::Discard => NextAction::Discard,
            PendingAction::Keep => NextAction::Keep,
            PendingAction::Restore => NextAction::Restore,
        };
        Ok(Json(Self { id, next }))
    }
}

fn refused(error: UnknownMessageError) -> OperationError {
    match error {
        UnknownMessageError::Missing(id) => NotFound::UnknownMessage(id).into(),
        UnknownMessageError::Truncated { bytes, kept, .. } => Conflict::TruncatedMessage {
            kept_bytes: i32::try_from(kept).unwrap_or(i32::MAX),
            body_bytes: bytes,
        }
        .into(),
        UnknownMessageError::Store(error) => error.into(),
        other => Conflict::Other(other.to_string()).into(),
    }
}

/// Discards a message: the next sweep removes it from the queue. It can be restored.
#[utoipa::path(post, path = "/unknown-messages/{id}/discard", tag = "failures", operation_id = "discard_unknown_message",
    extensions(("x-role" = json!("operator"))),
    params(("id" = String, Path, description = "The message's id, or a unique beginning.")), request_body = DiscardMessage,
    responses((status = 200, description = "It is discarded.", body = MarkedMessage)))]
pub async fn discard(
    allowed: Allowed<Operator>,
    Path(id): Path<String>,
    Body(DiscardMessage { allow_truncated, reason }): Body<DiscardMessage>,
) -> Result<Json<MarkedMessage>, Problem> {
    let store = allowed.writes();
    let id = unknown_messages::find(&store, &id).await?.id;
    let by = (allowed.actor(), reason.as_str());
    let marked = unknown_messages::discard(&store, &id, allow_truncated, by).await;
    MarkedMessage::new(id, marked)
}

/// Takes a discard back: the next sweep publishes a message that it has removed.
#[utoipa::path(post, path = "/unknown-messages/{id}/restore", tag = "failures", operation_id = "restore_unknown_message",
    extensions(("x-role" = json!("operator"))),
    params(("id" = String, Path, description = "The message's id, or a unique beginning.")), request_body = ReasonBody,
    responses((status = 200, description = "The discard is taken back.", body = MarkedMessage)))]
pub async fn restore(
    allowed: Allowed<Operator>,
    Path(id): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<MarkedMessage>, Problem> {
    let store = allowed.writes();
    let id = unknown_messages::find(&store, &id).await?.id;
    let by = (allowed.actor(), reason.as_deref());
    let marked = unknown_messages::restore(&store, &id, by).await;
    MarkedMessage::new(id, marked)
}
