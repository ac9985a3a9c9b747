//! The platform's state. The rows are the record and make up the answer; the broker adds how full its queues are, and
//! if it does not answer, the answer says so. [`read_recorded`] reads the rows alone, for those who have no broker.

mod queues;
mod report;
mod warnings;

use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_service::settings::{ConsoleSettings, FailedLimits};
use sexton_store::incidents::{self, OpenIncidents};
use sexton_store::instances::{self, Instance};
use sexton_store::status::{self, DueExecutions, Overview, PoolCounts};
use sexton_store::{Store, catch_up, unknown_messages};

use crate::error::OperationError;

pub use queues::{PoolQueues, Queues};
pub use report::{BrokerReport, PoolReport, StatusReport};
pub use warnings::Warning;

/// The period of `FAILED_WARN_PER_HOUR`, in seconds.
const FAILED_WINDOW_S: i64 = 3_600;
/// A day, in seconds.
const FAILED_DAY_S: i64 = 86_400;
/// An hour, in seconds.
const DUE_WINDOW_S: i64 = 3_600;
/// The most executions that a count of those that were due looks at.
pub const MAX_COUNTED_DUE: i64 = 10_000;

/// The platform's state, as far as the rows say it.
#[derive(Debug)]
pub struct RecordedStatus {
    /// Counts over the whole platform.
    pub overview: Overview,
    /// This host's clock at the time of the counts.
    pub host_now: DateTime<Utc>,
    /// By pool.
    pub pools: Vec<PoolCounts>,
    /// Schedulers and workers with a heartbeat within a day.
    pub instances: Vec<Instance>,
    /// Executions that failed within the last hour and are still failed.
    pub failed_last_hour: i64,
    /// The open incidents at a glance. No warnings: they have notifications and people of their own.
    pub incidents: OpenIncidents,
    /// Conditions that need attention.
    pub warnings: Vec<Warning>,
}

/// The platform's state.
#[derive(Debug)]
pub struct Status {
    /// What the rows say.
    pub recorded: RecordedStatus,
    /// The broker's answer, or why it has none.
    pub queues: Result<Queues, String>,
}

/// Reads the platform's state. It changes nothing, on either server.
///
/// # Errors
///
/// Those of the database; a broker without an answer is no error.
pub async fn read(store: &Store, settings: &ConsoleSettings) -> Result<Status, OperationError> {
    let recorded = read_recorded(store, Some(settings.failed)).await?;
    let names: Vec<&str> = recorded.pools.iter().map(|pool| pool.pool.as_str()).collect();
    let queues = queues::read_queues(settings, &names).await;
    Ok(Status { recorded, queues })
}

/// Reads what the rows say of the platform's state. Without `limits` nothing warns of failed executions.
///
/// # Errors
///
/// Those of the database.
pub async fn read_recorded(
    store: &Store,
    limits: Option<FailedLimits>,
) -> Result<RecordedStatus, OperationError> {
    let overview = status::overview(store, None).await?;
    let host_now = clock::now();
    let pools = status::pools(store, None).await?;
    let instances = instances::list(store, None).await?;
    let held = catch_up::find_hold(store).await?.map(Warning::held);
    let failed_last_hour = status::failed_since(store, FAILED_WINDOW_S, None).await?;
    let incidents = incidents::summarize_open(store).await?;
    let overflow = unknown_messages::overflow(store).await?;
    let of_failed = limits.map(|limits| Warning::of_failed(&overview, failed_last_hour, limits));
    let warnings = held
        .into_iter()
        .chain(pools.iter().filter_map(Warning::of))
        .chain(of_failed.into_iter().flatten())
        .chain(overflow.map(Warning::RawMessagesOverflow))
        .collect();
    Ok(RecordedStatus {
        overview,
        host_now,
        pools,
        instances,
        failed_last_hour,
        incidents,
        warnings,
    })
}

/// Counts the executions that failed within the last 24 hours and are still failed.
///
/// # Errors
///
/// Those of the database.
pub async fn count_failed_last_day(store: &Store) -> Result<i64, OperationError> {
    Ok(status::failed_since(store, FAILED_DAY_S, None).await?)
}

/// Counts the executions that were due within the last hour, and those of them that have succeeded, among the last
/// [`MAX_COUNTED_DUE`] that were claimed or enqueued. What was enqueued long before it was due may lie beyond these.
///
/// # Errors
///
/// Those of the database.
pub async fn count_due_last_hour(store: &Store) -> Result<DueExecutions, OperationError> {
    Ok(status::due_since(store, DUE_WINDOW_S, MAX_COUNTED_DUE, None).await?)
}

impl Status {
    /// Returns the state as one document.
    pub fn report(&self) -> StatusReport {
        StatusReport::new(self)
    }

    /// Returns the contents of a pool's queues; `None`: the broker did not report them.
    pub fn queues_of(&self, pool: &PoolCounts) -> Option<&PoolQueues> {
        self.queues.as_ref().ok().and_then(|queues| queues.pools.get(&pool.pool))
    }
}
