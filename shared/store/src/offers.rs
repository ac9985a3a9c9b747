//! What workers offer: the task types of their catalogues, and what the params of each must hold.
//!
//! Written by each worker when it introduces itself, and removed when it says goodbye or is forgotten. So what
//! is in use is told by the workers that are at work, and no two of them have to agree.

use serde_json::Value;
use sexton_model::id::ProcessId;

use sqlx::PgExecutor;

use crate::bounded::Bounded;
use crate::{Now, Store, StoreError};

/// A worker that was not heard of for so long is not at work, in milliseconds.
const SILENT_MS: f64 = 60_000.0;

/// Writes what the process `id` offers: task types, each with its schema if it has one. Done again, it changes
/// nothing; a crash leaves all or none of it.
pub async fn publish(
    store: &Store,
    id: ProcessId,
    offered: &[(String, Option<Value>)],
) -> Result<(), StoreError> {
    let (types, schemas): (Vec<String>, Vec<Option<Value>>) = offered.iter().cloned().unzip();
    sqlx::query!(
        "-- publish_offers
        INSERT INTO offers (instance_id, task_type, params_schema)
        SELECT $1, o.task_type, o.schema FROM unnest($2::text[], $3::jsonb[]) AS o (task_type, schema)
        ON CONFLICT (instance_id, task_type) DO NOTHING",
        id.get(),
        &types,
        &schemas as &[Option<Value>]
    )
    .execute(store.bounded())
    .await?;
    Ok(())
}

/// A schema that workers at work have for a task type.
#[derive(Clone, PartialEq, Debug)]
pub struct InUse {
    /// The schema; none: these workers take whatever comes.
    pub schema: Option<Value>,
    /// Their names, sorted; at most ten.
    pub workers: Vec<String>,
}

/// The schemas that the workers at work in `pool` have for `task_type`, each once; at most 20. None of them: no
/// worker at work offers it there.
pub async fn in_use(
    store: &Store,
    task_type: &str,
    pool: &str,
    now: Now,
) -> Result<Vec<InUse>, StoreError> {
    Ok(sqlx::query_as!(
        InUse,
        r#"-- schemas_in_use
        SELECT o.params_schema AS schema, (array_agg(DISTINCT i.name ORDER BY i.name))[1:10] AS "workers!"
        FROM offers o JOIN instances i ON i.id = o.instance_id
        WHERE o.task_type = $1 AND $4 = ANY (i.pools) AND i.stopped_at IS NULL
          AND i.heartbeat_at > coalesce($2, now()) - $3 * interval '1 millisecond'
        GROUP BY o.params_schema ORDER BY min(i.name) LIMIT 20"#,
        task_type,
        now,
        SILENT_MS,
        pool
    )
    .fetch_all(store.bounded())
    .await?)
}

/// A worker at work that says nothing of what it offers, as those of versions before verify tasks do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldWorker {
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Of its program.
    pub version: String,
}

/// The workers at work that say nothing of what they offer, by name; at most 20. While there is one, no verify
/// task is asked.
pub async fn old_workers(store: &Store, now: Now) -> Result<Vec<OldWorker>, StoreError> {
    old_workers_on(store.bounded(), now).await
}

/// The same, in a transaction of the caller's.
pub(crate) async fn old_workers_on<'c>(
    executor: Bounded<impl PgExecutor<'c>>,
    now: Now,
) -> Result<Vec<OldWorker>, StoreError> {
    Ok(sqlx::query_as!(
        OldWorker,
        "-- old_workers
        SELECT i.name, i.version FROM instances i
        WHERE i.kind = 'worker' AND i.stopped_at IS NULL
          AND i.heartbeat_at > coalesce($1, now()) - $2 * interval '1 millisecond'
          AND NOT EXISTS (SELECT FROM offers o WHERE o.instance_id = i.id)
        ORDER BY i.name LIMIT 20",
        now,
        SILENT_MS
    )
    .fetch_all(executor)
    .await?)
}
