//! Running: the open attempts with their last renewals, which the rescuer reads over and over.
//!
//! Pages by id, through the small index of running executions. Reads without locks and decides nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken};
use uuid::Uuid;

use crate::attempts::open::parse_attempt_number;
use crate::{Now, Store, StoreError};

/// One renewal of one attempt, identified by values that never recur together.
///
/// The database's clock alone is not enough: it may stop or go back, so that two renewals write the same
/// `lease_until`. Neither is the transaction that wrote the row: a standby that takes over without the last
/// transactions assigns their numbers again; but it is another process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseRenewal {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// Its worker's token.
    pub token: OpenToken,
    /// The value that the open or the renewal wrote.
    pub lease_until: DateTime<Utc>,
    /// The transaction that wrote the row: its `xmin`.
    pub written_by: i64,
    /// When the answering server was started.
    pub server: DateTime<Utc>,
}

/// An open attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningAttempt {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// Its last renewal.
    pub renewed: LeaseRenewal,
    /// How long the same renewal must be seen before the attempt counts as lost.
    pub lease: Duration,
    /// Whether it counts as alive in any case: see [`list_page`].
    pub alive: bool,
}

/// Reads up to `limit` open attempts behind `after`, in the order of their executions' ids.
///
/// An attempt whose worker's version did not record the lease (before migration 0025) is treated with care: its lease
/// may have any length up to an hour, but not longer than from its opening to its `lease_until`; and it counts as
/// alive until `lease_until` has passed.
pub async fn list_page(
    store: &Store,
    after: Option<ExecutionId>,
    limit: i64,
    now: Now,
) -> Result<Vec<RunningAttempt>, StoreError> {
    let rows = sqlx::query_file!(
        "src/attempts/running/page.sql",
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
