//! Channels and routes: applied as a file, and shown.

use axum::Json;
use sexton_operations::alerts::{self, AlertsDocument, AppliedAlerts};

use super::extract::Body;
use super::file_request::FileRequest;
use crate::access::{Admin, Allowed, Editor};
use crate::problem::Problem;

/// The name of the file in problems unless the request says it.
const FILE_NAME: &str = "alerts.toml";

/// Makes channels and routes those of a file: all of them or, on any problem, none.
///
/// Channels that are not in the file are removed, and what waits for them is dropped. A file can have variables and files of the schedulers sent
/// to any address, as secrets: so it takes an admin.
#[utoipa::path(post, path = "/alerts:apply", tag = "incidents", operation_id = "apply_alerts",
    extensions(("x-role" = json!("admin"))),
    request_body = FileRequest,
    responses((status = 200, description = "What changed, or would.", body = AppliedAlerts)))]
pub async fn apply(
    allowed: Allowed<Admin>,
    Body(request): Body<FileRequest>,
) -> Result<Json<AppliedAlerts>, Problem> {
    let file = alerts::read_file(request.name_or(FILE_NAME), &request.text)?;
    let (store, reason) = (allowed.writes(), request.reason.as_deref());
    Ok(Json(alerts::apply(&store, &file, request.dry_run, allowed.actor(), reason).await?))
}

/// Shows the channels and routes that are applied.
#[utoipa::path(get, path = "/alerts", tag = "incidents", operation_id = "show_alerts", extensions(("x-role" = json!("editor"))),
    responses((status = 200, description = "Channels and routes, also as a file.", body = AlertsDocument)))]
pub async fn show(allowed: Allowed<Editor>) -> Result<Json<AlertsDocument>, Problem> {
    Ok(Json(alerts::show(allowed.reads()).await?))
}
