//! Creates and replaces single jobs.

use axum::Json;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sexton_model::jobs_file::Problem as FieldProblem;
use sexton_operations::error::{InvalidRequest, OperationError};
use sexton_operations::jobs::apply::{AppliedJobs, ExpectedJob, apply_expecting};
use sexton_operations::jobs::definitions::read_definition;
use sexton_operations::jobs::files::JobsFiles;
use sexton_operations::params_schemas::validate_jobs;
use sexton_store::status;
use utoipa::{IntoParams, ToSchema};

use super::BASE_PATH;
use super::extract::{Body, Path, Query};
use super::preconditions::{IfMatch, etag};
use crate::access::{Allowed, Editor};
use crate::problem::{Problem, ProblemPlace};

/// A job, by the fields that a `[[job]]` of a jobs file has, with the same names and meanings.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object, example = json!({
    "name": "billing.invoices", "schedule": "0 8 1 * *", "timezone": "Europe/Berlin", "task": "report", "params": {"report": "invoices"}
}))]
pub struct JobDefinition(Map<String, Value>);

/// How to write a job.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct WriteJob {
    /// Only say what would change.
    dry_run: bool,
    /// Write nothing if the params do not fit what workers say of the task, or the cron expression has two meanings.
    strict: bool,
}

/// An answer with the job's revision, and where it is.
type WrittenJob = (StatusCode, [(HeaderName, HeaderValue); 2], Json<AppliedJobs>);

/// Creates a job with a cron expression, a period, one instant, or none of them.
///
/// A name that another job has is a conflict. The `ETag` of the answer is what a change of the job needs.
#[utoipa::path(post, path = "/jobs", tag = "jobs", operation_id = "create_job", extensions(("x-role" = json!("editor"))),
    params(WriteJob), request_body = JobDefinition,
    responses((status = 201, description = "It is created; with `dry_run` it would be.", body = AppliedJobs,
               headers(("ETag" = String, description = "The job's revision, for `If-Match`."),
                       ("Location" = String, description = "Where the job is.")))))]
pub async fn create(
    allowed: Allowed<Editor>,
    Query(options): Query<WriteJob>,
    Body(JobDefinition(fields)): Body<JobDefinition>,
) -> Result<WrittenJob, Problem> {
    let files = read_definition(&fields).map_err(problem_of_definition)?;
    write(&allowed, &files, ExpectedJob::Absent, options).await
}

/// Replaces the definition of a job: fields that are not sent get their defaults.
///
/// `If-Match` has the `ETag` that the sender has seen; if somebody has changed the job since, nothing is written.
#[utoipa::path(put, path = "/jobs/{name}", tag = "jobs", operation_id = "replace_job", extensions(("x-role" = json!("editor"))),
    params(("name" = String, Path, description = "The job's name."), IfMatch, WriteJob), request_body = JobDefinition,
    responses((status = 200, description = "What changed, or would.", body = AppliedJobs,
               headers(("ETag" = String, description = "The job's revision, for `If-Match`."),
                       ("Location" = String, description = "Where the job is.")))))]
pub async fn replace(
    allowed: Allowed<Editor>,
    Path(name): Path<String>,
    if_match: IfMatch,
    Query(options): Query<WriteJob>,
    Body(JobDefinition(mut fields)): Body<JobDefinition>,
) -> Result<WrittenJob, Problem> {
    let revision = if_match.revision()?;
    let named = fields.entry("name").or_insert_with(|| Value::from(name.as_str()));
    if named.as_str() != Some(name.as_str()) {
        let detail = "is another name than that in the path; a job keeps its name";
        return Err(Problem::invalid(ProblemPlace::at("/name", detail)));
    }
    let files = read_definition(&fields).map_err(problem_of_definition)?;
    let expected = ExpectedJob::Revision(revision);
    let (_, headers, answer) = write(&allowed, &files, expected, options).await?;
    Ok((StatusCode::OK, headers, answer))
}

/// Writes one job.
pub(super) async fn write(
    allowed: &Allowed<Editor>,
    files: &JobsFiles,
    expected: ExpectedJob,
    WriteJob { dry_run, strict }: WriteJob,
) -> Result<WrittenJob, Problem> {
    let store = allowed.writes();
    let mismatches = validate_jobs(&store, &files.specs).await?;
    let ambiguous = files.ambiguous_days(status::clock(&store).await?);
    if strict && (!mismatches.is_empty() || !ambiguous.is_empty()) {
        let params = mismatches.iter().map(|mismatch| {
            let inside = if mismatch.mismatch.at == "/" { "" } else { &mismatch.mismatch.at };
            ProblemPlace::at(format!("/params{inside}"), mismatch.describe())
        });
        let days = ambiguous
            .iter()
            .map(|one| ProblemPlace::at("/schedule", files.ambiguity_problem(one).message));
        return Err(Problem::several(params.chain(days).collect()));
    }
    let applied = apply_expecting(&store, files, expected, dry_run, allowed.actor()).await;
    let applied = applied.map_err(|error| match error {
        OperationError::Invalid(invalid) => problem_of_definition(invalid),
        other => other.into(),
    })?;
    let name = files.specs.first().map_or("", |spec| spec.name.as_str());
    // As it was written, and not read again: somebody else's change of this moment is none that the sender has seen.
    let revision = match expected {
        ExpectedJob::Absent => 1,
        ExpectedJob::Revision(seen) if dry_run || applied.changed.is_empty() => seen,
        ExpectedJob::Revision(seen) => seen + 1,
    };
    let place = format!("{}{BASE_PATH}/jobs/{name}", allowed.base_path());
    let place = HeaderValue::try_from(place);
    let place = place.unwrap_or(HeaderValue::from_static(BASE_PATH));
    let headers = [(ETAG, etag(revision)), (LOCATION, place)];
    let answer = AppliedJobs::new(applied, mismatches, ambiguous, dry_run);
    Ok((StatusCode::CREATED, headers, Json(answer)))
}

/// Names the fields of a definition as places in the body.
pub(super) fn problem_of_definition(invalid: InvalidRequest) -> Problem {
    match invalid {
        InvalidRequest::JobsFile(problems) => {
            Problem::several(problems.into_iter().map(place_of).collect())
        }
        other => other.into(),
    }
}

fn place_of(problem: FieldProblem) -> ProblemPlace {
    let field = problem.field.unwrap_or_default();
    let steps = field.split('.').filter(|step| !step.is_empty());
    let pointer = steps.map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
    ProblemPlace::at(pointer.collect::<String>(), problem.message)
}
