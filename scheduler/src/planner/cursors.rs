//! Recomputes cursors that older time zone data has computed, and logs those that moved.
//!
//! It runs soon after the start of the program, since that is when its data is new, and once an hour after
//! that, for cursors that a replica of the previous version has computed meanwhile. The planner does the same
//! with a due job, so that no claim uses older data, whichever comes first.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sexton_model::zone::tz_data_version;
use sexton_store::cursors::{MovedCursor, recompute};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};
use tokio::time::Instant;

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// Jobs in one transaction.
const MAX_BATCH_JOBS: i64 = 500;
/// Interval of the checks of all jobs.
const CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// The loop that recomputes cursors.
#[derive(Debug)]
pub struct Cursors {
    store: Store,
    /// When the next check is due; `None`: at once.
    due: Mutex<Option<Instant>>,
}

/// What a round did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CursorsReport {
    /// Jobs whose cursors older data had computed.
    pub outdated: usize,
    /// The jobs whose cursors moved.
    pub moved: Vec<MovedCursor>,
}

impl Cursors {
    /// Creates the loop, whose first check runs at once.
    pub fn new(store: Store) -> Self {
        Self { store, due: Mutex::default() }
    }

    /// Checks all jobs.
    async fn recompute_all(&self) -> Result<CursorsReport, LoopError> {
        let mut report = CursorsReport::default();
        let mut after = None;
        loop {
            let batch =
                with_timeout(QUERY_TIMEOUT, recompute(&self.store, after.as_ref(), MAX_BATCH_JOBS))
                    .await?;
            batch.moved.iter().for_each(log_moved_cursor);
            report.outdated += batch.jobs;
            report.moved.extend(batch.moved);
            after = batch.next;
            if after.is_none() {
                return Ok(report);
            }
        }
    }
}

impl BackgroundLoop for Cursors {
    const NAME: &'static str = "cursors";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(10);
    type Report = CursorsReport;

    async fn run_once(&self, _: Now) -> Result<CursorsReport, LoopError> {
        let due = *self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.is_some_and(|due| Instant::now() < due) {
            return Ok(CursorsReport::default());
        }
        let report = self.recompute_all().await?;
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + CHECK_INTERVAL);
        Ok(report)
    }

    fn pause(&self, _: &CursorsReport) -> Pause {
        Pause::AtMost(CHECK_INTERVAL)
    }
}

/// Logs that a job fires at another instant than was planned before.
pub(crate) fn log_moved_cursor(moved: &MovedCursor) {
    let to = moved.to.map_or_else(|| "never".to_owned(), |to| to.to_rfc3339());
    tracing::warn!(
        job.name = moved.name,
        job.timezone = moved.timezone,
        next.old = %moved.from.to_rfc3339(),
        next.new = to,
        tz.old = moved.by,
        tz.new = tz_data_version(),
        "new time zone data moves the next firing of {} from {} to {to}",
        moved.name,
        moved.from.to_rfc3339(),
    );
}
