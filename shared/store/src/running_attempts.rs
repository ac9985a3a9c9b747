//! Running: the open attempts with their last renewals, as whoever watches leases reads them over and over.
//!
//! In pages by the id, through the small index of what runs. Reads without a lock and decides nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken};
use uuid::Uuid;

use crate::open::parse_attempt_number;
use crate::{Now, Store, StoreError};

/// One renewal of one attempt, told from every other by what can never come again together.
///
/// The database's clock alone does not tell: it may stand still or go back, so that two renewals write the same
/// `lease_until`. The transaction that wrote the row does not either: a standby that takes over without the last
/// ones gives their numbers out again; but it is another process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseRenewal {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// Its worker's mark.
    pub token: OpenToken,
    /// What the open or the renewal wrote.
    pub lease_until: DateTime<Utc>,
    /// The transaction that wrote the row: its `xmin`.
    pub written_by: i64,
    /// When the server that answered was started.
    pub server: DateTime<Utc>,
}

/// An open attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningAttempt {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// Its last renewal.
    pub renewed: LeaseRenewal,
    /// For how long the same renewal must be seen before the attempt counts as lost.
    pub lease: Duration,
    /// It counts as alive all the same: see [`list_page`].
    pub alive: bool,
}

/// Reads up to `limit` open attempts behind `after`, in the order of their executions' ids.
///
/// An attempt that was opened by a worker of a version that did not write down the lease (before migration 0025)
/// is treated with care: its lease may have any length up to an hour, as far as anybody knows, but not a longer one
/// than from its opening to its `lease_until`; and it counts as alive as long as `lease_until` has not passed.
pub async fn list_page(
    store: &Store,
    after: Option<ExecutionId>,
    limit: i64,
    now: Now,
) -> Result<Vec<RunningAttempt>, StoreError> {
    let rows = sqlx::query_file!(
        "src/running_attempts/page.sql",
        after.map_or(Uuid::nil(), ExecutionId::get),
        limit,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(RunningAttempt {
                execution_id: ExecutionId::new(row.id),
                renewed: LeaseRenewal {
                    attempt: parse_attempt_number(row.attempt)?,
                    token: OpenToken::new(row.token),
                    lease_until: row.lease_until,
                    written_by: row.written_by,
                    server: row.server,
                },
                lease: Duration::from_millis(row.lease_ms.max(0) as u64),
                alive: row.alive,
            })
        })
        .collect()
}
