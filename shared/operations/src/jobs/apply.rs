//! Makes the database's jobs match the files: all of them or, on any error, none.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sexton_model::cron::DayRule;
use sexton_model::failures::mask_secrets;
use sexton_model::id::JobId;
use sexton_model::jobs_file::Problem;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, Applied, ApplyError};

pub use sexton_store::jobs::ExpectedJob;
use uuid::Uuid;

use super::files::{AmbiguousDays, JobsFiles};
use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::failed::masked::masked_places;
use crate::job_names;
use crate::params_schemas::JobMismatch;

/// The most jobs with two meanings that an answer names.
const MAX_AMBIGUOUS: usize = 1_000;

/// The options of an apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplyOptions {
    /// Only report the changes.
    pub dry_run: bool,
    /// Pause active jobs that are not in the files.
    pub prune: bool,
}

/// Applies files in one transaction, with its record in the audit.
///
/// # Errors
///
/// [`InvalidRequest::JobsFile`] with the places of jobs that would never fire or may not have their lock key; nothing was
/// applied.
pub async fn apply(
    store: &Store,
    files: &JobsFiles,
    options: ApplyOptions,
    actor: &Actor,
) -> Result<Applied, OperationError> {
    write(store, files, (options, None), actor).await
}

/// Applies a single job as [`apply()`] does, if it is as the operator expects.
///
/// # Errors
///
/// As [`apply()`]; [`Conflict::JobExists`], [`Conflict::JobChanged`], [`crate::error::NotFound::Job`].
pub async fn apply_expecting(
    store: &Store,
    files: &JobsFiles,
    expected: ExpectedJob,
    dry_run: bool,
    actor: &Actor,
) -> Result<Applied, OperationError> {
    check_masks(store, files, expected).await?;
    let options = ApplyOptions { dry_run, prune: false };
    match write(store, files, (options, Some(expected)), actor).await {
        Err(OperationError::NotFound(NotFound::Job { name, .. })) => {
            Err(job_names::missing(store, &name).await)
        }
        other => other,
    }
}

/// Refuses masks of secrets: a definition that was read, changed and sent back would overwrite the secrets with them.
async fn check_masks(
    store: &Store,
    files: &JobsFiles,
    expected: ExpectedJob,
) -> Result<(), OperationError> {
    for spec in &files.specs {
        let known = match expected {
            ExpectedJob::Absent => Value::Null,
            ExpectedJob::Revision(_) => json!(job_names::find(store, &spec.name).await?),
        };
        let mut written = spec.to_json();
        let masked_fields = ["params", "flow", "heartbeat"];
        let written: Map<String, Value> =
            masked_fields.iter().map(|&name| (name.to_owned(), written[name].take())).collect();
        let places = masked_places(&known, &Value::Object(written)).into_iter();
        let problems = places.map(|place| {
            files.locate(Problem {
                file: String::new(),
                line: None,
                job: Some(spec.name.clone()),
                field: Some(place.trim_start_matches('/').replace('/', ".")),
                message: "is the mask of a secret: write the secret itself".to_owned(),
                unlisted: 0,
            })
        });
        let problems: Vec<_> = problems.collect();
        if !problems.is_empty() {
            return Err(InvalidRequest::JobsFile(problems).into());
        }
    }
    Ok(())
}

