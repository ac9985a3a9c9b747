//! Firings that did not run, of one job or of all, and the reasons.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::plan::GapReason;
use sexton_store::Store;
use sexton_store::gap_list::{self, ListedGap};
use sexton_store::gaps::Gap;

use crate::error::{InvalidRequest, OperationError};
use crate::job_names;
use crate::ledger::describe_gap;
use crate::paging::{Cursor, Page, PagedList};

/// Consecutive firings of a job that did not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GapEntry {
    /// The job's name.
    pub job: String,
    /// Whether the job is deleted.
    pub is_deleted: bool,
    /// The row.
    #[serde(flatten)]
    pub gap: Gap,
    /// The reason, in a sentence.
    pub why_not: String,
}

/// A page of gaps.
#[derive(Clone, PartialEq, Debug)]
pub struct GapPage {
    /// Those of all jobs with the latest record first, those of one job with the latest firing first.
    pub page: Page<GapEntry>,
    /// Whether the page ended because it had looked at [`gap_list::MAX_WALKED_GAPS`] gaps; the next one looks further.
    pub is_cut_short: bool,
}

impl GapEntry {
    /// Makes the entry of a job's gap.
    pub fn new(job: String, is_deleted: bool, gap: Gap) -> Self {
        Self { why_not: describe_gap(&gap), job, is_deleted, gap }
    }
}

/// Returns a page of at most `limit` gaps behind `cursor`: of the job of that name or of all, with that reason or any.
///
/// # Errors
///
/// [`InvalidRequest`] for an unknown reason or a cursor of another list, [`crate::error::NotFound::Job`], and those of the database.
pub async fn list(
    store: &Store,
    job: Option<&str>,
    reason: Option<&str>,
    cursor: Option<&str>,
    limit: i64,
) -> Result<GapPage, OperationError> {
    if let Some(reason) = reason
        && GapReason::parse(reason).is_none()
    {
        let known: Vec<&str> = GapReason::ALL.iter().map(|one| one.as_str()).collect();
        let problem = format!("{reason:?} is no reason; write one of {}", known.join(", "));
        return Err(InvalidRequest::field("reason", problem).into());
    }
    let Some(name) = job else { return list_all(store, reason, cursor, limit).await };
    let job = job_names::find_including_deleted(store, name).await?;
    let after: Option<(DateTime<Utc>, i64)> = Cursor::read(PagedList::GapsOfJob, cursor)?;
    let rows = gap_list::list_of_job(store, job.id, reason, after, limit + 1).await?;
    let is_deleted = job.deleted_at.is_some();
    let page = Page::from_rows(rows, limit, PagedList::GapsOfJob, |gap| (gap.first_firing, gap.id));
    let page = page.map(|gap| GapEntry::new(job.name.clone(), is_deleted, gap));
    Ok(GapPage { page, is_cut_short: false })
}

async fn list_all(
    store: &Store,
    reason: Option<&str>,
    cursor: Option<&str>,
    limit: i64,
) -> Result<GapPage, OperationError> {
    let after: Option<i64> = Cursor::read(PagedList::Gaps, cursor)?;
    let found = gap_list::list(store, reason, after, limit + 1).await?;
    let mut page = Page::from_rows(found.gaps, limit, PagedList::Gaps, |one| one.gap.id);
    let walked_to = found.walked_to.filter(|_| page.next_cursor.is_none());
    if let Some(id) = walked_to {
        page.next_cursor = Some(Cursor::behind(PagedList::Gaps, &id));
    }
    let page = page.map(|ListedGap { job, is_deleted, gap }| GapEntry::new(job, is_deleted, gap));
    Ok(GapPage { page, is_cut_short: walked_to.is_some() })
}
