//! Late firings, and those that are set aside after a jump of the database's time.

use axum::Json;
use serde::Deserialize;
use sexton_operations::jobs::catch_up::{
    self, CatchUpPreview, check_names, count_held, preview as preview_firings,
};
use sexton_store::catch_up::{HoldDecision, SettledHold};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Query};
use super::{problem_of_field, problem_of_parameter};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Maximum number of jobs that a request names.
const MAX_NAMES: usize = 1_000;

/// Whose late firings to show.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ShowCatchUp {
    /// Only of this job; all if absent. May be repeated.
    #[param(explode)]
    job: Vec<String>,
}

/// Shows which firings are late or set aside, and what would become of them under their jobs' policies.
#[utoipa::path(get, path = "/catch-up", tag = "jobs", operation_id = "show_catch_up", extensions(("x-role" = json!("viewer"))),
    params(ShowCatchUp),
    responses((status = 200, description = "The late firings.", body = CatchUpPreview)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Query(ShowCatchUp { job }): Query<ShowCatchUp>,
) -> Result<Json<CatchUpPreview>, Problem> {
    if job.len() > MAX_NAMES {
        return Err(problem_of_parameter("job", "is repeated more than 1,000 times"));
    }
    let store = allowed.reads();
    check_names(store, &job).await?;
    let names = Some(&job[..]).filter(|names| !names.is_empty());
    Ok(Json(preview_firings(store, names).await?))
}

/// What becomes of firings that are set aside.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpDecision {
    /// The jobs' misfire policies judge them.
    Release,
    /// They do not run.
    Discard,
}

/// A decision about firings that are set aside.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideCatchUp {
    /// The decision.
    decision: CatchUpDecision,
    /// Only for these jobs; for all, and the hold ends, if absent or empty.
    #[serde(default)]
    #[schema(max_items = 1000)]
    jobs: Vec<String>,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
}

/// Releases or gives up the firings that are set aside.
#[utoipa::path(post, path = "/catch-up", tag = "jobs", operation_id = "decide_catch_up", extensions(("x-role" = json!("operator"))),
    request_body = DecideCatchUp,
    responses((status = 200, description = "What became of them. Those of jobs in `unreadable` stay set aside.", body = SettledHold)))]
pub async fn decide(
    allowed: Allowed<Operator>,
    Body(DecideCatchUp { decision, jobs, reason }): Body<DecideCatchUp>,
) -> Result<Json<SettledHold>, Problem> {
    if jobs.len() > MAX_NAMES {
        return Err(problem_of_field("/jobs", "has more than 1,000 names"));
    }
    let store = allowed.writes();
    check_names(&store, &jobs).await?;
    let names = Some(&jobs[..]).filter(|names| !names.is_empty());
    count_held(&store, names).await?;
    let decision = match decision {
        CatchUpDecision::Release => HoldDecision::Release,
        CatchUpDecision::Discard => HoldDecision::Discard,
    };
    let by = (allowed.actor(), reason.as_deref());
    Ok(Json(catch_up::settle(&store, decision, names, by).await?))
}
