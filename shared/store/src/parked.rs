//! The failed queue's side of an execution: what the sweep and the workers ask and write.

mod notices;

use sexton_model::fingerprint::fingerprint;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_model::sweep::ParkedRow;
use sexton_model::ticket::{MAX_REASON_BYTES, shorten};
use uuid::Uuid;

use crate::bounded::Bounded;
use crate::error::known;
use crate::exclusive::Exclusive;
use crate::open::number;
use crate::{Now, Store, StoreError};

pub use notices::notices;

/// Reads the row behind a parked message; `None`: there is none. On the connection that holds the
/// sweep's lock, so that an answer also proves that no other sweep has begun.
///
/// # Errors
///
/// [`StoreError::Unavailable`] also when the lock is lost: the pass is over.
pub async fn row(lock: &mut Exclusive, id: ExecutionId) -> Result<Option<ParkedRow>, StoreError> {
    let row = sqlx::query!(
        "-- parked_row\nSELECT state, attempt FROM executions WHERE id = $1",
        id.get()
    )
    .fetch_optional(Bounded(lock.connection()))
    .await?;
    row.map(|row| {
        Ok(ParkedRow {
            state: known("executions.state", &row.state, State::parse)?,
            attempt: number(row.attempt)?,
        })
    })
    .transpose()
}

/// Fails an execution whose ticket `attempt` could not be opened: the broker parked it, or no worker
/// could take it. As at the end of an attempt the row takes the next number and owes the ticket that
/// bears it, at once, to the failed queue: whatever copies of the ticket `attempt` are left open
/// nothing any more. That number stays without an attempt.
///
/// Returns whether the row was still waiting with that number. If not, it has moved on, and the
/// ticket `attempt` is spent all the same. A crash afterwards leaves a debt for the relay, and a spent
/// ticket.
///
/// # Errors
///
/// [`StoreError::Unavailable`]: whether the row was changed is not known; asking again is harmless.
pub async fn fail_unopened(
    store: &Store,
    id: ExecutionId,
    attempt: AttemptNumber,
    class: &str,
    reason: &str,
    now: Now,
) -> Result<bool, StoreError> {
    let reason = shorten(reason, MAX_REASON_BYTES);
    let done = sqlx::query!(
        "-- fail_unopened
        UPDATE executions SET state = 'failed', attempt = attempt + 1, rev = rev + 1,
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
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many executions are failed, and how many of those have their message in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCounts {
    /// Rows in `failed`.
    pub failed: u64,
    /// Of those, rows whose parked ticket was published.
    pub published: u64,
}

/// Counts the failed rows.
pub async fn counts(store: &Store) -> Result<FailedCounts, StoreError> {
    let row = sqlx::query!(
        r#"-- failed_counts
        SELECT count(*) AS "failed!", count(ticket_published_at) AS "published!"
        FROM executions WHERE state = 'failed'"#
    )
    .fetch_one(store.bounded())
    .await?;
    Ok(FailedCounts { failed: row.failed as u64, published: row.published as u64 })
}

/// Owes again the parked tickets that a complete pass of the sweep, begun at `pass_began`, did not
/// see, of at most `limit` rows. `seen` are the executions whose message it kept. Returns how many.
pub async fn owe_unseen(
    store: &Store,
    seen: &[ExecutionId],
    pass_began: chrono::DateTime<chrono::Utc>,
    limit: i64,
    now: Now,
) -> Result<u64, StoreError> {
    let seen: Vec<Uuid> = seen.iter().map(|id| id.get()).collect();
    let done = sqlx::query!(
        "-- owe_unseen_failed
        WITH l AS MATERIALIZED (
            SELECT id FROM executions
            WHERE state = 'failed' AND ticket_published_at < $2
              -- A hash anti join on every version, unlike `<> ALL` of an array.
              AND NOT EXISTS (SELECT FROM unnest($1::uuid[]) AS seen (id) WHERE seen.id = executions.id)
            ORDER BY id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE executions e SET ticket_published_at = NULL, rev = e.rev + 1,
            relay_after = coalesce($4, now())
        FROM l WHERE e.id = l.id",
        &seen,
        pass_began,
        limit,
        now
    )
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected())
}
