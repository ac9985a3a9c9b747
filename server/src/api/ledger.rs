//! The ledger: what became of each firing.

use axum::{Extension, Json};
use serde::Deserialize;
use sexton_model::zone::Zone;
use sexton_operations::instants::TimeRangeRequest;
use sexton_operations::job_names;
use sexton_operations::ledger::execution::{ExplainedExecution, explain_execution};
use sexton_operations::ledger::{Answer, FiringRequest, explain};
use sexton_store::status;
use utoipa::IntoParams;
use uuid::Uuid;

use super::extract::{Path, Query};
use super::paging::{NextPage, next_page};
use super::{PageSize, problem_of_parameter};
use crate::access::{Allowed, Viewer};
use crate::problem::Problem;

/// Which firings to explain: one, or those of a range.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainFirings {
    /// The firing at this instant: in RFC 3339, or by the clocks of `zone`, such as `2026-01-31T08:00`.
    at: Option<String>,
    /// Or the firings at or after this instant, or age such as `36h`.
    since: Option<String>,
    /// Only firings before this; now if absent.
    until: Option<String>,
    /// The zone of times without an offset; the job's if absent.
    zone: Option<String>,
    /// Firings of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Explains firings of a job: what ran, what did not, and why; a single one with its timeline.
#[utoipa::path(get, path = "/jobs/{name}/firings", tag = "jobs", operation_id = "explain_firings", extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The job's name; also that of a deleted one."), ExplainFirings),
    responses((status = 200, description = "The firings, the oldest first.", body = Answer)))]
pub async fn firings(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<ExplainFirings>,
) -> Result<(Option<Extension<NextPage>>, Json<Answer>), Problem> {
    let store = allowed.reads();
    let zone = query.zone.as_deref().map(Zone::parse).transpose();
    let zone = zone.map_err(|error| problem_of_parameter("zone", &error.to_string()))?;
    let job = job_names::find_including_deleted(store, &name).await?;
    let request = FiringRequest {
        at: query.at.as_deref(),
        range: TimeRangeRequest { since: query.since.as_deref(), until: query.until.as_deref() },
        cursor: query.cursor.as_deref(),
        zone,
        limit: usize::try_from(query.limit.get()).unwrap_or(usize::MAX),
    };
    let selector = request.read(&job, status::clock(store).await?)?;
    let answer = explain(store, &job, selector, None).await?;
    Ok((next_page(answer.next_cursor.as_ref()), Json(answer)))
}

/// Explains an execution: what it waits for, or what became of it, with its timeline.
#[utoipa::path(get, path = "/executions/{id}/explain", tag = "executions", operation_id = "explain_execution",
    extensions(("x-role" = json!("viewer"))),
    params(("id" = Uuid, Path, description = "The execution's id.")),
    responses((status = 200, description = "Why it is as it is.", body = ExplainedExecution)))]
pub async fn execution(
    allowed: Allowed<Viewer>,
    Path(id): Path<Uuid>,
) -> Result<Json<ExplainedExecution>, Problem> {
    let store = allowed.reads();
    let now = status::clock(store).await?;
    Ok(Json(explain_execution(store, &id.to_string(), now).await?))
}
