//! Monitors of jobs, and checks of jobs that run elsewhere.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use sexton_model::access::Role;
use sexton_operations::checks::{self, CheckAction};
use sexton_operations::monitors;
use sexton_operations::paging::Page;
use sexton_store::checks::list::{CheckFilter, CheckStatus, ListedPing};
use sexton_store::monitors::{MonitorFilter, MonitorStatus};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{PageSize, ReasonBody};
use crate::access::{Allowed, Caller, Operator, Viewer};
use crate::problem::Problem;

/// Pings of a check that are shown.
const SHOWN_PINGS: i64 = 50;

/// Which monitors to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListMonitors {
    /// Only monitors of jobs whose name contains this text.
    contains: Option<String>,
    /// Only monitors with an open incident.
    open: bool,
    /// Only monitors of jobs that limit a time.
    limited: bool,
    /// Monitors of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists monitors by the names of their jobs.
#[utoipa::path(get, path = "/monitors", tag = "incidents", operation_id = "list_monitors", extensions(("x-role" = json!("viewer"))),
    params(ListMonitors),
    responses((status = 200, description = "A page of monitors.", body = Page<MonitorStatus>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListMonitors>,
) -> Result<Paged<MonitorStatus>, Problem> {
    let ListMonitors { contains, open, limited, limit, cursor } = query;
    let filter = MonitorFilter { containing: contains, open, limited, after: None };
    Ok(Paged(monitors::list(allowed.reads(), filter, cursor.as_deref(), limit.get()).await?))
}

/// Which checks to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListChecks {
    /// Only checks whose name contains this text.
    contains: Option<String>,
    /// Only checks with an open incident.
    open: bool,
    /// Checks of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists checks by name.
#[utoipa::path(get, path = "/checks", tag = "checks", operation_id = "list_checks", extensions(("x-role" = json!("viewer"))),
    params(ListChecks),
    responses((status = 200, description = "A page of checks.", body = Page<CheckStatus>)))]
pub async fn list_checks(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListChecks>,
) -> Result<Paged<CheckStatus>, Problem> {
    let ListChecks { contains, open, limit, cursor } = query;
    let filter = CheckFilter { name: None, containing: contains, open, after: None };
    let mut page = checks::list(allowed.reads(), filter, cursor.as_deref(), limit.get()).await?;
    page.items.iter_mut().for_each(|check| hide_address(check, allowed.caller()));
    Ok(Paged(page))
}

/// Hides the address of a check from viewers: it lets its reader report for the job, which they may not.
fn hide_address(check: &mut CheckStatus, caller: &Caller) {
    if caller.role < Role::Operator {
        check.id = Uuid::nil();
    }
}

/// A check with its newest pings.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckDetails {
    /// The check.
    check: CheckStatus,
    /// Its newest pings, the newest first.
    pings: Vec<ListedPing>,
}

/// Shows a check with its newest pings.
#[utoipa::path(get, path = "/checks/{name}", tag = "checks", operation_id = "show_check", extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The check's name.")),
    responses((status = 200, description = "The check.", body = CheckDetails)))]
pub async fn show_check(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
) -> Result<Json<CheckDetails>, Problem> {
    let (mut check, pings) = checks::show(allowed.reads(), &name, SHOWN_PINGS).await?;
    hide_address(&mut check, allowed.caller());
    Ok(Json(CheckDetails { check, pings }))
}

/// Expects nothing of a check until it is resumed.
#[utoipa::path(post, path = "/checks/{name}/pause", tag = "checks", operation_id = "pause_check",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The check's name.")), request_body = ReasonBody,
    responses((status = 204, description = "It is paused.")))]
pub async fn pause_check(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    checks::act(&store, &name, CheckAction::Pause, actor, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Expects pings again, from now on.
#[utoipa::path(post, path = "/checks/{name}/resume", tag = "checks", operation_id = "resume_check",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The check's name.")), request_body = ReasonBody,
    responses((status = 204, description = "Pings are expected again.")))]
pub async fn resume_check(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    let (store, actor) = (allowed.writes(), allowed.actor());
    checks::act(&store, &name, CheckAction::Resume, actor, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
