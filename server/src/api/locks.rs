//! Locks of jobs and services, and the registry of their keys.

use axum::Json;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sexton_operations::lock_keys;
use sexton_operations::locks::{self, LockList};
use sexton_store::lock_keys::AssignedRange;
use sexton_store::locks::{LockFilter, LockKey, LockRow};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use super::{PageSize, problem_of_parameter};
use crate::access::{Allowed, Operator, Viewer};
use crate::problem::Problem;

/// Which locks to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListLocks {
    /// Only the advisory lock of this key: a number, or a pair such as `7,1`.
    key: Option<String>,
    /// Only the lock row of this name, also if it is free.
    row: Option<String>,
    /// Only locks of jobs, sessions, rows and holders whose name begins with this.
    service: Option<String>,
    /// Only advisory locks that a session waits for, with their holders.
    waiting: bool,
    /// Also the locks of Sexton itself, and rows that are free.
    all: bool,
    /// Locks of each kind.
    #[param(inline)]
    limit: PageSize,
}

/// Lists locks that are held or waited for, each with its holder, its job and the attempt that took it.
#[utoipa::path(get, path = "/locks", tag = "locks", operation_id = "list_locks", extensions(("x-role" = json!("viewer"))),
    params(ListLocks),
    responses((status = 200, description = "The locks of both kinds.", body = LockList)))]
pub async fn list(
    allowed: Allowed<Viewer>,
    Query(query): Query<ListLocks>,
) -> Result<Json<LockList>, Problem> {
    let ListLocks { key, row, service, waiting, all, limit } = query;
    if key.is_some() && row.is_some() {
        return Err(problem_of_parameter("row", "goes without key: a lock has one of them"));
    }
    let key = key.as_deref().map(str::parse::<LockKey>).transpose();
    let key = key.map_err(|error| problem_of_parameter("key", &error.to_string()))?;
    let filter = LockFilter { all, key, row, service, waiting, of_jobs: false };
    Ok(Json(locks::list(allowed.reads(), &filter, limit.get()).await?))
}

/// How to free a lock row.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakLock {
    /// Only if it was taken at this instant: `locked_at` of the list.
    as_of: Option<DateTime<Utc>>,
    /// Even if the attempt that took it runs.
    #[serde(default)]
    force: bool,
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::required_reason")]
    reason: String,
}

/// A lock row that was freed.
#[derive(Debug, Serialize, ToSchema)]
pub struct BrokenLock {
    /// Its name.
    name: String,
    /// The holder that it had.
    locked_by: String,
    /// Since when.
    locked_at: DateTime<Utc>,
    /// When it is free: now.
    lock_until: DateTime<Utc>,
}

/// Frees a lock row whose holder is gone. A holder that lives finds out when it next extends the lock.
#[utoipa::path(post, path = "/locks/{name}/break", tag = "locks", operation_id = "break_lock", extensions(("x-role" = json!("operator"))),
    params(("name" = String, Path, description = "The row's name.")), request_body = BreakLock,
    responses((status = 200, description = "It is free.", body = BrokenLock)))]
pub async fn break_row(
    allowed: Allowed<Operator>,
    Path(name): Path<String>,
    Body(BreakLock { as_of, force, reason }): Body<BreakLock>,
) -> Result<Json<BrokenLock>, Problem> {
    let store = allowed.writes();
    let seen = locks::find_to_break(&store, &name, as_of, force).await?;
    let broken = locks::break_row(&store, &seen, force, allowed.actor(), &reason).await?;
    let LockRow { name, locked_by, locked_at, .. } = broken.before;
    Ok(Json(BrokenLock { name, locked_by, locked_at, lock_until: broken.lock_until }))
}

/// Which ranges to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct ListRanges {
    /// Only of services whose name contains this text, in any case.
    contains: Option<String>,
}

/// Ranges of lock keys.
#[derive(Debug, Serialize, ToSchema)]
pub struct LockKeyRanges {
    /// By their numbers.
    ranges: Vec<AssignedRange>,
}

/// Lists which service has which keys of advisory locks, and how many of them its jobs use.
#[utoipa::path(get, path = "/lock-keys", tag = "locks", operation_id = "list_lock_keys", extensions(("x-role" = json!("viewer"))),
    params(ListRanges),
    responses((status = 200, description = "The ranges.", body = LockKeyRanges)))]
pub async fn list_ranges(
    allowed: Allowed<Viewer>,
    Query(ListRanges { contains }): Query<ListRanges>,
) -> Result<Json<LockKeyRanges>, Problem> {
    let ranges = lock_keys::list(allowed.reads(), contains.as_deref()).await?;
    Ok(Json(LockKeyRanges { ranges }))
}
