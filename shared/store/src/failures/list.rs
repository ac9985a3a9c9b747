//! A page of failed and discarded executions.

use std::collections::HashMap;

use serde::Serialize;
use sexton_model::failures::{FailureFilter, Order, PageCursor};
use uuid::Uuid;

use super::search::{self, MAX_SEARCH_ROWS, search};
use crate::executions::{self, Execution};
use crate::{Store, StoreError};

/// A failed or discarded execution, with the worker that ran its last attempt.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailedExecution {
    /// The row.
    #[serde(flatten)]
    pub execution: Execution,
    /// `failures.worker`.
    pub worker: Option<String>,
}

/// Returns the next executions that match `filter`, after `after`, and the cursor of the following page (`None`: this
/// is the last). Executions that were requeued between the search and the reading of the rows are missing, so a page
/// may be shorter than `limit` and still have a successor.
///
/// # Errors
///
/// As [`search()`].
pub async fn list_page(
    store: &Store,
    filter: &FailureFilter,
    order: Order,
    after: Option<PageCursor>,
    limit: i64,
) -> Result<(Vec<FailedExecution>, Option<PageCursor>), StoreError> {
    let limit = limit.clamp(1, MAX_SEARCH_ROWS);
    let mut found = search(store, filter, order, after, limit + 1).await?;
    let more = found.len() as i64 > limit;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| last.cursor(order));
    let ids: Vec<Uuid> = found.iter().map(|found| found.execution_id).collect();
    let mut workers = workers(store, &ids).await?;
    let rows = executions::list_by_ids(store, &ids).await?;
    let mut rows: HashMap<Uuid, Execution> = rows.into_iter().map(|row| (row.id, row)).collect();
    let still = |execution: &Execution, found: &search::FoundFailure| {
        execution.finished_at == Some(found.failed_at)
            && execution.state == if filter.discarded { "discarded" } else { "failed" }
    };
    let page = found.iter().filter_map(|found| {
        let execution = rows.remove(&found.execution_id).filter(|row| still(row, found))?;
        Some(FailedExecution { execution, worker: workers.remove(&found.execution_id).flatten() })
    });
    Ok((page.collect(), next))
}

async fn workers(store: &Store, ids: &[Uuid]) -> Result<HashMap<Uuid, Option<String>>, StoreError> {
    let rows = sqlx::query!(
        "-- workers_of_failures
        SELECT execution_id, worker FROM sexton.failures WHERE execution_id = ANY ($1)",
        ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    Ok(rows.into_iter().map(|row| (row.execution_id, row.worker)).collect())
}
