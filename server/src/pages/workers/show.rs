//! `/workers/{name}`: a worker, and what it runs.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use sexton_operations::text::duration;
use sexton_operations::workers::{self, WorkerDetails, WorkerState};
use sexton_store::workers::Worker;

use crate::access::Viewer;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// The address of a worker says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WorkerQuery {}

#[derive(Debug, Template)]
#[template(path = "workers/show.html")]
struct WorkerPage<'a> {
    frame: Frame,
    details: &'a WorkerDetails,
    worker: &'a Worker,
}

impl WorkerPage<'_> {
    fn sentence(&self) -> String {
        let silent = duration(self.worker.silent_ms);
        match self.details.listed.state {
            WorkerState::Alive if self.worker.ready => "It takes tasks.".to_owned(),
            WorkerState::Alive => {
                "It lives, and is not ready: its log and /readyz say why.".to_owned()
            }
            WorkerState::Silent => format!(
                "Its last heartbeat is {silent} old: it is killed, frozen or cut off from the database. When its leases end, what it runs \
                 is tried again elsewhere."
            ),
            WorkerState::Gone => "It has stopped, or was silent for a day.".to_owned(),
        }
    }

    /// Its pools, each with its slots.
    fn pools(&self) -> String {
        let slots = self.worker.pool_slots.as_deref().unwrap_or_default();
        let pools = self.worker.pools.iter().enumerate().map(|(index, pool)| {
            let slots = slots.get(index).map(|slots| format!(" ({slots})"));
            format!("{}{}", self.frame.cell(pool), slots.unwrap_or_default())
        });
        pools.collect::<Vec<_>>().join(", ")
    }

    fn silent(&self) -> String {
        format!("{} ago", duration(self.worker.silent_ms))
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(name): Path<String>,
    _query: PageQuery<WorkerQuery>,
) -> Result<Response, Refusal> {
    let shown = workers::show(visit.reads(), &name, None).await;
    let details = shown.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Workers).await?;
    let worker = &details.listed.worker;
    Ok(html(&WorkerPage { frame, details: &details, worker }))
}
