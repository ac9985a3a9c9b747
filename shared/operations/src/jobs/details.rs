//! Jobs in lists and details.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::id::JobId;
use sexton_model::plan::Timetable;
use sexton_store::Store;
use sexton_store::executions::{self, Execution};
use sexton_store::gaps::{self, Gap};
use sexton_store::heartbeats::undelivered::{self, LastHeartbeat};
use sexton_store::jobs::{self, Job, JobFilter, LastExecution};
use sexton_store::operator::{self, OperatorAction};
use uuid::Uuid;

use crate::error::OperationError;
use crate::job_names;
use crate::paging::{Cursor, Page, PagedList};
use crate::secrets::{mask_actions, mask_executions};

/// Number of a job's past and future entries shown.
const MAX_SHOWN: i64 = 5;

/// A job in a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedJob {
    /// The row.
    #[serde(flatten)]
    pub job: Job,
    /// The execution that was claimed last.
    pub last_execution: Option<LastExecution>,
}

/// Returns a page of at most `limit` jobs, or deleted jobs, behind `cursor`: by name, deleted ones by
/// deletion, the latest first.
///
/// # Errors
///
/// [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    mut filter: JobFilter,
    deleted: bool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<ListedJob>, OperationError> {
    let jobs = if deleted {
        let (list, after) = (PagedList::DeletedJobs, Cursor::read(PagedList::DeletedJobs, cursor)?);
        let rows = jobs::list_deleted(store, &filter, after, limit + 1).await?;
        Page::from_rows(rows, limit, list, |job| (job.deleted_at, job.id))
    } else {
        filter.after = Cursor::read(PagedList::Jobs, cursor)?;
        let rows = jobs::list(store, &filter, limit + 1).await?;
        Page::from_rows(rows, limit, PagedList::Jobs, |job| job.name.clone())
    };
    let ids: Vec<_> = jobs.items.iter().map(|job| job.id).collect();
    let last = jobs::last_executions(store, &ids).await?;
    let mut last: HashMap<Uuid, _> = last.into_iter().map(|last| (last.job_id, last)).collect();
    Ok(jobs.map(|job| ListedJob { last_execution: last.remove(&job.id), job }))
}

/// A job, with its recent past and near future.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDetails {
    /// The row.
    #[serde(flatten)]
    pub job: Job,
    /// Its next firings; empty if it is paused or never fires again by itself.
    pub next_firings: Vec<DateTime<Utc>>,
    /// Its last executions, their params masked.
    pub last_executions: Vec<Execution>,
    /// Its newest heartbeat.
    pub last_heartbeat: Option<LastHeartbeat>,
    /// The latest gaps.
    pub gaps: Vec<Gap>,
    /// Operators' latest actions on it, without enqueues.
    #[serde(rename = "operator_actions")]
    pub actions: Vec<OperatorAction>,
}

/// Returns the job of that name: the existing one, or else the one that was deleted last.
///
/// # Errors
///
/// [`crate::error::NotFound::Job`] with similar names.
pub async fn show(store: &Store, name: &str) -> Result<JobDetails, OperationError> {
    let job = job_names::find_including_deleted(store, name).await?;
    let filter = ExecutionFilter { job: Some(JobId::new(job.id)), ..ExecutionFilter::default() };
    let mut last_executions = executions::list(
        store,
        &filter,
        None,
        MAX_SHOWN,
        executions::MAX_BRIEFLY_WALKED_EXECUTIONS,
    )
    .await?
    .executions;
    mask_executions(&mut last_executions);
    let gaps = gaps::list_by_job(store, job.id, MAX_SHOWN).await?;
    let mut actions = operator::list_by_job(store, job.id, MAX_SHOWN).await?;
    mask_actions(&mut actions);
    let last_heartbeat = undelivered::last(store, job.id).await?;
    let next_firings = next_firings(&job);
    Ok(JobDetails { job, next_firings, last_executions, last_heartbeat, gaps, actions })
}

/// Returns the nominal times from the job's cursor on; empty if it never fires again by itself.
fn next_firings(job: &Job) -> Vec<DateTime<Utc>> {
    let timetable = job.spec().ok().and_then(|spec| Timetable::of(&spec).ok());
    let cursor = job.cursor().ok().flatten();
    let left = job
        .max_runs
        .map_or(MAX_SHOWN, |limit| i64::from(limit - job.runs_used).clamp(0, MAX_SHOWN));
    let mut at = cursor.map(|cursor| cursor.nominal);
    let firings = std::iter::from_fn(|| {
        let firing = at?;
        at = timetable.as_ref().and_then(|table| table.next_after(firing));
        Some(firing)
    });
    firings.take(left as usize).collect()
}
