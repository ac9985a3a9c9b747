//! Monitors of jobs, as people see them.

use sexton_store::Store;
use sexton_store::monitors::{MonitorFilter, MonitorStatus};

use crate::error::OperationError;
use crate::paging::{Cursor, Page, PagedList};

/// Returns a page of at most `limit` monitors that match a filter, by the names of their jobs, behind `cursor`.
///
/// # Errors
///
/// [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    mut filter: MonitorFilter,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<MonitorStatus>, OperationError> {
    filter.after = Cursor::read::<String>(PagedList::Monitors, cursor)?;
    let rows = sexton_store::monitors::list(store, &filter, limit + 1).await?;
    Ok(Page::from_rows(rows, limit, PagedList::Monitors, |monitor| monitor.job.clone()))
}
