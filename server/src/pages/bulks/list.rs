//! `/bulks`: the list.

use std::collections::HashMap;

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::bulks::control;
use sexton_operations::bulks::watch::summary;
use sexton_operations::error::OperationError;
use sexton_operations::job_names;
use sexton_operations::paging::Page;
use sexton_operations::secrets::mask_bulk;
use sexton_store::bulk::Bulk;
use uuid::Uuid;

use super::words::{conditions, job, verb};
use crate::access::Viewer;
use crate::api::PageSize;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::{PageQuery, Pages};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which page of bulks to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BulksQuery {
    limit: PageSize,
    cursor: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "bulks/list.html")]
struct BulksPage {
    frame: Frame,
    page: Page<Bulk>,
    pages: Pages,
    /// The names of the jobs.
    jobs: HashMap<Uuid, String>,
}

impl BulksPage {
    fn verb(&self, bulk: &Bulk) -> &'static str {
        verb(&bulk.kind)
    }

    fn selection(&self, bulk: &Bulk) -> String {
        self.frame.cell(&conditions(&bulk.selector, &self.jobs).join(", "))
    }

    fn summary(&self, bulk: &Bulk) -> String {
        summary(bulk)
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<BulksQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Bulks).await?;
    let BulksQuery { limit, cursor } = &query.values;
    let store = visit.reads();
    let reading = async {
        let page = control::list(store, cursor.as_deref(), limit.get()).await?;
        let jobs = page.items.iter().filter_map(|bulk| job(&bulk.selector));
        let jobs = job_names::list(store, jobs).await?;
        Ok((page, jobs))
    };
    let read: Result<_, OperationError> = reading.await;
    let (mut page, jobs) = read.map_err(|error| visit.refuse(error))?;
    page.items.iter_mut().for_each(mask_bulk);
    let pages = query.pages(page.next_cursor.as_ref());
    Ok(html(&BulksPage { frame, page, pages, jobs }))
}