async fn write(
    store: &Store,
    files: &JobsFiles,
    (options, expected): (ApplyOptions, Option<ExpectedJob>),
    actor: &Actor,
) -> Result<Applied, OperationError> {
    let fresh_id = || JobId::new(Uuid::now_v7());
    let ApplyOptions { dry_run, prune } = options;
    let request = jobs::Apply { specs: &files.specs, actor: &actor.name, dry_run, prune };
    let applied = jobs::apply_expecting(store, request, expected, fresh_id, None).await;
    let applied = applied.map_err(|error| match error {
        ApplyError::Exists(name) => Conflict::JobExists(name).into(),
        ApplyError::Missing(name) => NotFound::Job { name, similar: Vec::new() }.into(),
        ApplyError::Changed { name, revision } => Conflict::JobChanged { name, revision }.into(),
        ApplyError::Problems(problems) => {
            let located = problems.into_iter().map(|problem| files.locate(problem));
            let mut located: Vec<_> = located.collect();
            located.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
            InvalidRequest::JobsFile(located).into()
        }
        ApplyError::TooMany(_) => {
            InvalidRequest::Other(format!("{error}; apply them in several calls")).into()
        }
        ApplyError::MissingMembers(_) | ApplyError::Templates(_) => {
            InvalidRequest::Other(error.to_string()).into()
        }
        ApplyError::Locked => OperationError::Failed(error.to_string()),
        ApplyError::Store(error) => error.into(),
    })?;
    let changed = [applied.created.len(), applied.changed.len(), applied.paused.len()];
    if !dry_run && changed.iter().sum::<usize>() > 0 {
        fault::point("console.applied");
    }
    Ok(applied)
}

/// Masks what looks like a secret in the value of a field.
pub(super) fn mask_field(name: &str, value: Value) -> Value {
    let mut field = json!({});
    field[name] = value;
    mask_secrets(&field)[name].take()
}

/// What an apply changed, or would change, as a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppliedJobs {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Names of new jobs.
    pub created: Vec<String>,
    /// Jobs that differed.
    pub changed: Vec<ChangedJob>,
    /// Names of jobs without changes.
    pub unchanged: Vec<String>,
    /// Names of jobs that are not in the files, and were paused.
    pub paused: Vec<String>,
    /// Names of applied jobs that are paused, so that they do not fire.
    pub still_paused: Vec<String>,
    /// Names of jobs that fire although their file says `paused`: they existed before, or somebody has resumed them.
    pub not_paused: Vec<String>,
    /// Params that do not fit what workers at work say of their tasks.
    pub schema_mismatches: Vec<JobMismatch>,
    /// Jobs whose cron expression has two meanings.
    pub ambiguous_days: Vec<AmbiguousJob>,
}

/// A job that differed.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangedJob {
    /// Its name.
    pub name: String,
    /// The old and the new value of each changed field.
    pub changes: BTreeMap<&'static str, ChangedField>,
}

/// A field that differed.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangedField {
    /// The old value.
    pub from: Value,
    /// The new value.
    pub to: Value,
}

/// A job whose cron expression has two meanings, each with its next firings.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AmbiguousJob {
    /// Its name.
    pub job: String,
    /// The meaning that it has.
    pub in_force: DayRule,
    /// If both day fields must select a day.
    pub both: Vec<DateTime<Utc>>,
    /// If either suffices.
    pub either: Vec<DateTime<Utc>>,
}

impl AppliedJobs {
    /// Makes the document.
    pub fn new(
        applied: Applied,
        schema_mismatches: Vec<JobMismatch>,
        ambiguous: Vec<AmbiguousDays>,
        dry_run: bool,
    ) -> Self {
        let Applied { created, changed, unchanged, paused, still_paused, not_paused } = applied;
        let changed = changed.into_iter().map(|job| {
            let changes = job.changes.into_iter();
            let changes = changes.map(|change| {
                let masked = |value| mask_field(change.field, value);
                (change.field, ChangedField { from: masked(change.from), to: masked(change.to) })
            });
            ChangedJob { name: job.name, changes: changes.collect() }
        });
        let ambiguous_days = ambiguous.into_iter().take(MAX_AMBIGUOUS).map(|one| AmbiguousJob {
            job: one.job,
            in_force: one.meanings.in_force,
            both: one.meanings.both,
            either: one.meanings.either,
        });
        Self {
            dry_run,
            created,
            changed: changed.collect(),
            unchanged,
            paused,
            still_paused,
            not_paused,
            schema_mismatches,
            ambiguous_days: ambiguous_days.collect(),
        }
    }
}
