//! `/upcoming`: what fires within ten minutes.

use std::borrow::Borrow;
use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use sexton_operations::error::OperationError;
use sexton_operations::jobs::density::{FiringDay, JobInPart, PART_MINUTES, part_of};

use super::count_cache::CountCache;
use crate::access::Viewer;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::instant::in_address;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Jobs that are shown.
const MAX_SHOWN: usize = 500;

/// The ten minutes to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PartQuery {
    /// An instant in them; absent: now.
    from: Option<DateTime<Utc>>,
}

#[derive(Debug, Template)]
#[template(path = "overview/part.html")]
struct PartPage {
    frame: Frame,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    jobs: Vec<JobInPart>,
    /// How many jobs fire then, also those that are not shown.
    job_count: usize,
    firing_count: u64,
    complete: bool,
    /// When they were counted, if that is a while ago.
    counted_at: Option<DateTime<Utc>>,
}

impl PartPage {
    fn is_over(&self) -> bool {
        self.until <= self.frame.now
    }

    fn address(&self, at: impl Borrow<DateTime<Utc>>) -> String {
        self.frame.url(format!("/upcoming?from={}", in_address(*at.borrow())))
    }

    fn before(&self) -> DateTime<Utc> {
        self.from - length()
    }
}

fn length() -> TimeDelta {
    TimeDelta::minutes(PART_MINUTES as i64)
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Extension(cache): Extension<CountCache<FiringDay>>,
    query: PageQuery<PartQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Overview).await?;
    // Far from both ends of the calendar, where the instants around it can be computed.
    let year = TimeDelta::days(366);
    let at = query.values.from.unwrap_or(frame.now).clamp(frame.now - year, frame.now + year);
    let from = part_of(at);
    let counted = cache.get(visit.reads(), frame.now).await;
    let counted = counted.map_err(|error| visit.refuse(error))?;
    let (day, complete) = (Arc::clone(&counted.value), counted.value.complete);
    let counted_at = counted.is_old().then_some(counted.at);
    let jobs = list(day, from).await.map_err(|error| visit.refuse(error))?;
    let job_count = jobs.len();
    let firing_count = jobs.iter().map(|job| job.firings).sum();
    let jobs = jobs.into_iter().take(MAX_SHOWN).collect();
    let until = from + length();
    Ok(html(&PartPage { frame, from, until, jobs, job_count, firing_count, complete, counted_at }))
}

/// On a thread of its own: it searches the firings of thousands of jobs.
async fn list(day: Arc<FiringDay>, from: DateTime<Utc>) -> Result<Vec<JobInPart>, OperationError> {
    let listing = tokio::task::spawn_blocking(move || day.list_part(from)).await;
    listing.map_err(|error| OperationError::Failed(format!("firings cannot be listed: {error}")))
}
