//! Owe and relay: tickets that still have to be published.
//!
//! A row owes its ticket while `ticket_published_at IS NULL` in a state that has one. [`take`] hides
//! a batch from other replicas for 30 s by moving `relay_after`; no lock is held over the publish. A
//! crash between the publish and [`mark_published`] publishes the ticket twice, which the open
//! recognises.

use sexton_model::id::ExecutionId;
use uuid::Uuid;

use crate::tickets::{OwedTicket, TicketRow};
use crate::{Now, Store, StoreError};

/// What a round of the relay has to publish.
#[derive(Debug, Default)]
pub struct Taken {
    /// In nominal order.
    pub tickets: Vec<OwedTicket>,
    /// Rows that hold what this program cannot read; one of these must not stop the others. They
    /// stay owed until somebody corrects them.
    pub unreadable: Vec<(ExecutionId, StoreError)>,
}

/// Takes up to `limit` owed tickets in nominal order. They come up again in 30 s unless marked.
pub async fn take(store: &Store, limit: i64, now: Now) -> Result<Taken, StoreError> {
    let mut rows = sqlx::query_as!(
        TicketRow,
        r#"-- take_owed
        WITH l AS MATERIALIZED (
            SELECT id FROM executions
            WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed')
              AND relay_after <= coalesce($1, now())
              -- Not of waiters, which owe it to nobody but their admission.
              AND NOT (state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL)
            ORDER BY scheduled_for, id LIMIT $2
            FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE executions e SET relay_after = coalesce($1, now()) + interval '30 seconds'
        FROM l, jobs j WHERE e.id = l.id AND j.id = e.job_id
        RETURNING e.id, e.job_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.attempt, e.rev, e.state, e.pool, e.task_type,
                  e.target, e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
                  e.next_attempt_at, e.finished_at, e.error_message, e.retries_used,
                  coalesce($1, now()) AS "now!""#,
        now,
        limit
    )
    .fetch_all(store.bounded())
    .await?;
    rows.sort_by_key(|row| (row.scheduled_for, row.id));
    let mut taken = Taken::default();
    for row in rows {
        let id = ExecutionId::new(row.id);
        match row.owed() {
            Ok(ticket) => taken.tickets.push(ticket),
            Err(error) => taken.unreadable.push((id, error)),
        }
    }
    Ok(taken)
}

/// Marks tickets as published, each only if its row has not moved on since. Returns how many rows
/// changed; fewer than given is normal.
pub async fn mark_published(
    store: &Store,
    published: &[(ExecutionId, i32)],
    now: Now,
) -> Result<u64, StoreError> {
    if published.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = published.iter().map(|(id, _)| id.get()).collect();
    let revs: Vec<i32> = published.iter().map(|(_, rev)| *rev).collect();
    let done = sqlx::query!(
        "-- mark_published
        WITH l AS MATERIALIZED (
            SELECT e.id FROM executions e
            JOIN unnest($1::uuid[], $2::int[]) AS p (id, rev) ON p.id = e.id
            WHERE e.rev = p.rev AND e.ticket_published_at IS NULL
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED)
        UPDATE executions e SET ticket_published_at = coalesce($3, now()) FROM l WHERE e.id = l.id",
        &ids,
        &revs,
        now
    )
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected())
}

/// Lets a ticket wait before it is tried again, because the broker returned or refused it.
pub async fn postpone(
    store: &Store,
    id: ExecutionId,
    rev: i32,
    wait_ms: i64,
    now: Now,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- postpone_ticket
        UPDATE executions SET relay_after = coalesce($4, now()) + $3 * interval '1 millisecond'
        WHERE id = $1 AND rev = $2 AND ticket_published_at IS NULL",
        id.get(),
        rev,
        wait_ms as f64,
        now
    )
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected() == 1)
}
