//! What will happen: the next firings of jobs, the effects of clock changes, and the policy sheet of a job.

use axum::Json;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, de};
use sexton_model::zone::Zone;
use sexton_operations::jobs::clock_changes::{self, ClockChangeEffects};
use sexton_operations::jobs::next_firings::{NextFirings, list_next};
use sexton_operations::jobs::policy::{self, PolicySheet};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Path, Query};
use super::{parameters, problem_of_parameter};
use crate::access::{Allowed, Viewer};
use crate::problem::Problem;

/// Firings unless the request says it.
const DEFAULT_COUNT: usize = 10;
const MAX_COUNT: usize = 1_000;
/// Maximum number of jobs that a request names.
const MAX_NAMES: usize = 1_000;

/// Number of firings: 1 to 1,000.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = i64, minimum = 1, maximum = 1000, default = 10)]
pub struct FiringCount(usize);

impl Default for FiringCount {
    fn default() -> Self {
        Self(DEFAULT_COUNT)
    }
}

impl<'de> Deserialize<'de> for FiringCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = usize::deserialize(deserializer)?;
        if (1..=MAX_COUNT).contains(&count) {
            return Ok(Self(count));
        }
        Err(de::Error::custom(format!("must be 1 to {MAX_COUNT}, not {count}")))
    }
}

/// Which firings to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListNext {
    /// Firings in all.
    #[param(inline)]
    count: FiringCount,
    /// Only firings after this instant, before the year 9001; those that are not planned yet if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
    /// The zone of `wall`; each job's own if absent.
    zone: Option<String>,
}

/// Which firings of which jobs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListNextOfJobs {
    /// Only of this job; all active ones if absent. May be repeated.
    #[param(explode)]
    name: Vec<String>,
    /// Firings in all.
    #[param(inline)]
    count: FiringCount,
    /// Only firings after this instant, before the year 9001; those that are not planned yet if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
    /// The zone of `wall`; each job's own if absent.
    zone: Option<String>,
}

fn read_zone(text: Option<&str>) -> Result<Option<Zone>, Problem> {
    let zone = text.map(Zone::parse).transpose();
    zone.map_err(|error| problem_of_parameter("zone", &error.to_string()))
}

/// Lists the next firings of a job.
#[utoipa::path(get, path = "/jobs/{name}/next", tag = "jobs", operation_id = "list_next_firings_of_job",
    extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The job's name."), ListNext),
    responses((status = 200, description = "The firings, the soonest first.", body = NextFirings)))]
pub async fn of_job(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
    Query(ListNext { count, from, zone }): Query<ListNext>,
) -> Result<Json<NextFirings>, Problem> {
    let zone = read_zone(zone.as_deref())?;
    Ok(Json(list_next(allowed.reads(), &[name], from, zone, count.0).await?))
}

/// Lists the next firings of many jobs.
///
/// Without `from` it reads few jobs, however many there are; with it at most 20,000, and `complete` says whether these are all.
#[utoipa::path(get, path = "/jobs:next", tag = "jobs", operation_id = "list_next_firings", extensions(("x-role" = json!("viewer"))),
    params(ListNextOfJobs),
    responses((status = 200, description = "The firings, the soonest first.", body = NextFirings)))]
pub async fn of_jobs(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListNextOfJobs>,
) -> Result<Json<NextFirings>, Problem> {
    let ListNextOfJobs { name, count, from, zone } = query;
    if name.len() > MAX_NAMES {
        return Err(problem_of_parameter("name", "is repeated more than 1,000 times"));
    }
    let zone = read_zone(zone.as_deref())?;
    Ok(Json(list_next(allowed.reads(), &name, from, zone, count.0).await?))
}

/// From when on clock changes are searched.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListClockChanges {
    /// When the two years begin, before the year 9001; now if absent.
    #[serde(default, deserialize_with = "parameters::from")]
    from: Option<DateTime<Utc>>,
}

/// Lists how the clock changes of the next two years affect the firings of a job, as `sexton jobs preview` does.
#[utoipa::path(get, path = "/jobs/{name}/clock-changes", tag = "jobs", operation_id = "list_clock_changes",
    extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The job's name."), ListClockChanges),
    responses((status = 200, description = "The effects, in the order of the changes.", body = ClockChangeEffects)))]
pub async fn clock_changes_of_job(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
    Query(ListClockChanges { from }): Query<ListClockChanges>,
) -> Result<Json<ClockChangeEffects>, Problem> {
    Ok(Json(clock_changes::of_job(allowed.reads(), name, from).await?))
}

/// Shows what holds for a job, in words: when it runs, what happens on failure, who is notified, and what is missing.
#[utoipa::path(get, path = "/jobs/{name}/policy", tag = "jobs", operation_id = "show_policy", extensions(("x-role" = json!("viewer"))),
    params(("name" = String, Path, description = "The job's name.")),
    responses((status = 200, description = "The sheet.", body = PolicySheet)))]
pub async fn show_policy(
    allowed: Allowed<Viewer>,
    Path(name): Path<String>,
) -> Result<Json<PolicySheet>, Problem> {
    Ok(Json(policy::read(allowed.reads(), &name).await?))
}
