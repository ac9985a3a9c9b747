//! Lease: renews the open attempts of a worker.

use std::time::Duration;

use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken};
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// An open attempt, with every value that fences it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttemptFence {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt's number.
    pub attempt: AttemptNumber,
    /// The worker's token.
    pub token: OpenToken,
}

/// The result of a renewal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renewal {
    /// The lease runs from now again.
    Renewed {
        /// An operator wants the attempt to end.
        cancel_requested: bool,
    },
    /// Another transaction held the row's lock for a moment: renew in the next round.
    Locked,
    /// The attempt no longer belongs to this worker: kill the task, write nothing.
    Fenced,
}

/// Renews leases, each for its own duration from now. Returns the results in the order of `held`.
///
/// Only `lease_until` changes, which no index contains, so the update stays on its page.
pub async fn renew(
    store: &Store,
    held: &[(AttemptFence, Duration)],
    now: Now,
) -> Result<Vec<Renewal>, StoreError> {
    let ids: Vec<Uuid> = held.iter().map(|(held, _)| held.execution_id.get()).collect();
    let attempts: Vec<i32> = held.iter().map(|(held, _)| held.attempt.get()).collect();
    let tokens: Vec<Uuid> = held.iter().map(|(held, _)| held.token.get()).collect();
    let leases: Vec<i64> = held.iter().map(|(_, lease)| lease.as_millis() as i64).collect();
    let rows = sqlx::query!(
        r#"-- renew_leases
        WITH l AS MATERIALIZED (
            SELECT e.id, r.lease_ms FROM sexton.executions e
            JOIN unnest($1::uuid[], $2::int[], $3::uuid[], $4::bigint[])
                 AS r (id, attempt, token, lease_ms) ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.open_token = r.token AND e.state = 'running'
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED)
        UPDATE sexton.executions e
        SET lease_until = coalesce($5, now()) + l.lease_ms * interval '1 millisecond'
        FROM l WHERE e.id = l.id
        RETURNING e.id, e.cancel_requested"#,
        &ids,
        &attempts,
        &tokens,
        &leases,
        now
    )
    .fetch_all(store.with_timeout())
    .await?;
    let renewed: std::collections::HashMap<Uuid, bool> =
        rows.into_iter().map(|row| (row.id, row.cancel_requested)).collect();
    let untouched: Vec<AttemptFence> = held
        .iter()
        .map(|(held, _)| *held)
        .filter(|held| !renewed.contains_key(&held.execution_id.get()))
        .collect();
    let locked = find_still_held(store, &untouched).await?;
    Ok(held
        .iter()
        .map(|(held, _)| match renewed.get(&held.execution_id.get()) {
            Some(&cancel_requested) => Renewal::Renewed { cancel_requested },
            None if locked.contains(&held.execution_id) => Renewal::Locked,
            None => Renewal::Fenced,
        })
        .collect())
}

/// Of the attempts that a fenced, lock-skipping statement did not touch, returns those whose fence still holds, which
/// were therefore only locked. Reads without a lock.
pub(crate) async fn find_still_held(
    store: &Store,
    held: &[AttemptFence],
) -> Result<std::collections::HashSet<ExecutionId>, StoreError> {
    if held.is_empty() {
        return Ok(std::collections::HashSet::new());
    }
    Ok(find_still_held_on(store.with_timeout(), held).await?)
}

/// Like [`find_still_held`], on any executor, such as a transaction.
pub(crate) async fn find_still_held_on(
    executor: impl sqlx::PgExecutor<'_>,
    held: &[AttemptFence],
) -> Result<std::collections::HashSet<ExecutionId>, sqlx::Error> {
    let ids: Vec<Uuid> = held.iter().map(|held| held.execution_id.get()).collect();
    let attempts: Vec<i32> = held.iter().map(|held| held.attempt.get()).collect();
    let tokens: Vec<Uuid> = held.iter().map(|held| held.token.get()).collect();
    let rows = sqlx::query_scalar!(
        "-- still_held
        SELECT e.id FROM sexton.executions e
        JOIN unnest($1::uuid[], $2::int[], $3::uuid[]) AS r (id, attempt, token) ON r.id = e.id
        WHERE e.attempt = r.attempt AND e.open_token = r.token AND e.state = 'running'",
        &ids,
        &attempts,
        &tokens
    )
    .fetch_all(executor)
    .await?;
    Ok(rows.into_iter().map(ExecutionId::new).collect())
}
