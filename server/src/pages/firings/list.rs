//! `/firings`: what did not run, and what does not run at present.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::plan::GapReason;
use sexton_model::state::State;
use sexton_operations::error::OperationError;
use sexton_operations::executions::list as executions;
use sexton_operations::gaps;
use sexton_operations::jobs::catch_up::{self, CatchUpPreview, Entry};
use sexton_operations::jobs::details::{self, ListedJob};
use sexton_operations::paging::Page;
use sexton_store::Store;
use sexton_store::executions::MAX_BRIEFLY_WALKED_EXECUTIONS;
use sexton_store::jobs::JobFilter;

use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::executions::{ExecutionRow, rows};
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::gaps::GapRow;
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Rows of each of the tables about the present.
const SHOWN: usize = 10;

/// Which firings to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FiringsQuery {
    /// Only of this job, even a deleted one.
    job: Option<String>,
    /// Only for this reason.
    reason: Option<String>,
    limit: PageSize,
    cursor: Option<String>,
}

/// What does not run at present, on the first page of all jobs.
#[derive(Debug)]
struct Present {
    /// Late firings, and those that are held.
    late: CatchUpPreview,
    paused: Page<ListedJob>,
    /// The latest executions that were skipped.
    skipped: Vec<ExecutionRow>,
}

#[derive(Debug, Template)]
#[template(path = "firings/list.html")]
struct FiringsPage {
    frame: Frame,
    query: FiringsQuery,
    gaps: Vec<GapRow>,
    shows_job: bool,
    pages: Pages,
    is_cut_short: bool,
    present: Option<Present>,
}

impl FiringsPage {
    fn is_filtered(&self) -> bool {
        self.query.job.is_some() || self.query.reason.is_some()
    }

    /// Each reason with its words, and whether it is chosen.
    fn reasons(&self) -> [(GapReason, &'static str, bool); GapReason::ALL.len()] {
        GapReason::ALL.map(|reason| {
            let words = match reason {
                GapReason::OutsideWindow => "later than the misfire window",
                GapReason::MisfireSkip => "late, and skipped by policy",
                GapReason::Coalesced => "late, and another one ran for it",
                GapReason::OverLimit => "over the limit of the catch-up",
                GapReason::Paused => "paused",
                GapReason::Rescheduled => "rescheduled",
                GapReason::Held => "held and given up",
                GapReason::Deleted => "job deleted",
                GapReason::Excluded => "excluded day",
                GapReason::PastEnd => "all runs used up",
            };
            (reason, words, self.query.reason.as_deref() == Some(reason.as_str()))
        })
    }

    fn late(present: &Present) -> &[Entry] {
        &present.late.entries[..present.late.entries.len().min(SHOWN)]
    }

    /// Firings of a job that its misfire policy will not let run.
    fn not_run(entry: &Entry) -> u64 {
        let gaps: u64 = entry.gaps.iter().map(|gap| u64::from(gap.count)).sum();
        gaps + entry.skipped as u64
    }

    fn late_left_out(present: &Present) -> usize {
        present.late.entries.len().saturating_sub(SHOWN)
    }
}

async fn read_present(store: &Store, frame: &Frame) -> Result<Present, OperationError> {
    let limit = SHOWN as i64;
    let late = catch_up::preview(store, None).await?;
    let paused = JobFilter { status: Some("paused".to_owned()), ..JobFilter::default() };
    let paused = details::list(store, paused, false, None, limit).await?;
    let skipped = ExecutionFilter { states: vec![State::Skipped], ..ExecutionFilter::default() };
    let skipped = executions::list(store, &skipped, None, limit, MAX_BRIEFLY_WALKED_EXECUTIONS)
        .await?
        .page
        .items;
    Ok(Present { late, paused, skipped: rows(store, skipped, frame.now).await? })
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<FiringsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Firings).await?;
    let store = visit.reads();
    let refuse = |error: OperationError| visit.refuse(error);
    let FiringsQuery { job, reason, limit, cursor } = &query.values;
    let (job, reason, cursor) = (job.as_deref(), reason.as_deref(), cursor.as_deref());
    let found = gaps::list(store, job, reason, cursor, limit.get()).await.map_err(refuse)?;
    let is_first = job.is_none() && reason.is_none() && cursor.is_none();
    let present =
        if is_first { Some(read_present(store, &frame).await.map_err(refuse)?) } else { None };
    let pages = query.pages(found.page.next_cursor.as_ref());
    let gaps = found.page.items.into_iter().map(GapRow::new).collect();
    Ok(html(&FiringsPage {
        frame,
        query: query.values,
        gaps,
        shows_job: true,
        pages,
        is_cut_short: found.is_cut_short,
        present,
    }))
}
