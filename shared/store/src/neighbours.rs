//! The ids before and after an id: a beginning that it shares with neither is unique.

use uuid::Uuid;

use crate::{Store, StoreError};

/// An id and the nearest ids that exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbours<Id> {
    /// The id.
    pub id: Id,
    /// The largest id before it.
    pub before: Option<Id>,
    /// The smallest id after it.
    pub after: Option<Id>,
}

/// Returns the neighbours of executions' ids, without ids that no execution has; three look-ups in the primary key for
/// each.
pub async fn of_executions(
    store: &Store,
    ids: &[Uuid],
) -> Result<Vec<Neighbours<Uuid>>, StoreError> {
    Ok(sqlx::query_as!(
        Neighbours::<Uuid>,
        r#"-- neighbours_of_executions
        SELECT u.id AS "id!",
               (SELECT e.id FROM sexton.executions e WHERE e.id < u.id ORDER BY e.id DESC LIMIT 1) AS before,
               (SELECT e.id FROM sexton.executions e WHERE e.id > u.id ORDER BY e.id LIMIT 1) AS after
        FROM unnest($1::uuid[]) AS u (id)
        WHERE EXISTS (SELECT FROM sexton.executions e WHERE e.id = u.id)"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the neighbours of workers' ids.
pub async fn of_workers(store: &Store, ids: &[Uuid]) -> Result<Vec<Neighbours<Uuid>>, StoreError> {
    Ok(sqlx::query_as!(
        Neighbours::<Uuid>,
        r#"-- neighbours_of_workers
        SELECT u.id AS "id!",
               (SELECT i.id FROM sexton.instances i WHERE i.kind = 'worker' AND i.id < u.id
                ORDER BY i.id DESC LIMIT 1) AS before,
               (SELECT i.id FROM sexton.instances i WHERE i.kind = 'worker' AND i.id > u.id
                ORDER BY i.id LIMIT 1) AS after
        FROM unnest($1::uuid[]) AS u (id)"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the neighbours of fingerprints among those of failure groups; reads all of them once.
pub async fn of_fingerprints(
    store: &Store,
    fingerprints: &[String],
) -> Result<Vec<Neighbours<String>>, StoreError> {
    Ok(sqlx::query_as!(
        Neighbours::<String>,
        r#"-- neighbours_of_fingerprints
        WITH known AS (
            SELECT fingerprint FROM sexton.failure_groups UNION SELECT fingerprint FROM sexton.failure_changes),
             ordered AS (
            SELECT fingerprint, lag(fingerprint) OVER w AS before, lead(fingerprint) OVER w AS after
            FROM known WINDOW w AS (ORDER BY fingerprint COLLATE "C"))
        SELECT fingerprint AS "id!", before, after FROM ordered WHERE fingerprint = ANY ($1::text[])"#,
        fingerprints
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the neighbours of unknown messages' ids.
pub async fn of_unknown_messages(
    store: &Store,
    ids: &[String],
) -> Result<Vec<Neighbours<String>>, StoreError> {
    Ok(sqlx::query_as!(
        Neighbours::<String>,
        r#"-- neighbours_of_unknown_messages
        SELECT u.id AS "id!",
               encode((SELECT m.digest FROM sexton.unknown_messages m WHERE m.digest < decode(u.id, 'hex')
                       ORDER BY m.digest DESC LIMIT 1), 'hex') AS before,
               encode((SELECT m.digest FROM sexton.unknown_messages m WHERE m.digest > decode(u.id, 'hex')
                       ORDER BY m.digest LIMIT 1), 'hex') AS after
        FROM unnest($1::text[]) AS u (id)"#,
        ids
    )
    .fetch_all(store.with_timeout())
    .await?)
}
