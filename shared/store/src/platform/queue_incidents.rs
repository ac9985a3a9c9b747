//! Queue incidents that schedulers and workers saw in RabbitMQ, for `sexton doctor`.
//!
//! One row for each queue and kind, at most `MAX_ROWS`; each new row removes those that have not changed for a month.

use chrono::{DateTime, Utc};
use sexton_model::queue_incident::{QueueIncident, QueueIncidentKind};

use crate::error::parse_column;
use crate::{Now, Store, StoreError};

/// Maximum number of rows; incidents of further queues are not recorded.
const MAX_ROWS: i64 = 1_000;

/// Adds the incidents that one process saw. A count whose last incident is more than a week old begins anew. A crash
/// leaves all or none of it.
///
/// # Errors
///
/// [`StoreError`]; it may have been written.
pub async fn record(store: &Store, seen: &[QueueIncident], now: Now) -> Result<(), StoreError> {
    if seen.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- forget_queue_incidents
        DELETE FROM sexton.queue_incidents WHERE last_at < coalesce($1, now()) - interval '30 days'",
        now
    )
    .execute(store.with_timeout())
    .await?;
    let queues: Vec<String> = seen.iter().map(|one| one.queue.clone()).collect();
    let kinds: Vec<String> = seen.iter().map(|one| one.kind.as_str().to_owned()).collect();
    let messages: Vec<i64> =
        seen.iter().map(|one| i64::try_from(one.messages).unwrap_or(i64::MAX)).collect();
    sqlx::query!(
        "-- record_queue_incidents
        INSERT INTO sexton.queue_incidents AS q (queue, kind, messages, times, first_at, last_at)
        SELECT n.queue, n.kind, least(n.messages, 1000000000000), 1, coalesce($4, now()), coalesce($4, now())
        FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (queue, kind, messages)
        WHERE (SELECT count(*) FROM sexton.queue_incidents) < $5
           OR EXISTS (SELECT FROM sexton.queue_incidents k WHERE k.queue = n.queue AND k.kind = n.kind)
        ORDER BY n.queue, n.kind
        ON CONFLICT (queue, kind) DO UPDATE SET
            messages = least(excluded.messages + CASE
                WHEN q.last_at < excluded.last_at - interval '7 days' THEN 0 ELSE q.messages END, 1000000000000),
            times = CASE WHEN q.last_at < excluded.last_at - interval '7 days' THEN 1 ELSE q.times + 1 END,
            first_at = CASE WHEN q.last_at < excluded.last_at - interval '7 days' THEN excluded.last_at
                ELSE q.first_at END,
            last_at = excluded.last_at",
        &queues,
        &kinds,
        &messages,
        now,
        MAX_ROWS
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// The record of one kind of incident in one queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedQueueIncident {
    /// The queue.
    pub queue: String,
    /// What happened to it.
    pub kind: QueueIncidentKind,
    /// Number of messages affected.
    pub messages: i64,
    /// How often a process recorded it.
    pub times: i64,
    /// When first.
    pub first_at: DateTime<Utc>,
    /// When last.
    pub last_at: DateTime<Utc>,
}

/// Returns the incidents of the last day, newest first.
///
/// # Errors
///
/// [`StoreError`].
pub async fn list_last_day(
    store: &Store,
    now: Now,
) -> Result<Vec<RecordedQueueIncident>, StoreError> {
    let rows = sqlx::query!(
        "-- queue_incidents_of_last_day
        SELECT queue, kind, messages, times, first_at, last_at FROM sexton.queue_incidents
        WHERE last_at > coalesce($1, now()) - interval '1 day'
        ORDER BY last_at DESC, queue, kind",
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(RecordedQueueIncident {
                kind: parse_column("queue_incidents.kind", &row.kind, QueueIncidentKind::parse)?,
                queue: row.queue,
                messages: row.messages,
                times: row.times,
                first_at: row.first_at,
                last_at: row.last_at,
            })
        })
        .collect()
}
