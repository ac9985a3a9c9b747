//! Groups of failures.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_model::failures::{GroupDecision, GroupState};
use sexton_operations::groups::{self, GroupWithTrend, Remark};
use sexton_operations::job_names;
use sexton_operations::paging::Page;
use sexton_store::failures::{GroupFilter, GroupOrder};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use super::paging::Paged;
use super::{PageSize, problem_of_field};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Which groups to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListGroups {
    /// Only groups with failed executions of this job.
    job: Option<String>,
    /// Only groups in this state.
    state: Option<GroupState>,
    /// Also groups of which no failed execution is left.
    all: bool,
    /// Their order.
    #[param(inline)]
    sort: GroupOrder,
    /// Groups of a page.
    #[param(inline)]
    limit: PageSize,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists groups of failures with their counts, and their trends over 24 hours.
#[utoipa::path(get, path = "/failure-groups", tag = "failures", operation_id = "list_failure_groups",
    extensions(("x-role" = json!("viewer"))), params(ListGroups),
    responses((status = 200, description = "A page of groups.", body = Page<GroupWithTrend>)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListGroups>,
) -> Result<Paged<GroupWithTrend>, Problem> {
    let ListGroups { job, state, all, sort, limit, cursor } = query;
    let store = allowed.reads();
    let job = job_names::find_optional_id(store, job.as_deref()).await?;
    let filter = GroupFilter { job, state, fingerprint: None, empty: all };
    Ok(Paged(groups::list(store, &filter, sort, cursor.as_deref(), limit.get(), None).await?))
}

/// Shows a group of failures.
#[utoipa::path(get, path = "/failure-groups/{fingerprint}", tag = "failures", operation_id = "show_failure_group",
    extensions(("x-role" = json!("viewer"))),
    params(("fingerprint" = String, Path, description = "The group's fingerprint, or a unique beginning.")),
    responses((status = 200, description = "The group.", body = GroupWithTrend)))]
pub async fn show(
    allowed: Allowed<Viewer>,
    Path(fingerprint): Path<String>,
) -> Result<Json<GroupWithTrend>, Problem> {
    Ok(Json(groups::show(allowed.reads(), &fingerprint).await?))
}

/// A note or a decision about a group; one of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemarkGroup {
    /// The decision.
    state: Option<GroupDecision>,
    /// The reason of the decision, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    reason: Option<String>,
    /// A note for the next reader; an empty text removes it.
    note: Option<String>,
}

/// A group after a remark.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemarkedGroup {
    /// Its fingerprint.
    fingerprint: String,
    /// The decision about it.
    state: GroupDecision,
    /// Its note.
    note: Option<String>,
}

/// Writes a note or a decision about a group of failures.
#[utoipa::path(post, path = "/failure-groups/{fingerprint}/remark", tag = "failures", operation_id = "remark_failure_group",
    extensions(("x-role" = json!("operator"))),
    params(("fingerprint" = String, Path, description = "The group's fingerprint, or a unique beginning.")),
    request_body = RemarkGroup,
    responses((status = 200, description = "The group.", body = RemarkedGroup)))]
pub async fn remark(
    allowed: Allowed<Operator>,
    Path(fingerprint): Path<String>,
    Body(request): Body<RemarkGroup>,
) -> Result<Json<RemarkedGroup>, Problem> {
    let RemarkGroup { state, reason, note } = &request;
    let remark = match (state, note) {
        (Some(state), None) => Remark::Decide(*state, reason.as_deref()),
        (None, Some(_)) if reason.is_some() => {
            return Err(problem_of_field("/reason", "goes with state; a note speaks for itself"));
        }
        (None, Some(note)) => Remark::Note(note),
        _ => return Err(problem_of_field("/state", "send either state or note")),
    };
    let store = allowed.writes();
    let (fingerprint, status) =
        groups::remark(&store, &fingerprint, remark, allowed.actor()).await?;
    Ok(Json(RemarkedGroup { fingerprint, state: status.decision, note: status.note }))
}
