//! `/workers`: pools, workers and schedulers.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::error::OperationError;
use sexton_operations::paging::MAX_PAGE_ROWS;
use sexton_operations::status::{self, RecordedStatus, Warning};
use sexton_operations::text::duration;
use sexton_operations::workers::{self, ListedWorker, MAX_HEARTBEAT_AGE_MS};
use sexton_store::instances::Instance;
use sexton_store::status::PoolCounts;
use sexton_store::workers::WorkerFilter;

use crate::access::Viewer;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which workers to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WorkersQuery {
    /// Also those that are gone.
    all: bool,
    /// Only those that consume from this pool.
    pool: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "workers/list.html")]
struct WorkersPage {
    frame: Frame,
    query: WorkersQuery,
    status: RecordedStatus,
    workers: Vec<ListedWorker>,
    is_cut: bool,
}

impl WorkersPage {
    fn schedulers(&self) -> Vec<&Instance> {
        self.status.instances.iter().filter(|instance| instance.kind == "scheduler").collect()
    }

    fn scheduler_state(&self, scheduler: &Instance) -> &'static str {
        match scheduler.silent_ms {
            ms if ms > MAX_HEARTBEAT_AGE_MS => "silent",
            _ if scheduler.ready => "alive",
            _ => "not ready",
        }
    }

    fn pool_state(&self, pool: &PoolCounts) -> &'static str {
        match (Warning::of(pool), pool.workers) {
            (Some(_), _) => "no workers",
            (None, 0) => "unused",
            (None, _) if pool.running >= pool.slots && pool.pending > 0 => "full",
            (None, _) => "ok",
        }
    }

    fn wait(&self, pool: &PoolCounts) -> String {
        pool.oldest_due_ms.map_or_else(|| "–".to_owned(), duration)
    }

    fn pools(&self, worker: &ListedWorker) -> String {
        self.frame.cell(&worker.worker.pools.join(", "))
    }

    fn silent(&self, ms: i64) -> String {
        format!("{} ago", duration(ms))
    }
}

pub(super) async fn list(
    visit: Visit<Viewer>,
    query: PageQuery<WorkersQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Workers).await?;
    let (store, query) = (visit.reads(), query.values);
    let reading = async {
        let status = status::read_recorded(store, None).await?;
        let pool = query.pool.as_deref();
        let filter = WorkerFilter { with_gone: query.all, pool, ..WorkerFilter::default() };
        let workers = workers::list(store, &filter, MAX_PAGE_ROWS, None).await?;
        Ok((status, workers))
    };
    let read: Result<_, OperationError> = reading.await;
    let (status, workers) = read.map_err(|error| visit.refuse(error))?;
    let is_cut = workers.len() as i64 == MAX_PAGE_ROWS;
    Ok(html(&WorkersPage { frame, query, status, workers, is_cut }))
}
