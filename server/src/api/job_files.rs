//! Changes jobs: applies files, and deletes.

use axum::Json;
use serde::{Deserialize, Serialize};
use sexton_operations::error::InvalidRequest;
use sexton_operations::jobs::apply::{AppliedJobs, ApplyOptions, apply as apply_files};
use sexton_operations::jobs::delete::delete as delete_job;
use sexton_operations::jobs::files::JobsFiles;
use sexton_operations::params_schemas::validate_jobs;
use sexton_store::jobs::Delete;
use sexton_store::status;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Body, Path, Query};
use super::preconditions::{IfMatch, OptionalIfMatch};
use crate::access::{Allowed, Editor};
use crate::problem::Problem;

/// The name of the file in problems unless the request says it.
const FILE_NAME: &str = "jobs.toml";

/// A jobs file to apply.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyJobs {
    /// The file, in TOML.
    text: String,
    /// Its name, for problems; at most 255 bytes.
    #[serde(default, deserialize_with = "super::file_name")]
    file: Option<String>,
    /// Only say what would change.
    #[serde(default)]
    dry_run: bool,
    /// Pause active jobs that are not in the file.
    #[serde(default)]
    prune: bool,
    /// Apply nothing if params do not fit what workers say of their tasks, or a cron expression has two meanings.
    #[serde(default)]
    strict: bool,
}

/// Makes the jobs those of a file: all of them or, on any problem, none.
#[utoipa::path(post, path = "/jobs:apply", tag = "jobs", operation_id = "apply_jobs", extensions(("x-role" = json!("editor"))),
    request_body = ApplyJobs,
    responses((status = 200, description = "What changed, or would.", body = AppliedJobs)))]
pub async fn apply(
    allowed: Allowed<Editor>,
    Body(request): Body<ApplyJobs>,
) -> Result<Json<AppliedJobs>, Problem> {
    let ApplyJobs { text, file, dry_run, prune, strict } = request;
    let files = JobsFiles::read(&[(file.unwrap_or_else(|| FILE_NAME.to_owned()), text)])?;
    let store = allowed.writes();
    let mismatches = validate_jobs(&store, &files.specs).await?;
    let ambiguous = files.ambiguous_days(status::clock(&store).await?);
    if strict && (!mismatches.is_empty() || !ambiguous.is_empty()) {
        let mismatches = mismatches.iter().map(|mismatch| files.mismatch_problem(mismatch));
        let ambiguous = ambiguous.iter().map(|one| files.ambiguity_problem(one));
        return Err(InvalidRequest::JobsFile(mismatches.chain(ambiguous).collect()).into());
    }
    let options = ApplyOptions { dry_run, prune };
    let applied = apply_files(&store, &files, options, allowed.actor()).await?;
    Ok(Json(AppliedJobs::new(applied, mismatches, ambiguous, dry_run)))
}

/// How to delete a job.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeleteJob {
    /// Reason, recorded in the audit.
    #[serde(deserialize_with = "super::required_reason")]
    reason: String,
    /// Cancel the executions under way; otherwise they prevent the deletion.
    #[serde(default)]
    cancel: bool,
    /// Only say what it would do.
    #[serde(default)]
    dry_run: bool,
}

/// A job that was deleted, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedJob {
    /// Its id, which its executions keep.
    id: Uuid,
    /// Its name, which is free.
    name: String,
    /// Whether nothing was written.
    dry_run: bool,
    /// Executions that waited, and are cancelled.
    waiting: i64,
    /// Executions that run, and whose workers end them.
    running: i64,
    /// Failed executions, which stay.
    failed: i64,
    /// Firings that were due and not claimed.
    passed: u32,
}

/// Deletes a job: it never fires again, and its executions stay.
///
/// Without `dry_run` it needs `If-Match`: if somebody has changed the job since the sender looked, it is not deleted.
#[utoipa::path(delete, path = "/jobs/{name}", tag = "jobs", operation_id = "delete_job", extensions(("x-role" = json!("editor"))),
    params(("name" = String, Path, description = "The job's name."), OptionalIfMatch, DeleteJob),
    responses((status = 200, description = "It is deleted, or would be.", body = DeletedJob)))]
pub async fn delete(
    allowed: Allowed<Editor>,
    Path(name): Path<String>,
    seen: Option<IfMatch>,
    Query(DeleteJob { reason, cancel, dry_run }): Query<DeleteJob>,
) -> Result<Json<DeletedJob>, Problem> {
    if seen.is_none() && !dry_run {
        return Err(IfMatch::missing());
    }
    let revision = seen.map(|seen| seen.revision()).transpose()?;
    let request = Delete { name: &name, cancel, dry_run, revision };
    let deleted = delete_job(&allowed.writes(), request, allowed.actor(), &reason).await?;
    let under_way = deleted.under_way;
    Ok(Json(DeletedJob {
        id: deleted.id,
        name,
        dry_run,
        waiting: under_way.waiting,
        running: under_way.running,
        failed: under_way.failed,
        passed: deleted.passed,
    }))
}
