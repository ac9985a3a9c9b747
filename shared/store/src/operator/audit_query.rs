//! Search in the audit.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::OperatorAction;
use crate::{Store, StoreError};

/// A filter for actions; an action must meet every condition that is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActionFilter {
    /// By this operator: the full name in the audit, or only the part before the `@`.
    pub actor: Option<String>,
    /// With this name.
    pub action: Option<String>,
    /// On this job or its executions.
    pub job: Option<Uuid>,
    /// On this execution.
    pub execution: Option<Uuid>,
    /// By this bulk, or on it.
    pub bulk: Option<i64>,
    /// At or after this.
    pub since: Option<DateTime<Utc>>,
    /// Before this.
    pub until: Option<DateTime<Utc>>,
}

/// Where a page begins, and its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageStart {
    /// The newest first, older than this one; `None`: from the newest of all.
    Newest(Option<i64>),
    /// The oldest first, newer than `after`, up to `through`.
    After {
        /// A number; 0: from the oldest.
        after: i64,
        /// A number; the largest: to the newest.
        through: i64,
    },
}

/// Returns the matching actions, at most `limit`. Numbers are drawn before a transaction commits, so an action may
/// appear below one that was read already: a reader that continues from the last number must stop at the
/// [frontier](super::read_frontier).
pub async fn list_actions(
    store: &Store,
    filter: &ActionFilter,
    from: PageStart,
    limit: i64,
) -> Result<Vec<OperatorAction>, StoreError> {
    // Two statements, each along the primary key in its direction.
    Ok(match from {
        PageStart::Newest(before) => {
            sqlx::query_as!(
                OperatorAction,
                "-- newest_actions
            SELECT id, at, actor, action, job_id, execution_id, reason, before, after, from_where,
                   host(from_address) AS from_address, bulk_id
            FROM sexton.operator_actions
            WHERE ($1::text IS NULL OR actor = $1 OR split_part(actor, '@', 1) = $1)
              AND ($2::text IS NULL OR action = $2) AND ($3::uuid IS NULL OR job_id = $3)
              AND ($4::uuid IS NULL OR execution_id = $4) AND ($5::bigint IS NULL OR bulk_id = $5)
              AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
              AND id < $8 ORDER BY id DESC
            LIMIT $9",
                filter.actor,
                filter.action,
                filter.job,
                filter.execution,
                filter.bulk,
                filter.since,
                filter.until,
                before.unwrap_or(i64::MAX),
                limit
            )
            .fetch_all(store.with_timeout())
            .await?
        }
        PageStart::After { after, through } => {
            sqlx::query_as!(
                OperatorAction,
                "-- actions_after
            SELECT id, at, actor, action, job_id, execution_id, reason, before, after, from_where,
                   host(from_address) AS from_address, bulk_id
            FROM sexton.operator_actions
            WHERE ($1::text IS NULL OR actor = $1 OR split_part(actor, '@', 1) = $1)
              AND ($2::text IS NULL OR action = $2) AND ($3::uuid IS NULL OR job_id = $3)
              AND ($4::uuid IS NULL OR execution_id = $4) AND ($5::bigint IS NULL OR bulk_id = $5)
              AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
              AND id > $8 AND id <= $10 ORDER BY id
            LIMIT $9",
                filter.actor,
                filter.action,
                filter.job,
                filter.execution,
                filter.bulk,
                filter.since,
                filter.until,
                after,
                limit,
                through
            )
            .fetch_all(store.with_timeout())
            .await?
        }
    })
}
