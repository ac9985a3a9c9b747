//! Reconcile: marks tickets that the broker seems to have lost as unpublished again.
//!
//! A published ticket that no worker opened long after it was due is either waiting in a long queue or lost with a
//! broker's data. It counts as lost when its main queue is empty, or when a ticket of the same pool that was
//! published later has been opened meanwhile (queues are first in, first out). A wrong guess costs one duplicate,
//! which the open recognises.

use chrono::{DateTime, Utc};
use sexton_model::pool::PoolName;

use crate::{Now, Store, StoreError};

/// A pool with overdue tickets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverduePool {
    /// The pool.
    pub pool: PoolName,
    /// Number of overdue tickets.
    pub tickets: u64,
    /// When the oldest of them was due.
    pub oldest_due: DateTime<Utc>,
}

/// Returns the pools with published tickets that are overdue and were not opened. A ticket is overdue five minutes
/// after it was due, doubled by each reconciliation, up to an hour.
pub async fn list_overdue_pools(store: &Store, now: Now) -> Result<Vec<OverduePool>, StoreError> {
    let rows = sqlx::query!(
        r#"-- overdue_tickets
        SELECT pool, count(*) AS "tickets!", min(next_attempt_at) AS "oldest_due!"
        FROM sexton.executions
        WHERE state IN ('pending', 'retrying') AND ticket_published_at IS NOT NULL
          AND next_attempt_at < coalesce($1, now()) - interval '5 minutes'
          AND greatest(next_attempt_at, ticket_published_at) < coalesce($1, now())
              - least(interval '5 minutes' * (1 << least(reconcile_count, 10)), interval '1 hour')
        GROUP BY pool"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(OverduePool {
                pool: crate::error::parse_column("executions.pool", &row.pool, |text| {
                    text.parse().ok()
                })?,
                tickets: row.tickets as u64,
                oldest_due: row.oldest_due,
            })
        })
        .collect()
}

/// Marks up to `limit` of a pool's overdue tickets as unpublished, oldest due first: all of them when the pool's main
/// queue is empty, otherwise those that later tickets have overtaken. Returns how many.
pub async fn mark_unpublished(
    store: &Store,
    pool: &PoolName,
    queue_is_empty: bool,
    limit: i64,
    now: Now,
) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- mark_overdue_unpublished
        WITH overtaken AS MATERIALIZED (
            SELECT max(ticket_published_at) AS at FROM sexton.executions
            WHERE pool = $1 AND state = 'running'),
        l AS MATERIALIZED (
            SELECT id FROM sexton.executions
            WHERE state IN ('pending', 'retrying') AND ticket_published_at IS NOT NULL AND pool = $1
              AND next_attempt_at < coalesce($4, now()) - interval '5 minutes'
              AND greatest(next_attempt_at, ticket_published_at) < coalesce($4, now())
                  - least(interval '5 minutes' * (1 << least(reconcile_count, 10)), interval '1 hour')
              AND ($2 OR greatest(next_attempt_at, ticket_published_at)
                         < (SELECT at FROM overtaken) - interval '1 minute')
            ORDER BY next_attempt_at LIMIT $3
            FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE sexton.executions e SET ticket_published_at = NULL, rev = e.rev + 1,
            relay_after = coalesce($4, now()), reconcile_count = least(e.reconcile_count + 1, 100)
        FROM l WHERE e.id = l.id",
        pool.as_str(),
        queue_is_empty,
        limit,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}
