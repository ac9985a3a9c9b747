//! The relay's statements, for unpublished tickets.
//!
//! A row's ticket is unpublished while `ticket_published_at IS NULL` in a state that has one. [`find_destinations`]
//! finds the queues with due tickets. [`take_batch`] hides a batch from other replicas for 30 s by moving
//! `relay_after`; no lock is held over the publish. A crash between the publish and [`mark_published`] publishes the
//! ticket twice, which the open recognises.
//!
//! Both read the index `executions_unpublished`, in which a destination's due rows come before the others. So neither
//! waiting rows nor other destinations' rows cost a round anything.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::flow_control::Destination;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use uuid::Uuid;

use crate::error::parse_column;
use crate::tickets::{TicketRow, UnpublishedTicket};
use crate::{Now, Store, StoreError};

/// Destinations found by [`find_destinations`].
#[derive(Debug, Default)]
pub struct Destinations {
    /// Destinations with a due ticket, in the order of the index.
    pub due: Vec<Destination>,
    /// Destinations without a due ticket.
    pub not_due: Vec<Destination>,
    /// The instant by which they are due; `None`: no ticket is unpublished.
    pub now: Option<DateTime<Utc>>,
    /// How long until the first ticket that is not due is due; `None`: there is none.
    pub next_due: Option<Duration>,
    /// Where to continue if the limit was reached; `None`: these were the last.
    pub next: Option<Destination>,
}

/// The tickets that a round of the relay publishes.
#[derive(Debug, Default)]
pub struct RelayBatch {
    /// In nominal order.
    pub tickets: Vec<UnpublishedTicket>,
    /// Number of rows taken for each quota, in the order of the quotas.
    pub counts: Vec<usize>,
    /// Rows that this program cannot read; one of them must not stop the others. They stay unpublished until somebody
    /// corrects them.
    pub unreadable: Vec<(ExecutionId, StoreError)>,
}

/// Finds up to `limit` destinations after `after`, and which of them have due tickets. Each takes a few index
/// lookups, however many tickets it has.
///
/// # Errors
///
/// [`StoreError`].
pub async fn find_destinations(
    store: &Store,
    after: Option<&Destination>,
    limit: usize,
    now: Now,
) -> Result<Destinations, StoreError> {
    // Nothing comes before two empty texts.
    let (pool, state) = after.map_or(("", ""), |one| (one.pool.as_str(), one.state.as_str()));
    let rows = sqlx::query_file!(
        "src/tickets/relay/destinations.sql",
        now,
        pool,
        state,
        i32::try_from(limit).unwrap_or(i32::MAX)
    )
    .fetch_all(store.with_timeout())
    .await?;
    let mut found = Destinations::default();
    let complete = rows.len() < limit;
    for row in rows {
        let state = parse_column("executions.state", &row.state, State::parse)?;
        let destination = Destination { pool: row.pool, state };
        found.now = Some(row.now);
        if !complete {
            found.next = Some(destination.clone());
        }
        if row.due { &mut found.due } else { &mut found.not_due }.push(destination);
        let next = row.next_due_seconds.and_then(|wait| Duration::try_from_secs_f64(wait).ok());
        found.next_due = [found.next_due, next].into_iter().flatten().min();
    }
    Ok(found)
}

/// Takes due tickets of each destination, up to its quota, the longest due first. Unless marked, they come up again
/// in 30 s.
///
/// # Errors
///
/// [`StoreError`]: nothing was taken, or the batch is hidden for 30 s.
pub async fn take_batch(
    store: &Store,
    quotas: &[(Destination, usize)],
    now: Now,
) -> Result<RelayBatch, StoreError> {
    let mut batch = RelayBatch { counts: vec![0; quotas.len()], ..RelayBatch::default() };
    if quotas.iter().all(|(_, quota)| *quota == 0) {
        return Ok(batch);
    }
    let pools: Vec<String> = quotas.iter().map(|(one, _)| one.pool.clone()).collect();
    let states: Vec<String> = quotas.iter().map(|(one, _)| one.state.as_str().to_owned()).collect();
    let limits: Vec<i64> = quotas.iter().map(|(_, quota)| *quota as i64).collect();
    let mut rows = sqlx::query_file_as!(
        TicketRow,
        "src/tickets/relay/take.sql",
        now,
        &pools,
        &states,
        &limits
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.sort_by_key(|row| (row.scheduled_for, row.id));
    for row in rows {
        let of = |(one, _): &(Destination, usize)| {
            one.pool == row.pool && one.state.as_str() == row.state
        };
        if let Some(place) = quotas.iter().position(of) {
            batch.counts[place] += 1;
        }
        let id = ExecutionId::new(row.id);
        match row.into_unpublished() {
            Ok(ticket) => batch.tickets.push(ticket),
            Err(error) => batch.unreadable.push((id, error)),
        }
    }
    Ok(batch)
}

/// Marks tickets as published, each only if its row has not changed since. Returns how many rows changed; fewer than
/// given is normal.
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
            SELECT e.id FROM sexton.executions e
            JOIN unnest($1::uuid[], $2::int[]) AS p (id, rev) ON p.id = e.id
            WHERE e.rev = p.rev AND e.ticket_published_at IS NULL
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED)
        UPDATE sexton.executions e SET ticket_published_at = coalesce($3, now()) FROM l WHERE e.id = l.id",
        &ids,
        &revs,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}

/// A ticket to retry later, because the broker returned or refused it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostponedTicket {
    /// Its execution.
    pub execution_id: ExecutionId,
    /// The row's revision at the failed publish.
    pub rev: i32,
    /// How long to wait, in milliseconds.
    pub wait_ms: i64,
}

/// Postpones tickets, each only if its row has not changed since. Returns how many rows changed; fewer than given is
/// normal.
///
/// # Errors
///
/// [`StoreError`]: they come up again 30 s after they were taken.
pub async fn postpone(
    store: &Store,
    postponed: &[PostponedTicket],
    now: Now,
) -> Result<u64, StoreError> {
    if postponed.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = postponed.iter().map(|one| one.execution_id.get()).collect();
    let revs: Vec<i32> = postponed.iter().map(|one| one.rev).collect();
    let waits: Vec<i64> = postponed.iter().map(|one| one.wait_ms).collect();
    let done = sqlx::query!(
        "-- postpone_tickets
        WITH l AS MATERIALIZED (
            SELECT e.id, p.wait_ms FROM sexton.executions e
            JOIN unnest($1::uuid[], $2::int[], $3::bigint[]) AS p (id, rev, wait_ms) ON p.id = e.id
            WHERE e.ticket_published_at IS NULL AND e.rev = p.rev
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED)
        UPDATE sexton.executions e
        SET relay_after = coalesce($4, now()) + l.wait_ms * interval '1 millisecond'
        FROM l WHERE e.id = l.id",
        &ids,
        &revs,
        &waits,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}
