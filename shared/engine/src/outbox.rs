//! The outbox: a row's ticket is unpublished until it is published, confirmed and marked, in this order.
//!
//! A crash in between publishes a ticket twice, which the open recognises. A row that has changed meanwhile is
//! not marked. A ticket that could not be published stays unpublished in its row, and the scheduler's relay
//! publishes it later.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_broker::{Namespace, Publication, publications};
use sexton_model::id::ExecutionId;
use sexton_store::tickets::UnpublishedTicket;
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError, relay};

use crate::traces;

/// Timeout of the statement that marks a batch.
pub const MARK_TIMEOUT: Duration = Duration::from_secs(10);

/// A ticket that is in its queue: its execution, and the row's revision that the mark must find.
pub type PublishedTicket = (ExecutionId, i32);

/// Returns what [`mark`] needs for `unpublished`, once its publication is confirmed.
pub const fn published(unpublished: &UnpublishedTicket) -> PublishedTicket {
    (unpublished.ticket.execution_id, unpublished.rev)
}

/// Returns the message of an unpublished ticket. It carries `now`, for people: no decision depends on it.
pub fn publication(
    namespace: &Namespace,
    unpublished: &UnpublishedTicket,
    now: DateTime<Utc>,
) -> Publication {
    let publication = publications::ticket(
        namespace,
        &unpublished.pool,
        unpublished.state,
        unpublished.due_in.to_std().unwrap_or(Duration::ZERO),
        &unpublished.ticket,
        unpublished.parked.as_ref(),
        now,
    );
    traces::with_trace(publication, unpublished)
}

/// Marks tickets whose publication was confirmed; returns how many rows that changed. Fewer is normal: a worker
/// opened the ticket first.
///
/// # Errors
///
/// [`StoreError`], after at most [`MARK_TIMEOUT`]: the tickets will be published again.
pub async fn mark(
    store: &Store,
    published: &[PublishedTicket],
    now: Now,
) -> Result<u64, StoreError> {
    with_timeout(MARK_TIMEOUT, relay::mark_published(store, published, now)).await
}
