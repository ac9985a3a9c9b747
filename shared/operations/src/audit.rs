//! Operators' actions: who, when, from where, why. [`chain`] shows whether somebody has changed them since.

pub mod chain;
pub mod export;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::zone::Zone;
use sexton_store::Store;
use sexton_store::operator::{
    ActionFilter, OperatorAction, PageStart, first_missing, list_actions, read_frontier,
    still_writing,
};
use tokio::time::{Instant, sleep};

use crate::error::OperationError;
use crate::instants::TimeRangeRequest;
use crate::paging::{Cursor, Page, PagedList};
use crate::secrets::mask_actions;
use crate::{execution_ids, job_names};

/// How long to wait for transactions that may still record an action: longer than almost any action takes.
pub const WRITERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two checks whether they have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A filter for actions, in texts; an action must meet every condition that is set.
#[derive(Clone, Copy, Default, Debug)]
pub struct AuditRequest<'a> {
    /// By this operator: the full name in the audit, or only the part before the @.
    pub actor: Option<&'a str>,
    /// With this name.
    pub action: Option<&'a str>,
    /// On this job or its executions.
    pub job: Option<&'a str>,
    /// On the execution whose id begins with this.
    pub execution: Option<&'a str>,
    /// By this bulk, or on it.
    pub bulk: Option<i64>,
    /// Within these.
    pub range: TimeRangeRequest<'a>,
}

impl AuditRequest<'_> {
    /// Parses the request; `now` is the database's clock.
    ///
    /// # Errors
    ///
    /// [`crate::error::InvalidRequest`] for an instant or an id that cannot be read, [`crate::error::NotFound`] for a job or an
    /// execution that does not exist.
    pub async fn read(
        self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<ActionFilter, OperationError> {
        let job = job_names::find_optional_id(store, self.job).await?;
        let execution = match self.execution {
            Some(text) => Some(execution_ids::resolve(store, text).await?),
            None => None,
        };
        let range = self.range.read(Zone::UTC, now)?;
        Ok(ActionFilter {
            actor: self.actor.map(str::to_owned),
            action: self.action.map(str::to_owned),
            job,
            execution,
            bulk: self.bulk,
            since: range.since,
            until: range.until,
        })
    }
}

/// Returns a page of at most `limit` actions behind `cursor`, the newest first; unless `unmasked`, masks values that look
/// like secrets.
///
/// # Errors
///
/// [`crate::error::InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn page(
    store: &Store,
    filter: &ActionFilter,
    cursor: Option<&str>,
    limit: i64,
    unmasked: bool,
) -> Result<Page<OperatorAction>, OperationError> {
    let start = PageStart::Newest(Cursor::read(PagedList::Actions, cursor)?);
    let rows = list(store, filter, start, limit + 1, unmasked).await?;
    Ok(Page::from_rows(rows, limit, PagedList::Actions, |action| action.id))
}

/// Lists at most `limit` actions; unless `unmasked`, masks values that look like secrets.
///
/// # Errors
///
/// Those of the database.
pub async fn list(
    store: &Store,
    filter: &ActionFilter,
    start: PageStart,
    limit: i64,
    unmasked: bool,
) -> Result<Vec<OperatorAction>, OperationError> {
    let mut found = list_actions(store, filter, start, limit).await?;
    if !unmasked {
        mask_actions(&mut found);
    }
    Ok(found)
}

/// Up to where the audit is settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettledActions {
    /// No action with this number or a lower one can appear any more.
    pub through: i64,
    /// The number behind it with which one may still appear, if that is the reason why the settled part ends there.
    pub missing: Option<i64>,
    /// Whether it has every action that the audit had when this was found out.
    pub is_whole: bool,
}

/// Returns the number up to which, from `after`, no action can appear any more, of the next `numbers`.
///
/// Numbers are drawn before a transaction commits: an action may appear later than one with a higher number. So this
/// waits, for at most [`WRITERS_TIMEOUT`], for transactions that may still record an action below the newest visible
/// one.
///
/// # Errors
///
/// Those of the database.
pub async fn wait_until_settled(
    store: &Store,
    after: i64,
    numbers: i64,
) -> Result<SettledActions, OperationError> {
    let seen = read_frontier(store).await?;
    let through = after.max(seen.removed).saturating_add(numbers).min(seen.newest);
    let all = SettledActions { through, missing: None, is_whole: through == seen.newest };
    let (mut writers, deadline) = (seen.writers, Instant::now() + WRITERS_TIMEOUT);
    // Without a missing number no wait is needed.
    if writers.is_empty() || first_missing(store, after, through).await?.is_none() {
        return Ok(all);
    }
    while !writers.is_empty() {
        if Instant::now() >= deadline {
            let missing = first_missing(store, after, through).await?;
            return Ok(missing.map_or(all, |missing| SettledActions {
                through: missing - 1,
                missing: Some(missing),
                is_whole: false,
            }));
        }
        sleep(POLL_INTERVAL).await;
        writers = still_writing(store, &writers).await?;
    }
    Ok(all)
}
