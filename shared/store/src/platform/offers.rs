//! Workers' offers: the task types of their catalogues, and the schemas of their params.
//!
//! Each worker writes its offers when it registers; they are removed an hour after it stopped, or when retention
//! removes the worker. So the active workers define what is in use, and no two of them have to agree.

use serde_json::Value;
use sexton_model::foreign::OFFER_GRACE_MS;
use sexton_model::id::ProcessId;

use sqlx::PgExecutor;

use crate::connection::client_timeout::WithTimeout;
use crate::{Now, Store, StoreError};

/// A worker without a heartbeat for this long is inactive, in milliseconds.
const MAX_SILENCE_MS: f64 = 60_000.0;

/// Maximum number of stopped workers whose offers one call of [`publish`] removes.
const MAX_BATCH_REMOVALS: i64 = 1_000;

/// Writes the offers of the process `id`: task types, each with its schema if it has one. A repeated call changes
/// nothing; a crash leaves all or none of it. Removes the offers of workers that stopped more than an hour ago.
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

/// A schema that active workers have for a task type.
#[derive(Clone, PartialEq, Debug)]
pub struct OfferedSchema {
    /// The schema; `None`: these workers accept any params.
    pub schema: Option<Value>,
    /// Their names, sorted; at most ten.
    pub workers: Vec<String>,
}

/// Returns the schemas that the active workers in `pool` have for `task_type`, each once; at most 20. Empty: no
/// active worker offers it there.
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

/// Returns the schemas for `task_type` of the active workers in `pool`, or, without any, of those with a heartbeat
/// within the last hour. Each once; at most 20. Empty: no worker has offered the type there within the hour.
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

/// An active worker that publishes no offers, because its version is older than verify tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldWorker {
    /// `SEXTON_INSTANCE`.
    pub name: String,
    /// Its program's version.
    pub version: String,
}

/// Returns the active workers that publish no offers, by name; at most 20. While one exists, no verify task runs.
pub async fn list_old_workers(store: &Store, now: Now) -> Result<Vec<OldWorker>, StoreError> {
    list_old_workers_on(store.with_timeout(), now).await
}

/// Like [`list_old_workers`], in the caller's transaction.
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
