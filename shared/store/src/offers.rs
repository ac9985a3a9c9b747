//! What workers offer: the task types of their catalogues, and what the params of each must hold.
//!
//! Written by each worker when it introduces itself, and removed an hour after it said goodbye, or when it is
//! forgotten. So what is in use is told by the workers that are at work, and no two of them have to agree.

use serde_json::Value;
use sexton_model::foreign::OFFER_GRACE_MS;
use sexton_model::id::ProcessId;

use sqlx::PgExecutor;

use crate::client_timeout::WithTimeout;
use crate::{Now, Store, StoreError};

/// A worker that was not heard of for so long is not at work, in milliseconds.
const MAX_SILENCE_MS: f64 = 60_000.0;

/// Workers that stopped an hour ago of whose offers one call of [`publish`] removes all.
const MAX_BATCH_REMOVALS: i64 = 1_000;

/// Writes what the process `id` offers: task types, each with its schema if it has one. Done again, it changes
/// nothing; a crash leaves all or none of it. Removes the offers of workers that said goodbye more than an hour
/// ago.
pub async fn publish(
    store: &Store,
    id: ProcessId,
    offered: &[(String, Option<Value>)],
) -> Result<(), StoreError> {
    let (types, schemas): (Vec<String>, Vec<Option<Value>>) = offered.iter().cloned().unzip();
    sqlx::query!(
        "-- publish_offers
        INSERT INTO sexton.offers (instance_id, task_type, params_schema)
        SELECT $1, o.task_type, o.schema FROM unnest($2::text[], $3::jsonb[]) AS o (task_type, schema)
        ON CONFLICT (instance_id, task_type) DO NOTHING",
        id.get(),
        &types,
        &schemas as &[Option<Value>]
    )
    .execute(store.with_timeout())
    .await?;
    sqlx::query!(
        "-- forget_offers
        DELETE FROM sexton.offers o USING (
            SELECT id FROM sexton.instances i
            WHERE i.kind = 'worker' AND i.stopped_at < now() - $1 * interval '1 millisecond'
              AND EXISTS (SELECT FROM sexton.offers WHERE instance_id = i.id)
            LIMIT $2) gone
        WHERE o.instance_id = gone.id",
        OFFER_GRACE_MS as f64,
        MAX_BATCH_REMOVALS
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// A schema that workers at work have for a task type.
#[derive(Clone, PartialEq, Debug)]
pub struct OfferedSchema {
    /// The schema; none: these workers take whatever comes.
    pub schema: Option<Value>,
    /// Their names, sorted; at most ten.
    pub workers: Vec<String>,
}

/// The schemas that the workers at work in `pool` have for `task_type`, each once; at most 20. None of them: no
/// worker at work offers it there.
pub async fn list_current_schemas(
    store: &Store,
    task_type: &str,
    pool: &str,
    now: Now,
) -> Result<Vec<OfferedSchema>, StoreError> {
    Ok(sqlx::query_as!(
        OfferedSchema,
        r#"-- schemas_in_use
        SELECT o.params_schema AS schema, (array_agg(DISTINCT i.name ORDER BY i.name))[1:10] AS "workers!"
        FROM sexton.offers o JOIN sexton.instances i ON i.id = o.instance_id
        WHERE o.task_type = $1 AND $4 = ANY (i.pools) AND i.stopped_at IS NULL
          AND i.heartbeat_at > coalesce($2, now()) - $3 * interval '1 millisecond'
        GROUP BY o.params_schema ORDER BY min(i.name) LIMIT 20"#,
        task_type,
        now,
        MAX_SILENCE_MS,
        pool
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// The schemas for `task_type` that the workers in `pool` have or had: of those at work; if there are none, of those
/// that were heard of within the last hour. Each once; at most 20. None of them: nobody offers the type there, nor
/// did within the hour.
pub async fn list_recent_schemas(
    store: &Store,
    task_type: &str,
    pool: &str,
    now: Now,
) -> Result<Vec<OfferedSchema>, StoreError> {
    let rows = sqlx::query!(
        r#"-- recent_schemas
        SELECT o.params_schema AS schema, o.at_work AS "at_work!",
               (array_agg(DISTINCT o.name ORDER BY o.name))[1:10] AS "workers!"
        FROM (SELECT f.params_schema, i.name,
                     i.stopped_at IS NULL
                     AND i.heartbeat_at > coalesce($2, now()) - $3 * interval '1 millisecond' AS at_work
              FROM sexton.offers f JOIN sexton.instances i ON i.id = f.instance_id
              WHERE f.task_type = $1 AND $5 = ANY (i.pools)
                AND i.heartbeat_at > coalesce($2, now()) - $4 * interval '1 millisecond') o
        GROUP BY o.at_work, o.params_schema ORDER BY o.at_work DESC, min(o.name) LIMIT 20"#,
        task_type,
        now,
        MAX_SILENCE_MS,
        OFFER_GRACE_MS as f64,
        pool
    )
    .fetch_all(store.with_timeout())
    .await?;
    let at_work = rows.first().is_some_and(|row| row.at_work);
    let counting = rows.into_iter().filter(|row| row.at_work == at_work);
    Ok(counting.map(|row| OfferedSchema { schema: row.schema, workers: row.workers }).collect())
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
pub async fn list_old_workers(store: &Store, now: Now) -> Result<Vec<OldWorker>, StoreError> {
    list_old_workers_on(store.with_timeout(), now).await
}

/// The same, in a transaction of the caller's.
pub(crate) async fn list_old_workers_on<'c>(
    executor: WithTimeout<impl PgExecutor<'c>>,
    now: Now,
) -> Result<Vec<OldWorker>, StoreError> {
    Ok(sqlx::query_as!(
        OldWorker,
        "-- old_workers
        SELECT i.name, i.version FROM sexton.instances i
        WHERE i.kind = 'worker' AND i.stopped_at IS NULL
          AND i.heartbeat_at > coalesce($1, now()) - $2 * interval '1 millisecond'
          AND NOT EXISTS (SELECT FROM sexton.offers o WHERE o.instance_id = i.id)
        ORDER BY i.name LIMIT 20",
        now,
        MAX_SILENCE_MS
    )
    .fetch_all(executor)
    .await?)
}
