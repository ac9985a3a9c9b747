//! Bulks: actions on many executions.

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use sexton_model::bulk_item::ItemState;
use sexton_operations::bulks::control::{self, BulkDetails};
use sexton_operations::bulks::items as bulk_items;
use sexton_operations::paging::Page;
use sexton_operations::secrets::mask_bulk;
use sexton_store::bulk::{Bulk, ListedItem};
use utoipa::IntoParams;

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{PageParameters, PageSize, ReasonBody};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Lists bulks, the newest first.
#[utoipa::path(get, path = "/bulks", tag = "bulks", operation_id = "list_bulks", extensions(("x-role" = json!("viewer"))),
    params(PageParameters),
    responses((status = 200, description = "A page of bulks.", body = Page<Bulk>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(PageParameters { limit, cursor }): Query<PageParameters>,
) -> Result<Paged<Bulk>, Problem> {
    let mut page = control::list(allowed.reads(), cursor.as_deref(), limit.get()).await?;
    page.items.iter_mut().for_each(mask_bulk);
    Ok(Paged(page))
}

/// Shows a bulk, with the first executions that refused.
#[utoipa::path(get, path = "/bulks/{id}", tag = "bulks", operation_id = "show_bulk", extensions(("x-role" = json!("viewer"))),
    params(("id" = i64, Path, description = "The bulk's number.")),
    responses((status = 200, description = "The bulk.", body = BulkDetails)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<i64>,
) -> Result<Json<BulkDetails>, Problem> {
    let mut details = control::show(allowed.reads(), id).await?;
    mask_bulk(&mut details.bulk);
    Ok(Json(details))
}

/// Which items of a bulk to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListItems {
    /// Only items in this state.
    #[param(inline)]
    state: Option<ItemState>,
    /// Items of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists a bulk's items in its order, each with what the bulk has done and what has become of the execution.
///
/// A page that had to look at very many items may be short and still have a successor.
#[utoipa::path(get, path = "/bulks/{id}/items", tag = "bulks", operation_id = "list_bulk_items",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = i64, Path, description = "The bulk's number."), ListItems),
    responses((status = 200, description = "A page of items.", body = Page<ListedItem>)))]
pub async fn items(
    allowed: Allowed<Viewer>,
    Path(id): Path<i64>,
    Query(ListItems { state, limit, cursor }): Query<ListItems>,
) -> Result<Paged<ListedItem>, Problem> {
    let cursor = cursor.as_deref();
    Ok(Paged(bulk_items::list(allowed.reads(), id, state, cursor, limit.get()).await?.page))
}

/// Stops a bulk: what is done stays done, and the rest is left as it is.
#[utoipa::path(post, path = "/bulks/{id}/stop", tag = "bulks", operation_id = "stop_bulk", extensions(("x-role" = json!("operator"))),
    params(("id" = i64, Path, description = "The bulk's number.")), request_body = ReasonBody,
    responses((status = 204, description = "It is stopped.")))]
pub async fn stop(
    allowed: Allowed<Operator>,
    Path(id): Path<i64>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    control::stop(&allowed.writes(), id, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a bulk go on that was stopped or paused.
#[utoipa::path(post, path = "/bulks/{id}/resume", tag = "bulks", operation_id = "resume_bulk",
    extensions(("x-role" = json!("operator"))),
    params(("id" = i64, Path, description = "The bulk's number.")), request_body = ReasonBody,
    responses((status = 204, description = "It goes on.")))]
pub async fn resume(
    allowed: Allowed<Operator>,
    Path(id): Path<i64>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    control::resume(&allowed.writes(), id, allowed.actor(), reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
