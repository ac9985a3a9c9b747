//! Changes checks: applies files, and deletes.

use axum::Json;
use axum::http::StatusCode;
use sexton_operations::checks::{self, AppliedChecks, CheckAction};

use super::Reason;
use super::extract::{Body, Path, Query};
use super::file_request::FileRequest;
use crate::access::{Allowed, Editor};
use crate::problem::Problem;

/// The name of the file in problems unless the request says it.
const FILE_NAME: &str = "checks.toml";

/// Adds the checks of a file, and changes those that there are already: all of them or, on any problem, none.
///
/// Checks that are not in the file stay.
#[utoipa::path(post, path = "/checks:apply", tag = "checks", operation_id = "apply_checks",
    extensions(("x-role" = json!("editor"))),
    request_body = FileRequest,
    responses((status = 200, description = "What changed, or would.", body = AppliedChecks)))]
pub async fn apply(
    allowed: Allowed<Editor>,
    Body(request): Body<FileRequest>,
) -> Result<Json<AppliedChecks>, Problem> {
    let specs = checks::read_file(request.name_or(FILE_NAME), &request.text)?;
    let (store, reason) = (allowed.writes(), request.reason.as_deref());
    Ok(Json(checks::apply(&store, &specs, request.dry_run, allowed.actor(), reason).await?))
}

/// Deletes a check with its pings.
#[utoipa::path(delete, path = "/checks/{name}", tag = "checks", operation_id = "delete_check",
    extensions(("x-role" = json!("editor"))),
    params(("name" = String, Path, description = "The check's name."), Reason),
    responses((status = 204, description = "It is deleted.")))]
pub async fn delete(
    allowed: Allowed<Editor>,
    Path(name): Path<String>,
    Query(Reason { reason }): Query<Reason>,
) -> Result<StatusCode, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    checks::act(&store, &name, CheckAction::Delete, actor, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
