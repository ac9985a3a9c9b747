//! Backfills: past firings that have no execution.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use sexton_model::rate::Rate;
use sexton_model::zone::Zone;
use sexton_operations::job_names;
use sexton_operations::jobs::backfill::{BackfillReport, BackfillRequest};
use sexton_store::approvals::ApprovalRequest;
use sexton_store::status;
use utoipa::ToSchema;

use super::approvals::answer;
use super::extract::{Body, Path};
use crate::access::{Allowed, Operator};
use crate::problem::{Problem, ProblemPlace};

/// A range of firings to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillJob {
    /// Firings at or after this: an instant in RFC 3339, by the clocks of `zone`, such as `2026-01-31T08:00`, or an age such as `36h`.
    since: String,
    /// Firings before this; now if absent.
    until: Option<String>,
    /// The zone of times without an offset; the job's if absent.
    zone: Option<String>,
    /// How many become due per time, such as `10/m`; all at once if absent.
    rate: Option<String>,
    /// Whether the executions may overlap, against the job's policy.
    #[serde(default)]
    allow_overlap: bool,
    /// Only count.
    #[serde(default)]
    dry_run: bool,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// Runs the past firings of a range that have no execution, by the schedule's own keys: none runs twice.
///
/// With `dry_run` it says what would run. Sent again after 503 without its `Idempotency-Key`, or with a new one, it goes on where it ended.
#[utoipa::path(post, path = "/jobs/{name}/backfills", tag = "jobs", operation_id = "backfill_job",
    extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The job's name.")), request_body = BackfillJob,
    responses((status = 200, description = "What runs, or would.", body = BackfillReport),
        (status = 202, description = "It waits for the approval of another person.", body = ApprovalRequest, headers(("Location", description = "Where to look at the request.")))))]
pub async fn backfill(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(request): Body<BackfillJob>,
) -> Result<Response, Problem> {
    let store = allowed.writes();
    let zone = request.zone.as_deref().map(Zone::parse).transpose();
    let rate = request.rate.as_deref().map(str::parse::<Rate>).transpose();
    let (zone, rate) = match (zone, rate) {
        (Ok(zone), Ok(rate)) => (zone, rate),
        (zone, rate) => {
            let zone = zone.err().map(|error| ProblemPlace::at("/zone", error.to_string()));
            let rate = rate.err().map(|error| ProblemPlace::at("/rate", error.to_string()));
            return Err(Problem::several([zone, rate].into_iter().flatten().collect()));
        }
    };
    let job = job_names::find(&store, &name).await?;
    let backfill = BackfillRequest {
        job: &name,
        since: &request.since,
        until: request.until.as_deref(),
        zone,
        rate,
        allow_overlap: request.allow_overlap,
        reason: request.reason.as_deref(),
    };
    let in_body = |error| Problem::from(error).in_body(&[]);
    let range =
        backfill.read(&job, status::clock(&store).await?).map_err(|error| in_body(error.into()))?;
    if request.dry_run {
        let preview = range.preview(&store, allowed.actor()).await.map_err(in_body)?;
        let approval = range.demand(&store, &preview).await?;
        let report = range.report(preview, true);
        return Ok(Json(BackfillReport { approval, ..report }).into_response());
    }
    let done = range.run(&store, allowed.actor()).await.map_err(in_body)?;
    let done = done.map(|done| Json(range.report(done, false)));
    Ok(answer(done, &allowed.base_path()))
}
