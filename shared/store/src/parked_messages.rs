//! The rows behind the failed queue's messages, for the sweep and the workers.

mod counts;
mod notices;
mod sweep_pass;

use std::collections::HashMap;
use std::time::Duration;

use sexton_model::fingerprint::fingerprint;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_model::sweep::{KnownRow, ParkedRow};
use sexton_model::ticket::{MAX_REASON_BYTES, truncate};
use uuid::Uuid;

use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::{WithTimeout, with_client_timeout};
use crate::connection::exclusive_lock::ExclusiveLock;
use crate::error::parse_column;
use crate::{Now, Store, StoreError};

pub use counts::{FailedCounts, count_failed};
pub use notices::read_notices;
pub use sweep_pass::{
    ScanPosition, UnpublishedScan, begin_pass, end_pass, mark_unseen_unpublished, record_kept,
};

/// Reads the rows behind parked messages, and whether the pass has already kept a message for each; an execution
/// without a row is missing from the result. Uses the connection that holds the sweep's lock, so that an answer also
/// proves that no other sweep has begun.
///
/// # Errors
///
/// [`StoreError::Unavailable`] also when the lock is lost: the pass is over.
pub async fn read_rows(
    lock: &mut ExclusiveLock,
    ids: &[ExecutionId],
) -> Result<HashMap<ExecutionId, KnownRow>, StoreError> {
    let (pass, ids) = (lock.acquired_at(), ids.iter().map(|id| id.get()).collect::<Vec<Uuid>>());
    let mut reading = lock.begin_savepoint().await?;
    let rows = sqlx::query!(
        r#"-- parked_rows
        SELECT id, state, attempt, EXISTS (SELECT FROM sexton.sweep_kept
               WHERE pass = $2 AND execution_id = executions.id) AS "kept!"
        FROM sexton.executions WHERE id = ANY ($1)"#,
        &ids,
        pass
    )
    .fetch_all(WithTimeout(&mut *reading))
    .await?;
    with_client_timeout(reading.rollback()).await?;
    rows.into_iter()
        .map(|row| {
            let state = parse_column("executions.state", &row.state, State::parse)?;
            let parked = ParkedRow { state, attempt: parse_attempt_number(row.attempt)? };
            Ok((ExecutionId::new(row.id), KnownRow { row: parked, kept: row.kept }))
        })
        .collect()
}

/// Fails an execution whose ticket `attempt` could not be opened: the broker parked it, or no worker could take it.
/// As at the end of an attempt, the row takes the next number and has an unpublished ticket with it, due at once, for
/// the failed queue: remaining copies of the ticket `attempt` open nothing any more. That number stays without an
/// attempt.
///
/// Returns whether the row was still waiting with that number. If not, it has moved on, and the ticket `attempt` is
/// spent all the same. A crash afterwards leaves an unpublished ticket for the relay, and a spent one.
///
/// # Errors
///
/// [`StoreError::Unavailable`]: whether the row changed is unknown; a repeated call is harmless.
pub async fn fail_unopened(
    store: &Store,
    id: ExecutionId,
    attempt: AttemptNumber,
    class: &str,
    reason: &str,
    now: Now,
) -> Result<bool, StoreError> {
    let reason = truncate(reason, MAX_REASON_BYTES);
    let done = sqlx::query!(
        "-- fail_unopened
        UPDATE sexton.executions SET state = 'failed', attempt = attempt + 1, rev = rev + 1,
            next_attempt_at = NULL, finished_at = coalesce($5, now()),
            ticket_published_at = NULL, relay_after = coalesce($5, now()),
            outcome = 'unopened', error_class = $3, error_message = $4, fingerprint = $6
        WHERE id = $1 AND attempt = $2 AND state IN ('pending', 'retrying')",
        id.get(),
        attempt.get(),
        class,
        reason,
        now,
        fingerprint(class, reason).to_string()
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Marks the tickets of waiting executions as unpublished again, by id and attempt number, because a policy of the
/// broker has taken them out of their main queue. Returns how many; rows that have moved on stay as they are. A row
/// whose ticket is still unmarked gets a new revision, so that the mark of the dropped ticket, which may come a moment
/// later, does not apply to it, and keeps its place with the relay. A crash afterwards leaves the tickets to the relay.
///
/// # Errors
///
/// [`StoreError`]; a repeated call is harmless.
pub async fn mark_unpublished(
    store: &Store,
    tickets: &[(ExecutionId, AttemptNumber)],
    now: Now,
) -> Result<u64, StoreError> {
    let (ids, attempts): (Vec<Uuid>, Vec<i32>) =
        tickets.iter().map(|(id, attempt)| (id.get(), attempt.get())).unzip();
    let done = sqlx::query!(
        "-- mark_taken_unpublished
        WITH l AS MATERIALIZED (
            SELECT e.id FROM sexton.executions e
            JOIN (SELECT DISTINCT id, attempt FROM unnest($1::uuid[], $2::int[]) AS t (id, attempt)) t
                ON t.id = e.id AND t.attempt = e.attempt
            WHERE e.state IN ('pending', 'retrying')
            ORDER BY e.id FOR NO KEY UPDATE OF e)
        UPDATE sexton.executions e SET ticket_published_at = NULL, rev = e.rev + 1,
            relay_after = CASE WHEN e.ticket_published_at IS NULL THEN e.relay_after ELSE coalesce($3, now()) END
        FROM l WHERE e.id = l.id",
        &ids,
        &attempts,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}

/// Takes a ticket back into its row, because its delay queue refuses it: the ticket is unpublished again, and the
/// relay publishes it when it is due, or after `wait` if it is due already. The new revision keeps an earlier mark
/// from applying to it: a scheduler marks a fresh ticket a moment after an idle worker has it in hand, so the row may
/// still say that its ticket is unpublished.
///
/// `false`: the row has moved on from `attempt`. The message is spent either way. A crash afterwards leaves an
/// unpublished ticket, and a message that opens nothing before it is due.
///
/// # Errors
///
/// [`StoreError`]; a repeated call is harmless.
pub async fn return_ticket(
    store: &Store,
    id: ExecutionId,
    attempt: AttemptNumber,
    wait: Duration,
    now: Now,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- hand_back_ticket
        UPDATE sexton.executions SET ticket_published_at = NULL, rev = rev + 1,
            relay_after = CASE WHEN next_attempt_at > coalesce($4, now()) THEN next_attempt_at
                ELSE coalesce($4, now()) + $3 * interval '1 millisecond' END
        WHERE id = $1 AND attempt = $2
          AND (state IN ('retrying', 'failed')
               OR state = 'pending' AND NOT (waits IS NOT NULL AND admitted_at IS NULL))",
        id.get(),
        attempt.get(),
        wait.as_millis() as f64,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}
