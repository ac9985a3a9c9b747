//! The rows that a batch reads and writes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;
use crate::attempts::open::parse_attempt_number;
use crate::connection::client_timeout::WithTimeout;

/// An open item.
pub(super) struct OpenItem {
    pub(super) ordinal: i64,
    pub(super) id: ExecutionId,
    pub(super) seen: AttemptNumber,
}

/// An execution, locked until the transaction ends.
pub(super) struct LockedExecution {
    pub(super) job: Uuid,
    pub(super) state: String,
    pub(super) attempt: i32,
    pub(super) before: Value,
}

impl LockedExecution {
    /// Returns whether its worker was asked to end it.
    pub(super) fn is_cancel_requested(&self) -> bool {
        self.before["cancel_requested"] == true
    }
}

/// Returns the next items that wait, in their order; at most `limit`.
pub(super) async fn list_open_items(
    connection: &mut PgConnection,
    id: i64,
    limit: u32,
) -> Result<Vec<OpenItem>, StoreError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        "-- open_items
        SELECT ordinal, execution_id, seen FROM sexton.bulk_items
        WHERE bulk_id = $1 AND state = 'waiting' ORDER BY ordinal LIMIT $2",
        id,
        i64::from(limit)
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    rows.into_iter()
        .map(|row| {
            let (ordinal, id) = (row.ordinal, ExecutionId::new(row.execution_id));
            Ok(OpenItem { ordinal, id, seen: parse_attempt_number(row.seen)? })
        })
        .collect()
}

/// Locks their executions, skipping those that another transaction has locked.
pub(super) async fn lock_executions(
    connection: &mut PgConnection,
    items: &[OpenItem],
) -> Result<HashMap<Uuid, LockedExecution>, StoreError> {
    let ids: Vec<Uuid> = items.iter().map(|item| item.id.get()).collect();
    let rows = sqlx::query!(
        r#"-- lock_executions_of_bulk
        SELECT id, job_id, state, attempt,
               jsonb_build_object('state', state, 'attempt', attempt, 'retries_used', retries_used,
                   'timeouts_used', timeouts_used, 'crashes_used', crashes_used,
                   'snoozes_used', snoozes_used, 'cancel_requested', cancel_requested, 'pool', pool,
                   'error_class', error_class, 'error_message', error_message) AS "before!"
        FROM sexton.executions WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"#,
        &ids
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let locked = rows.into_iter().map(|row| {
        let locked = LockedExecution {
            job: row.job_id,
            state: row.state,
            attempt: row.attempt,
            before: row.before,
        };
        (row.id, locked)
    });
    Ok(locked.collect())
}

/// Returns the items among these whose executions were requeued after the bulk's preview: the operator who requeued one wants
/// it to run. Call it with the executions locked: it sees an earlier requeue, and the lock keeps later ones out.
pub(super) async fn find_requeued(
    connection: &mut PgConnection,
    bulk: i64,
    ordinals: &[i64],
) -> Result<HashSet<i64>, StoreError> {
    let rows = sqlx::query_scalar!(
        "-- items_requeued_since_preview
        SELECT i.ordinal FROM sexton.bulk_items i
        JOIN sexton.bulks b ON b.id = i.bulk_id
        WHERE i.bulk_id = $1 AND i.ordinal = ANY ($2) AND EXISTS (
            SELECT FROM sexton.operator_actions a
            WHERE a.execution_id = i.execution_id AND a.action IN ('requeue', 'hand_requeue') AND a.at > b.previewed_at)",
        bulk,
        ordinals
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().collect())
}

/// Returns which of the executions that could not be locked exist: another transaction has locked them.
pub(super) async fn find_existing(
    connection: &mut PgConnection,
    items: &[OpenItem],
    locked: &HashMap<Uuid, LockedExecution>,
) -> Result<HashSet<Uuid>, StoreError> {
    let ids: Vec<Uuid> =
        items.iter().map(|item| item.id.get()).filter(|id| !locked.contains_key(id)).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = sqlx::query_scalar!(
        "-- executions_that_are_there\nSELECT id FROM sexton.executions WHERE id = ANY ($1)",
        &ids
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    Ok(rows.into_iter().collect())
}

/// Writes the results of items, by their ordinals.
pub(super) async fn write_items(
    connection: &mut PgConnection,
    bulk: i64,
    written: &[(i64, &str, Option<String>)],
) -> Result<(), StoreError> {
    let ordinals: Vec<i64> = written.iter().map(|it| it.0).collect();
    let states: Vec<String> = written.iter().map(|it| it.1.to_owned()).collect();
    let notes: Vec<Option<String>> = written.iter().map(|it| it.2.clone()).collect();
    sqlx::query!(
        "-- write_items
        UPDATE sexton.bulk_items i SET state = w.state, note = w.note
        FROM unnest($2::bigint[], $3::text[], $4::text[]) AS w (ordinal, state, note)
        WHERE i.bulk_id = $1 AND i.ordinal = w.ordinal",
        bulk,
        &ordinals,
        &states,
        &notes as &[Option<String>]
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
