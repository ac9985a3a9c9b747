//! Incidents.

use std::time::Duration;

use axum::Json;
use serde::Deserialize;
use sexton_model::access::Role;
use sexton_model::incident::{Severity, SubjectKind};
use sexton_operations::incidents::{self, IncidentDetails, IncidentRequest};
use sexton_operations::paging::Page;
use sexton_store::incidents::{Incident, IncidentFilter};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{PageSize, ReasonBody};
use crate::access::{Allowed, Caller, Operator, Viewer};
use crate::problem::Problem;

/// Which incidents to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListIncidents {
    /// Also resolved incidents.
    all: bool,
    /// Only incidents of this severity.
    #[param(inline)]
    severity: Option<Severity>,
    /// Only incidents about subjects of this kind.
    #[param(inline)]
    kind: Option<SubjectKind>,
    /// Only incidents of subjects whose name contains this text.
    contains: Option<String>,
    /// Incidents of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists open incidents, the newest first.
#[utoipa::path(get, path = "/incidents", tag = "incidents", operation_id = "list_incidents", extensions(("x-role" = json!("viewer"))),
    params(ListIncidents),
    responses((status = 200, description = "A page of incidents.", body = Page<Incident>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListIncidents>,
) -> Result<Paged<Incident>, Problem> {
    let ListIncidents { all, severity, kind, contains, limit, cursor } = query;
    let filter = IncidentFilter {
        with_resolved: all,
        severity,
        subject_kind: kind,
        containing: contains,
        before: None,
    };
    let found = incidents::list(allowed.reads(), filter, cursor.as_deref(), limit.get()).await;
    let mut page = found?;
    page.items.iter_mut().for_each(|incident| hide_address(incident, allowed.caller()));
    Ok(Paged(page))
}

/// The subject of a check is the address of its pings, by which viewers may not report: they see its name there.
fn hide_address(incident: &mut Incident, caller: &Caller) {
    if incident.subject_kind == SubjectKind::Check.as_str() && caller.role < Role::Operator {
        incident.subject.clone_from(&incident.name);
    }
}

/// Shows an incident with its timeline.
#[utoipa::path(get, path = "/incidents/{id}", tag = "incidents", operation_id = "show_incident",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = Uuid, Path, description = "The incident's id.")),
    responses((status = 200, description = "The incident.", body = IncidentDetails)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(id): Path<Uuid>,
) -> Result<Json<IncidentDetails>, Problem> {
    let store = allowed.reads();
    let mut incident = incidents::find(store, &id.to_string()).await?;
    hide_address(&mut incident, allowed.caller());
    Ok(Json(incidents::details(store, incident).await?))
}

async fn act(
    allowed: &Allowed<Operator>,
    id: Uuid,
    request: IncidentRequest,
    reason: Option<&str>,
) -> Result<Json<Incident>, Problem> {
    let store = allowed.writes();
    let acted = incidents::act(&store, id, request, allowed.actor(), reason, None).await;
    acted.map(Json).map_err(|error| Problem::from(error).in_body(&[("for", "for_s")]))
}

/// Takes an incident on: no reminders and no escalation any more.
#[utoipa::path(post, path = "/incidents/{id}/acknowledge", tag = "incidents", operation_id = "acknowledge_incident",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The incident's id.")), request_body = ReasonBody,
    responses((status = 200, description = "The incident.", body = Incident)))]
pub async fn acknowledge(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<Incident>, Problem> {
    act(&allowed, id, IncidentRequest::Acknowledge, reason.as_deref()).await
}

/// A silence.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceIncident {
    /// For how long, in seconds, at most 366 days.
    #[schema(minimum = 1, maximum = 31_622_400)]
    for_s: u64,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::required_reason")]
    reason: String,
}

/// Sends nothing about an incident, nor about a further one of its subject, for some time.
#[utoipa::path(post, path = "/incidents/{id}/silence", tag = "incidents", operation_id = "silence_incident",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The incident's id.")), request_body = SilenceIncident,
    responses((status = 200, description = "The incident.", body = Incident)))]
pub async fn silence(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(SilenceIncident { for_s, reason }): Body<SilenceIncident>,
) -> Result<Json<Incident>, Problem> {
    let request = IncidentRequest::Silence(Duration::from_secs(for_s));
    act(&allowed, id, request, Some(&reason)).await
}

/// Ends a silence.
#[utoipa::path(post, path = "/incidents/{id}/unsilence", tag = "incidents", operation_id = "unsilence_incident",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The incident's id.")), request_body = ReasonBody,
    responses((status = 200, description = "The incident.", body = Incident)))]
pub async fn unsilence(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<Incident>, Problem> {
    act(&allowed, id, IncidentRequest::Unsilence, reason.as_deref()).await
}

/// Ends an incident; the next violation opens a new one.
#[utoipa::path(post, path = "/incidents/{id}/resolve", tag = "incidents", operation_id = "resolve_incident",
    extensions(("x-role" = json!("operator"))),
    params(("id" = Uuid, Path, description = "The incident's id.")), request_body = ReasonBody,
    responses((status = 200, description = "The incident.", body = Incident)))]
pub async fn resolve(
    allowed: Allowed<Operator>,
    Path(id): Path<Uuid>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<Incident>, Problem> {
    act(&allowed, id, IncidentRequest::Resolve, reason.as_deref()).await
}
